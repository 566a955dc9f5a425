//! A context and a node in one domain, and the questions the graph can answer.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::time::Duration;

use super::ffi::{self, Gid, OlDomain, OlEndpoint, Qos};
use super::{RawError, c_text, call, nanoseconds, open};

/// A publisher or subscription of a topic as the graph shows it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its policies; history and depth are unknown to the graph.
    pub qos: Qos,
    /// Its identity.
    pub gid: Gid,
    /// Its message type, `package/msg/Name`.
    pub type_name: String,
    /// Name of its node, empty or a placeholder for one that is not of ROS.
    pub node: String,
    /// Namespace of its node.
    pub namespace: String,
}

/// A context and a node in one domain.
#[derive(Debug)]
pub struct Domain(pub(super) NonNull<OlDomain>);

// SAFETY: rcl contexts and nodes may be used from any thread; concurrent graph queries and entity creation are
// thread-safe in rcl. The wait set inside is only touched by `wait_graph`, which a single thread calls.
unsafe impl Send for Domain {}
// SAFETY: see above; the other `&self` methods touch only the node and the guard condition.
unsafe impl Sync for Domain {}

impl Domain {
    /// Opens `domain_id` with a node called `node_name`; `args` are handed to rcl.
    ///
    /// # Errors
    /// What rcl said.
    pub fn open(domain_id: usize, node_name: &str, args: &[String]) -> Result<Self, RawError> {
        let name = c_text(node_name)?;
        let args = args
            .iter()
            .map(|arg| c_text(arg))
            .collect::<Result<Vec<_>, _>>()?;
        let argv: Vec<_> = args.iter().map(|arg| arg.as_ptr()).collect();
        let count = i32::try_from(argv.len()).unwrap_or(i32::MAX);
        open(|err, len| {
            // SAFETY: all pointers live until the call returns and nothing keeps them.
            unsafe { ffi::ol_domain_open(domain_id, name.as_ptr(), argv.as_ptr(), count, err, len) }
        })
        .map(Self)
    }

    /// Blocks until the graph changed, [`Domain::wake`] was called (true) or the time is over (false).
    /// Only one thread may call it at a time.
    ///
    /// # Errors
    /// What rcl said.
    pub fn wait_graph(&self, timeout: Duration) -> Result<bool, RawError> {
        call(|err, len| {
            // SAFETY: the domain is open; the caller gives this call to a single thread.
            unsafe { ffi::ol_domain_wait_graph(self.0.as_ptr(), nanoseconds(timeout), err, len) }
        })
        .map(|woken| woken > 0)
    }

    /// Ends a wait of another thread.
    pub fn wake(&self) {
        // SAFETY: the domain is open; guard conditions may be triggered from any thread.
        if unsafe { ffi::ol_domain_wake(self.0.as_ptr()) } != 0 {
            tracing::warn!("cannot wake the graph watcher");
        }
    }

    /// The publishers of a topic.
    ///
    /// # Errors
    /// What rcl said.
    pub fn publishers(&self, topic: &str) -> Result<Vec<Endpoint>, RawError> {
        self.endpoints(topic, 1)
    }

    /// The subscriptions of a topic.
    ///
    /// # Errors
    /// What rcl said.
    pub fn subscriptions(&self, topic: &str) -> Result<Vec<Endpoint>, RawError> {
        self.endpoints(topic, 0)
    }

    fn endpoints(&self, topic: &str, publishers: i32) -> Result<Vec<Endpoint>, RawError> {
        let topic = c_text(topic)?;
        let mut found: Vec<Endpoint> = Vec::new();
        let into = (&raw mut found).cast();
        call(|err, len| {
            let domain = self.0.as_ptr();
            // SAFETY: `found` outlives the call and only the visitor touches it meanwhile.
            unsafe {
                ffi::ol_endpoints(
                    domain,
                    topic.as_ptr(),
                    publishers,
                    add_endpoint,
                    into,
                    err,
                    len,
                )
            }
        })?;
        Ok(found)
    }

    /// The topics of the domain with their (first) type.
    ///
    /// # Errors
    /// What rcl said.
    pub fn topics(&self) -> Result<Vec<(String, String)>, RawError> {
        names(|into, err, len| {
            // SAFETY: as in `endpoints`.
            unsafe { ffi::ol_topics(self.0.as_ptr(), add_name, into, err, len) }
        })
    }

    /// The nodes of the domain with their namespaces.
    ///
    /// # Errors
    /// What rcl said.
    pub fn nodes(&self) -> Result<Vec<(String, String)>, RawError> {
        names(|into, err, len| {
            // SAFETY: as in `endpoints`.
            unsafe { ffi::ol_nodes(self.0.as_ptr(), add_name, into, err, len) }
        })
    }

    /// The services of a node with their (first) type; none for a node that is gone.
    ///
    /// # Errors
    /// What rcl said.
    pub fn services_of(
        &self,
        node: &str,
        namespace: &str,
    ) -> Result<Vec<(String, String)>, RawError> {
        let (node, namespace) = (c_text(node)?, c_text(namespace)?);
        names(|into, err, len| {
            let (domain, node, namespace) = (self.0.as_ptr(), node.as_ptr(), namespace.as_ptr());
            // SAFETY: as in `endpoints`; the texts live until the call returns.
            unsafe { ffi::ol_services_of(domain, node, namespace, add_name, into, err, len) }
        })
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; what was opened in it holds an `Arc` and so is gone.
        unsafe { ffi::ol_domain_close(self.0.as_ptr()) }
    }
}

fn names(
    list: impl FnOnce(*mut c_void, *mut c_char, usize) -> i32,
) -> Result<Vec<(String, String)>, RawError> {
    let mut found: Vec<(String, String)> = Vec::new();
    let into = (&raw mut found).cast();
    call(|err, len| list(into, err, len))?;
    Ok(found)
}

/// # Safety
/// `text` is NUL-terminated.
unsafe fn owned(text: *const c_char) -> String {
    // SAFETY: the caller says so.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

extern "C" fn add_name(into: *mut c_void, name: *const c_char, detail: *const c_char) {
    // SAFETY: `into` is the list that `names` made, and C hands out NUL-terminated texts.
    unsafe {
        (*into.cast::<Vec<(String, String)>>()).push((owned(name), owned(detail)));
    }
}

extern "C" fn add_endpoint(into: *mut c_void, endpoint: *const OlEndpoint) {
    // SAFETY: `into` is the list that `endpoints` made, and C hands out a filled structure.
    unsafe {
        let endpoint = &*endpoint;
        (*into.cast::<Vec<Endpoint>>()).push(Endpoint {
            qos: endpoint.qos,
            gid: endpoint.gid,
            type_name: owned(endpoint.type_name),
            node: owned(endpoint.node),
            namespace: owned(endpoint.namespace),
        });
    }
}
