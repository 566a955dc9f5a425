//! Timers of this thread to the nanosecond instead of the usual 50 us late.

use std::num::NonZeroU64;

/// Asks for it; without it timers are only less exact, so a refusal is logged and no more.
pub(crate) fn make_exact() {
    if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
        tracing::debug!("timer slack stays as it is: {error}");
    }
}
