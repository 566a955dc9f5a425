//! Publishers and subscriptions of serialized messages.

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use super::ffi::{self, Gid, OlPublisher, OlSubscription, OlTaken, Qos};
use super::{Domain, RawError, TypeSupport, c_text, call, nanoseconds, open};

/// A publisher of serialized messages.
#[derive(Debug)]
pub struct Publisher {
    raw: NonNull<OlPublisher>,
    gid: Gid,
    _domain: Arc<Domain>,
    _types: Arc<TypeSupport>,
}

// SAFETY: publishing, asserting liveliness and waiting for acknowledgements are thread-safe in rcl.
unsafe impl Send for Publisher {}
// SAFETY: see above.
unsafe impl Sync for Publisher {}

impl Publisher {
    /// Opens a publisher of `topic`.
    ///
    /// # Errors
    /// What rcl said.
    pub fn open(
        domain: &Arc<Domain>,
        topic: &str,
        types: &Arc<TypeSupport>,
        qos: &Qos,
    ) -> Result<Self, RawError> {
        let topic = c_text(topic)?;
        let raw = open(|err, len| {
            let (domain, types) = (domain.0.as_ptr(), types.handle());
            // SAFETY: the domain and the type support are kept alive by what is made here.
            unsafe { ffi::ol_publisher_open(domain, topic.as_ptr(), types, qos, err, len) }
        })?;
        let mut publisher = Self {
            raw,
            gid: Gid::default(),
            _domain: Arc::clone(domain),
            _types: Arc::clone(types),
        };
        let gid = publisher.gid.0.as_mut_ptr();
        call(|err, len| {
            // SAFETY: the gid has the size that raw.h states.
            unsafe { ffi::ol_publisher_gid(raw.as_ptr(), gid, err, len) }
        })?;
        Ok(publisher)
    }

    /// The publisher's identity, as receivers of its messages see it.
    #[must_use]
    pub const fn gid(&self) -> Gid {
        self.gid
    }

    /// Publishes a serialized message.
    ///
    /// # Errors
    /// What rcl said.
    pub fn publish(&self, message: &[u8]) -> Result<(), RawError> {
        call(|err, len| {
            let (data, bytes) = (message.as_ptr(), message.len());
            // SAFETY: the bytes live until the call returns; rcl only reads them.
            unsafe { ffi::ol_publisher_publish(self.raw.as_ptr(), data, bytes, err, len) }
        })
        .map(drop)
    }

    /// Tells readers that the publisher is alive, where its liveliness is manual.
    ///
    /// # Errors
    /// What rcl said.
    pub fn assert_alive(&self) -> Result<(), RawError> {
        // SAFETY: the publisher is open.
        call(|err, len| unsafe { ffi::ol_publisher_assert_alive(self.raw.as_ptr(), err, len) })
            .map(drop)
    }

    /// Waits until the reliable readers have everything; false when the time is over first.
    #[must_use]
    pub fn flush(&self, timeout: Duration) -> bool {
        // SAFETY: the publisher is open.
        unsafe { ffi::ol_publisher_flush(self.raw.as_ptr(), nanoseconds(timeout)) == 1 }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; the domain outlives this call.
        unsafe { ffi::ol_publisher_close(self.raw.as_ptr()) }
    }
}

/// A message as it was taken, in the subscription's own buffer.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// The serialized message.
    pub data: &'a [u8],
    /// Wall clock of the publisher, ns since 1970, 0 if unknown.
    pub source_ns: i64,
    /// Wall clock of the reception, ns since 1970, 0 if unknown.
    pub received_ns: i64,
    /// Who published it.
    pub gid: Gid,
}

#[derive(Debug)]
struct Handle {
    raw: NonNull<OlSubscription>,
    _domain: Arc<Domain>,
    _types: Arc<TypeSupport>,
}

