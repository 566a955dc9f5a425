//! The C functions. Owns nothing but the conversion of pointers; all behaviour is in [`Handle`].
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

use link::State;

use crate::handle::{Handle, SendError};

/// Opens a link. On failure it is null, and why is written to `error` (at most `size` bytes, ends with NUL).
///
/// # Safety
/// `uri` is a C string; `error` has room for `size` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openlink_open(
    uri: *const c_char,
    error: *mut c_char,
    size: usize,
) -> *mut Handle {
    // SAFETY: the caller promises a C string.
    let uri = unsafe { CStr::from_ptr(uri) };
    let opened = uri.to_str().map_err(|e| e.to_string());
    match opened.and_then(|uri| Handle::open(uri).map_err(|e| e.to_string())) {
        Ok(handle) => Box::into_raw(Box::new(handle)),
        Err(text) => {
            // SAFETY: the caller promises the room.
            unsafe { write_text(&text, error, size) };
            std::ptr::null_mut()
        }
    }
}

/// Queues a packet, header first. 0: taken; -1: closed; -2: too many wait; -3: not 1 to 31 bytes.
///
/// # Safety
/// `link` is open or closed but not freed; `bytes` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openlink_send(
    link: *const Handle,
    bytes: *const u8,
    length: usize,
) -> c_int {
    // SAFETY: the caller promises both.
    let (link, bytes) = unsafe { (&*link, std::slice::from_raw_parts(bytes, length)) };
    match link.send(bytes) {
        Ok(()) => 0,
        Err(SendError::Closed) => -1,
        Err(SendError::Full) => -2,
        Err(SendError::NoPacket) => -3,
    }
}

/// Waits for a packet and writes it to `bytes`. Its length; 0 when `wait_ms` is over; -1 once the link is closed.
///
/// # Safety
/// `link` is open or closed but not freed; `bytes` has room for 31 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openlink_receive(
    link: *const Handle,
    bytes: *mut u8,
    wait_ms: u32,
) -> c_int {
    // SAFETY: the caller promises it.
    let link = unsafe { &*link };
    let Some(packet) = link.receive(Duration::from_millis(wait_ms.into())) else {
        return if link.status().state == State::Closed {
            -1
        } else {
            0
        };
    };
    let data = packet.as_bytes();
    // SAFETY: a packet has at most 31 bytes, for which the caller promises room.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), bytes, data.len()) };
    data.len() as c_int
}

/// State of a link: 0 connecting, 1 up, 2 lost (it calls again by itself), 3 closed. `quality` gets the share of what
/// arrived at the first attempt, 0 to 1, or -1 where that is not known; `text` the last event in words.
///
/// # Safety
/// `link` is open or closed but not freed; `quality` is valid; `text` has room for `size` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openlink_status(
    link: *const Handle,
    quality: *mut f64,
    text: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the caller promises it.
    let status = unsafe { &*link }.status();
    // SAFETY: the caller promises a place for the number and room for the text.
    unsafe {
        quality.write(status.quality.unwrap_or(-1.0));
        write_text(&status.text, text, size);
    }
    match status.state {
        State::Connecting => 0,
        State::Up => 1,
        State::Down => 2,
        State::Closed => 3,
    }
}

/// Closes: the last packets leave, and whoever waits in [`openlink_receive`] returns. The link is freed later.
///
/// # Safety
/// `link` is open or closed but not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openlink_close(link: *const Handle) {
    // SAFETY: the caller promises it.
    unsafe { &*link }.close();
}

/// Frees a link, which closes it.
///
/// # Safety
/// `link` came from [`openlink_open`], is not freed, and no other call is using it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openlink_free(link: *mut Handle) {
    // SAFETY: the caller promises that it is the last user.
    drop(unsafe { Box::from_raw(link) });
}

/// Writes as much of `text` as fits, and a NUL.
///
/// # Safety
/// `out` has room for `size` bytes, or is null.
unsafe fn write_text(text: &str, out: *mut c_char, size: usize) {
    let Some(room) = size.checked_sub(1).filter(|_| !out.is_null()) else {
        return;
    };
    let bytes = &text.as_bytes()[..text.floor_char_boundary_at(room)];
    // SAFETY: the caller promises the room, and `bytes` is one shorter than it.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len());
        out.add(bytes.len()).write(0);
    }
}

/// Cutting text where a character ends.
trait Cut {
    /// The last end of a character that is not beyond `at`.
    fn floor_char_boundary_at(&self, at: usize) -> usize;
}

impl Cut for str {
    fn floor_char_boundary_at(&self, at: usize) -> usize {
        let at = at.min(self.len());
        (0..=at)
            .rev()
            .find(|&end| self.is_char_boundary(end))
            .unwrap_or(0)
    }
}
