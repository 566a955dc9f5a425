//! One link behind a C interface: open, send, receive, status, close. `openlink.h` has the same in C.
//!
//! [`Handle`] owns a thread that drives the link; every call here only touches its queues. Packets are whole CRTP
//! packets, header first. Nothing here decides what is sent or when.

mod c;
mod handle;

pub use c::{
    openlink_close, openlink_free, openlink_open, openlink_receive, openlink_send, openlink_status,
};
pub use handle::{Handle, OpenError, SendError, Status};
