//! A safe face for `raw.c`: contexts, graph queries and serialized forwarding that rclrs does not expose.
//!
//! All `unsafe` code of the ROS layer is in this module. It decides nothing; see `nodes::domain_bridge`.
#![allow(unsafe_code)]

mod ffi;
mod type_support;

use std::ffi::{CStr, CString, c_char};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

pub use ffi::{Gid, Qos, Taken};
pub use type_support::TypeSupport;

/// Most publishers of one topic that are looked at.
const MAX_PUBLISHERS: usize = 64;
/// Longest reason that C hands over, bytes.
const REASON: usize = 1024;

/// What rcl said.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RawError(String);

/// A publisher of a topic as the graph shows it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its policies; history and depth are unknown to the graph.
    pub qos: Qos,
    /// Its identity.
    pub gid: Gid,
    /// Its message type, `package/msg/Name`.
    pub type_name: String,
}

/// Collects the reason a C function writes on failure.
struct Reason([u8; REASON]);

impl Reason {
    const fn new() -> Self {
        Self([0; REASON])
    }

    const fn as_mut_ptr(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    fn error(&self) -> RawError {
        let text =
            CStr::from_bytes_until_nul(&self.0).map(|text| text.to_string_lossy().into_owned());
        RawError(text.unwrap_or_else(|_| "unknown reason".into()))
    }

    fn check(&self, result: i32) -> Result<u32, RawError> {
        u32::try_from(result).map_err(|_| self.error())
    }
}

fn c_text(text: &str) -> Result<CString, RawError> {
    CString::new(text).map_err(|_| RawError(format!("{text:?} contains a NUL byte")))
}

fn nanoseconds(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX)
}

/// The name of the middleware in use, such as `rmw_fastrtps_cpp`.
#[must_use]
pub fn rmw_name() -> String {
    // SAFETY: rmw returns a constant text.
    let name = unsafe { CStr::from_ptr(ffi::ol_rmw_name()) };
    name.to_string_lossy().into_owned()
}

/// A context and a node in one domain.
#[derive(Debug)]
pub struct Domain(NonNull<ffi::OlDomain>);

// SAFETY: rcl contexts and nodes may be used from any thread; concurrent graph queries and entity creation are
// thread-safe in rcl. The wait set inside is only touched by `wait_graph`, which takes `&mut self`.
unsafe impl Send for Domain {}
// SAFETY: see above; `&self` methods touch only the node and the guard condition.
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
        let mut reason = Reason::new();
        // SAFETY: all pointers live until the call returns and nothing keeps them.
        let domain = unsafe {
            ffi::ol_domain_open(
                domain_id,
                name.as_ptr(),
                argv.as_ptr(),
                count,
                reason.as_mut_ptr(),
                REASON,
            )
        };
        NonNull::new(domain).map(Self).ok_or_else(|| reason.error())
    }

    /// Blocks until the graph changed, [`Domain::wake`] was called (true) or the time is over (false).
    /// Only one thread may call it at a time.
    ///
    /// # Errors
    /// What rcl said.
    pub fn wait_graph(&self, timeout: Duration) -> Result<bool, RawError> {
        let mut reason = Reason::new();
        // SAFETY: the domain is open; `Watcher` gives this call to a single thread.
        let result = unsafe {
            ffi::ol_domain_wait_graph(
                self.0.as_ptr(),
                nanoseconds(timeout),
                reason.as_mut_ptr(),
                REASON,
            )
        };
        reason.check(result).map(|woken| woken > 0)
    }

    /// Ends a wait of another thread.
    pub fn wake(&self) {
        // SAFETY: the domain is open; guard conditions may be triggered from any thread.
        if unsafe { ffi::ol_domain_wake(self.0.as_ptr()) } != 0 {
            tracing::warn!("cannot wake the graph watcher");
        }
    }

    /// The publishers of a topic, at most 64.
    ///
    /// # Errors
    /// What rcl said.
    pub fn publishers(&self, topic: &str) -> Result<Vec<Endpoint>, RawError> {
        let topic = c_text(topic)?;
        let mut found: Vec<ffi::OlEndpoint> = vec![ffi::OlEndpoint::default(); MAX_PUBLISHERS];
        let mut reason = Reason::new();
        // SAFETY: `found` has room for the number of entries that is passed.
        let result = unsafe {
            let room = found.as_mut_ptr();
            ffi::ol_publishers(
                self.0.as_ptr(),
                topic.as_ptr(),
                room,
                MAX_PUBLISHERS,
                reason.as_mut_ptr(),
                REASON,
            )
        };
        found.truncate(reason.check(result)? as usize);
        Ok(found.iter().map(ffi::OlEndpoint::endpoint).collect())
    }

    /// How many subscriptions a topic has.
    ///
    /// # Errors
    /// What rcl said.
    pub fn count_subscribers(&self, topic: &str) -> Result<u32, RawError> {
        let topic = c_text(topic)?;
        let mut reason = Reason::new();
        // SAFETY: the domain is open and the text lives until the call returns.
        let result = unsafe {
            ffi::ol_count_subscribers(self.0.as_ptr(), topic.as_ptr(), reason.as_mut_ptr(), REASON)
        };
        reason.check(result)
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; routes hold an `Arc` and so are gone.
        unsafe { ffi::ol_domain_close(self.0.as_ptr()) }
    }
}

