//! One interface for every way to reach a drone or a client, and the loop that drives them.
//!
//! A [`Link`] is a non-blocking driver around a pure state machine: it names the file descriptors to wait for,
//! is told when they are ready or a timer is due, and exchanges whole CRTP packets. It never blocks, never
//! sleeps and starts no thread; the [`Reactor`] that owns it does the waiting.

mod interface;
pub mod key_file;
mod open;
mod poll;
mod prrt;
pub mod pty;
#[cfg(feature = "radio")]
mod radio;
mod reactor;
mod sim;
mod stamp;
pub mod tap;
mod tcp;
mod throttle;
pub mod uart;
mod udp;
pub mod uri;
mod waker;

pub use crate::tap::LinkTap;
pub use interface::{
    Class, Event, Interest, Link, LinkStats, Outgoing, Path, Received, Refusal, SendOutcome, State,
    class_of,
};
pub use open::{OpenError, open};
pub use prrt::{PrrtLink, PrrtOptions};
#[cfg(feature = "radio")]
pub use radio::RadioLink;
pub use reactor::Reactor;
pub use sim::SimLink;
pub use tcp::{TcpClient, TcpServer};
pub use uart::{UartConfig, UartError, UartLink};
pub use udp::{UdpClient, UdpServer};
pub use uri::{Role, Uri, UriError};
pub use waker::Waker;
