//! SIGINT and SIGTERM, which rclrs leaves to the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Tells whether the user or the system asked the process to end.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes over SIGINT and SIGTERM; the second one of either ends the process at once.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub fn install() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// Whether a signal came.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Waits for a signal without needing any CPU. Made first of all, so that no signal is missed.
#[derive(Debug)]
pub struct Waiter(Signals);

impl Waiter {
    /// Takes over SIGINT and SIGTERM.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub fn install() -> std::io::Result<Self> {
        Signals::new([SIGINT, SIGTERM]).map(Self)
    }

    /// Blocks until a signal comes, or returns at once if one came since it was installed.
    pub fn wait(mut self) {
        self.0.forever().next();
    }
}
