//! CPX framing over a serial port: codec, credit, session and the port itself.
//!
//! [`cpx`] and [`session`] are pure: bytes and time come in as arguments, bytes go out. [`serial`],
//! [`pump`] and [`pty`] are thin drivers that add nothing to what the session says and never write a byte of their own.

pub mod cpx;
pub mod pty;
pub mod pump;
pub mod serial;
pub mod session;

pub use pty::{Pty, PtyError};
pub use pump::{Gone, Pump};
pub use serial::{LowLatency, Serial, SerialError};
pub use session::{Config, Device, Event, Host, SendError, Session};