/// Both ends of a route.
#[derive(Debug)]
pub struct Ends<'a> {
    /// Topic and QoS of the subscription.
    pub from: (&'a str, Qos),
    /// Topic and QoS of the publisher.
    pub to: (&'a str, Qos),
}

/// What a route owns; closed when the route and all its wakers are gone.
#[derive(Debug)]
struct RouteHandle {
    raw: NonNull<ffi::OlRoute>,
    _domains: (Arc<Domain>, Arc<Domain>),
    _types: Arc<TypeSupport>,
}

// SAFETY: waiting, taking and publishing go through `Route`'s `&mut self`; waking is thread-safe in rcl.
unsafe impl Send for RouteHandle {}
// SAFETY: see above.
unsafe impl Sync for RouteHandle {}

impl Drop for RouteHandle {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; the domains outlive this call.
        unsafe { ffi::ol_route_close(self.raw.as_ptr()) }
    }
}

/// Ends the wait of a route from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<RouteHandle>);

impl Waker {
    /// Makes [`Route::wait`] return.
    pub fn wake(&self) {
        // SAFETY: guard conditions may be triggered from any thread.
        if unsafe { ffi::ol_route_wake(self.0.raw.as_ptr()) } != 0 {
            tracing::warn!("cannot wake a route");
        }
    }
}

/// A subscription in one domain and a publisher in another, for the same type.
#[derive(Debug)]
pub struct Route(Arc<RouteHandle>);

impl Route {
    /// Creates both ends.
    ///
    /// # Errors
    /// What rcl said.
    pub fn open(
        from: &Arc<Domain>,
        to: &Arc<Domain>,
        ends: &Ends<'_>,
        types: &Arc<TypeSupport>,
    ) -> Result<Self, RawError> {
        let (from_topic, to_topic) = (c_text(ends.from.0)?, c_text(ends.to.0)?);
        let mut reason = Reason::new();
        // SAFETY: the domains and the type support are kept alive by the route that is made here.
        let raw = unsafe {
            ffi::ol_route_open(
                from.0.as_ptr(),
                to.0.as_ptr(),
                from_topic.as_ptr(),
                to_topic.as_ptr(),
                types.handle(),
                &raw const ends.from.1,
                &raw const ends.to.1,
                reason.as_mut_ptr(),
                REASON,
            )
        };
        let raw = NonNull::new(raw).ok_or_else(|| reason.error())?;
        let domains = (Arc::clone(from), Arc::clone(to));
        Ok(Self(Arc::new(RouteHandle {
            raw,
            _domains: domains,
            _types: Arc::clone(types),
        })))
    }

    /// The identity of the route's publisher.
    ///
    /// # Errors
    /// What rcl said.
    pub fn gid(&self) -> Result<Gid, RawError> {
        let mut gid = Gid::default();
        let mut reason = Reason::new();
        // SAFETY: the gid has the size that raw.h states.
        let result = unsafe {
            ffi::ol_route_gid(
                self.0.raw.as_ptr(),
                gid.0.as_mut_ptr(),
                reason.as_mut_ptr(),
                REASON,
            )
        };
        reason.check(result).map(|_| gid)
    }

    /// Blocks until there may be a message (true), [`Waker::wake`] was called or the time is over.
    ///
    /// # Errors
    /// What rcl said.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, RawError> {
        let mut reason = Reason::new();
        // SAFETY: `&mut self` keeps other threads off the wait set.
        let result = unsafe {
            ffi::ol_route_wait(
                self.0.raw.as_ptr(),
                nanoseconds(timeout),
                reason.as_mut_ptr(),
                REASON,
            )
        };
        reason.check(result).map(|ready| ready > 0)
    }

    /// Takes the next message; its bytes stay inside for [`Route::publish`].
    ///
    /// # Errors
    /// What rcl said.
    pub fn take(&mut self) -> Result<Option<Taken>, RawError> {
        let mut taken = Taken::default();
        let mut reason = Reason::new();
        // SAFETY: `&mut self` keeps other threads off the message buffer.
        let result = unsafe {
            ffi::ol_route_take(
                self.0.raw.as_ptr(),
                &raw mut taken,
                reason.as_mut_ptr(),
                REASON,
            )
        };
        reason.check(result).map(|got| (got > 0).then_some(taken))
    }

    /// Publishes the message taken last.
    ///
    /// # Errors
    /// What rcl said.
    pub fn publish(&mut self) -> Result<(), RawError> {
        let mut reason = Reason::new();
        // SAFETY: `&mut self` keeps other threads off the message buffer.
        let result =
            unsafe { ffi::ol_route_publish(self.0.raw.as_ptr(), reason.as_mut_ptr(), REASON) };
        reason.check(result).map(drop)
    }

    /// Something to end a wait with.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.0))
    }
}
