//! The framings of CRTP on byte streams: CPX and syslink on a serial port, CPX over TCP, and the port itself.
//!
//! [`cpx`], [`session`] and [`syslink`] are pure: bytes and time come in as arguments, bytes go out. [`serial`],
//! [`pump`] and [`pty`] are thin drivers that add nothing to what the session says and never write a byte of their own.

pub mod cpx;
pub mod outbox;
pub mod pty;
pub mod pump;
pub mod serial;
pub mod session;
pub mod syslink;
mod wire;

pub use outbox::{Outbox, SendError};
pub use pty::{Pty, PtyError};
pub use pump::{Gone, Pump};
pub use serial::{LowLatency, Serial, SerialError};
pub use session::{Arrived, Config, Device, Event, Host, Leaving, Session};
pub use wire::{HostSession, Wire};
