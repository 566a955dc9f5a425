//! Service servers and clients whose type is known by name only.
//!
//! Requests and responses are never looked into: a server holds the request it took last, a client the response,
//! and one hands it to the other.

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use super::ffi::{self, OlClient, OlServer, RequestId};
use super::{Domain, RawError, TypeSupport, c_text, call, nanoseconds, open};

/// A service server.
#[derive(Debug)]
pub struct Server {
    raw: NonNull<OlServer>,
    _domain: Arc<Domain>,
    _types: Arc<TypeSupport>,
}

// SAFETY: waiting and taking happen in one thread and touch the wait set and the request; replying and waking touch
// only what rcl makes thread-safe.
unsafe impl Send for Server {}
// SAFETY: see above; the methods say who may call them.
unsafe impl Sync for Server {}

/// A service client.
#[derive(Debug)]
pub struct Client {
    raw: NonNull<OlClient>,
    _domain: Arc<Domain>,
    _types: Arc<TypeSupport>,
}

// SAFETY: waiting and taking happen in one thread and touch the wait set and the response; sending, asking for the
// server and waking touch only what rcl makes thread-safe.
unsafe impl Send for Client {}
// SAFETY: see above; the methods say who may call them.
unsafe impl Sync for Client {}

impl Server {
    /// Offers the service `name`.
    ///
    /// # Errors
    /// What rcl said, also when the type has no introspection library.
    pub fn open(
        domain: &Arc<Domain>,
        name: &str,
        types: &Arc<TypeSupport>,
    ) -> Result<Self, RawError> {
        let name = c_text(name)?;
        let raw = open(|err, len| {
            let (domain, types) = (domain.0.as_ptr(), types.handle());
            // SAFETY: the domain and the type support are kept alive by what is made here.
            unsafe { ffi::ol_server_open(domain, name.as_ptr(), types, err, len) }
        })?;
        Ok(Self {
            raw,
            _domain: Arc::clone(domain),
            _types: Arc::clone(types),
        })
    }

    /// Blocks until there may be a request or [`Server::wake`] was called. One thread waits and takes.
    ///
    /// # Errors
    /// What rcl said.
    pub fn wait(&self, timeout: Duration) -> Result<bool, RawError> {
        call(|err, len| {
            // SAFETY: one thread waits and takes.
            unsafe { ffi::ol_server_wait(self.raw.as_ptr(), nanoseconds(timeout), err, len) }
        })
        .map(|woken| woken > 0)
    }

    /// Ends a wait of another thread.
    pub fn wake(&self) {
        // SAFETY: guard conditions may be triggered from any thread.
        if unsafe { ffi::ol_server_wake(self.raw.as_ptr()) } != 0 {
            tracing::warn!("cannot wake a service");
        }
    }

    /// Takes the next request; it stays inside for [`Client::send`]. One thread waits, takes and sends.
    ///
    /// # Errors
    /// What rcl said.
    pub fn take(&self) -> Result<Option<RequestId>, RawError> {
        let mut id = RequestId::default();
        let got = call(|err, len| {
            // SAFETY: one thread waits and takes; the identity has the size that raw.h states.
            unsafe { ffi::ol_server_take(self.raw.as_ptr(), &raw mut id, err, len) }
        })?;
        Ok((got > 0).then_some(id))
    }

    /// Answers `id` with the response that `client` took last. Only the client's thread calls this.
    ///
    /// # Errors
    /// What rcl said.
    pub fn reply(&self, id: &RequestId, client: &Client) -> Result<(), RawError> {
        call(|err, len| {
            // SAFETY: the response belongs to the calling thread.
            unsafe { ffi::ol_server_reply(self.raw.as_ptr(), id, client.raw.as_ptr(), err, len) }
        })
        .map(drop)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; the domain outlives this call.
        unsafe { ffi::ol_server_close(self.raw.as_ptr()) }
    }
}

impl Client {
    /// Makes a client of the service `name`.
    ///
    /// # Errors
    /// What rcl said, also when the type has no introspection library.
    pub fn open(
        domain: &Arc<Domain>,
        name: &str,
        types: &Arc<TypeSupport>,
    ) -> Result<Self, RawError> {
        let name = c_text(name)?;
        let raw = open(|err, len| {
            let (domain, types) = (domain.0.as_ptr(), types.handle());
            // SAFETY: the domain and the type support are kept alive by what is made here.
            unsafe { ffi::ol_client_open(domain, name.as_ptr(), types, err, len) }
        })?;
        Ok(Self {
            raw,
            _domain: Arc::clone(domain),
            _types: Arc::clone(types),
        })
    }

    /// Blocks until there may be a response or [`Client::wake`] was called. One thread waits and takes.
    ///
    /// # Errors
    /// What rcl said.
    pub fn wait(&self, timeout: Duration) -> Result<bool, RawError> {
        call(|err, len| {
            // SAFETY: one thread waits and takes.
            unsafe { ffi::ol_client_wait(self.raw.as_ptr(), nanoseconds(timeout), err, len) }
        })
        .map(|woken| woken > 0)
    }

    /// Ends a wait of another thread.
    pub fn wake(&self) {
        // SAFETY: guard conditions may be triggered from any thread.
        if unsafe { ffi::ol_client_wake(self.raw.as_ptr()) } != 0 {
            tracing::warn!("cannot wake a client");
        }
    }

    /// Sends the request that `server` took last; returns its number. Only the server's thread calls this.
    ///
    /// # Errors
    /// What rcl said.
    pub fn send(&self, server: &Server) -> Result<i64, RawError> {
        let mut sequence = 0;
        call(|err, len| {
            let (client, server) = (self.raw.as_ptr(), server.raw.as_ptr());
            // SAFETY: the request belongs to the calling thread.
            unsafe { ffi::ol_client_send(client, server, &raw mut sequence, err, len) }
        })?;
        Ok(sequence)
    }

    /// Takes the next response and returns the number of its request; it stays inside for [`Server::reply`].
    ///
    /// # Errors
    /// What rcl said.
    pub fn take(&self) -> Result<Option<i64>, RawError> {
        let mut sequence = 0;
        let got = call(|err, len| {
            // SAFETY: one thread waits and takes.
            unsafe { ffi::ol_client_take(self.raw.as_ptr(), &raw mut sequence, err, len) }
        })?;
        Ok((got > 0).then_some(sequence))
    }

    /// Whether the service is there.
    ///
    /// # Errors
    /// What rcl said.
    pub fn is_ready(&self) -> Result<bool, RawError> {
        // SAFETY: the client is open.
        call(|err, len| unsafe { ffi::ol_client_ready(self.raw.as_ptr(), err, len) })
            .map(|ready| ready > 0)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; the domain outlives this call.
        unsafe { ffi::ol_client_close(self.raw.as_ptr()) }
    }
}
