//! A safe face for the C files here: contexts, graph queries, serialized messages and services by type name, which
//! rclrs does not expose.
//!
//! All `unsafe` code of the ROS layer is in this module. It decides nothing; see `nodes::domain_bridge`.
#![allow(unsafe_code)]

mod domain;
mod ffi;
mod service;
mod topic;
mod type_support;

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::time::Duration;

pub use domain::{Domain, Endpoint};
pub use ffi::{Gid, Qos, RequestId};
pub use service::{Client, Server};
pub use topic::{Publisher, Subscription, Taken, Waker};
pub use type_support::TypeSupport;

/// Longest reason that C hands over, bytes.
const REASON: usize = 1024;

/// What rcl said.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RawError(String);

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

/// Calls a C function that returns a number and writes a reason.
fn call(function: impl FnOnce(*mut c_char, usize) -> i32) -> Result<u32, RawError> {
    let mut reason = Reason::new();
    let result = function(reason.as_mut_ptr(), REASON);
    reason.check(result)
}

/// Calls a C function that opens something and writes a reason.
fn open<T>(
    function: impl FnOnce(*mut c_char, usize) -> *mut T,
) -> Result<std::ptr::NonNull<T>, RawError> {
    let mut reason = Reason::new();
    let opened = function(reason.as_mut_ptr(), REASON);
    std::ptr::NonNull::new(opened).ok_or_else(|| reason.error())
}

fn c_text(text: &str) -> Result<CString, RawError> {
    CString::new(text).map_err(|_| RawError(format!("{text:?} contains a NUL byte")))
}

fn nanoseconds(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX)
}

impl Gid {
    /// Reads what [`fmt::Display`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut gid = Self::default();
        if text.len() != 2 * ffi::GID_SIZE || !text.is_ascii() {
            return None;
        }
        for (place, byte) in gid.0.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
        }
        Some(gid)
    }

    /// An identity made of a number, for tests.
    #[cfg(test)]
    pub(crate) fn of(number: u8) -> Self {
        let mut gid = Self::default();
        gid.0[0] = number;
        gid
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

/// The name of the middleware in use, such as `rmw_fastrtps_cpp`.
#[must_use]
pub fn rmw_name() -> String {
    // SAFETY: rmw returns a constant text.
    let name = unsafe { CStr::from_ptr(ffi::ol_rmw_name()) };
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_survives_its_text() {
        let gid = Gid(std::array::from_fn(|n| n as u8 * 9));
        assert_eq!(Gid::parse(&gid.to_string()), Some(gid));
        for bad in ["", "00", &"g".repeat(48), &"é".repeat(24)] {
            assert_eq!(Gid::parse(bad), None);
        }
    }
}