// SAFETY: waiting and taking go through `Subscription`'s `&mut self`; waking is thread-safe in rcl.
unsafe impl Send for Handle {}
// SAFETY: see above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; the domain outlives this call.
        unsafe { ffi::ol_subscription_close(self.raw.as_ptr()) }
    }
}

/// Ends the wait of a subscription from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Handle>);

impl Waker {
    /// Makes [`Subscription::wait`] return.
    pub fn wake(&self) {
        // SAFETY: guard conditions may be triggered from any thread.
        if unsafe { ffi::ol_subscription_wake(self.0.raw.as_ptr()) } != 0 {
            tracing::warn!("cannot wake a subscription");
        }
    }
}

/// A subscription of serialized messages; closed when it and all its wakers are gone.
#[derive(Debug)]
pub struct Subscription(Arc<Handle>);

impl Subscription {
    /// Opens a subscription of `topic`; with `watch_liveliness` a change of liveliness ends a wait too.
    ///
    /// # Errors
    /// What rcl said.
    pub fn open(
        domain: &Arc<Domain>,
        topic: &str,
        types: &Arc<TypeSupport>,
        qos: &Qos,
        watch_liveliness: bool,
    ) -> Result<Self, RawError> {
        let topic = c_text(topic)?;
        let watch = i32::from(watch_liveliness);
        let raw = open(|err, len| {
            let (domain, types) = (domain.0.as_ptr(), types.handle());
            // SAFETY: the domain and the type support are kept alive by what is made here.
            unsafe {
                ffi::ol_subscription_open(domain, topic.as_ptr(), types, qos, watch, err, len)
            }
        })?;
        Ok(Self(Arc::new(Handle {
            raw,
            _domain: Arc::clone(domain),
            _types: Arc::clone(types),
        })))
    }

    /// Blocks until there may be a message or an event or [`Waker::wake`] was called (true), or the time is over.
    ///
    /// # Errors
    /// What rcl said.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, RawError> {
        call(|err, len| {
            // SAFETY: `&mut self` keeps other threads off the wait set.
            unsafe {
                ffi::ol_subscription_wait(self.0.raw.as_ptr(), nanoseconds(timeout), err, len)
            }
        })
        .map(|woken| woken > 0)
    }

    /// Takes the next message.
    ///
    /// # Errors
    /// What rcl said.
    pub fn take(&mut self) -> Result<Option<Taken<'_>>, RawError> {
        let mut taken = OlTaken {
            data: std::ptr::null(),
            bytes: 0,
            source_ns: 0,
            received_ns: 0,
            gid: Gid::default(),
        };
        let got = call(|err, len| {
            // SAFETY: `&mut self` keeps other threads off the message buffer.
            unsafe { ffi::ol_subscription_take(self.0.raw.as_ptr(), &raw mut taken, err, len) }
        })?;
        if got == 0 || taken.data.is_null() {
            return Ok(None);
        }
        // SAFETY: the buffer stays as it is until the next take, which needs `&mut self` again.
        let data = unsafe { std::slice::from_raw_parts(taken.data, taken.bytes as usize) };
        Ok(Some(Taken {
            data,
            source_ns: taken.source_ns,
            received_ns: taken.received_ns,
            gid: taken.gid,
        }))
    }

    /// How many publishers are alive, if that changed since the last call.
    #[must_use]
    pub fn alive(&mut self) -> Option<u32> {
        // SAFETY: `&mut self` keeps other threads off the event.
        u32::try_from(unsafe { ffi::ol_subscription_alive(self.0.raw.as_ptr()) }).ok()
    }

    /// Samples that the middleware reports as lost since the last call.
    #[must_use]
    pub fn lost(&mut self) -> u64 {
        // SAFETY: `&mut self` keeps other threads off the event.
        u64::try_from(unsafe { ffi::ol_subscription_lost(self.0.raw.as_ptr()) }).unwrap_or(0)
    }

    /// Something to end a wait with.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.0))
    }
}
