//! The declarations of `raw.h`, field by field.

use std::ffi::{CStr, c_char, c_void};

use super::Endpoint;

/// Bytes of a publisher's identity; shorter ones are padded with zeros.
pub(super) const GID_SIZE: usize = 24;

/// The identity of a publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Gid(pub(super) [u8; GID_SIZE]);

/// Policies as rmw numbers them; durations in ns, 0 for the default, `i64::MAX` for infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Qos {
    /// 0 system default, 1 keep last, 2 keep all, 3 unknown.
    pub history: i32,
    /// Samples kept.
    pub depth: u32,
    /// 0 system default, 1 reliable, 2 best effort.
    pub reliability: i32,
    /// 0 system default, 1 transient local, 2 volatile.
    pub durability: i32,
    /// Longest time between samples.
    pub deadline_ns: i64,
    /// For how long a sample is of use.
    pub lifespan_ns: i64,
    /// 0 system default, 1 automatic, 3 manual by topic.
    pub liveliness: i32,
    /// Longest time between signs of life.
    pub lease_ns: i64,
}

/// What one message was.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Taken {
    /// Serialized size.
    pub bytes: u64,
    /// Wall clock of the publisher, 0 if unknown.
    pub source_ns: i64,
    /// Wall clock of the reception, 0 if unknown.
    pub received_ns: i64,
    /// Who published it.
    pub gid: Gid,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct OlEndpoint {
    qos: Qos,
    gid: Gid,
    type_name: [u8; 256],
}

impl Default for OlEndpoint {
    fn default() -> Self {
        let qos = Qos {
            history: 0,
            depth: 0,
            reliability: 0,
            durability: 0,
            deadline_ns: 0,
            lifespan_ns: 0,
            liveliness: 0,
            lease_ns: 0,
        };
        Self {
            qos,
            gid: Gid::default(),
            type_name: [0; 256],
        }
    }
}

impl OlEndpoint {
    pub(super) fn endpoint(&self) -> Endpoint {
        let type_name = CStr::from_bytes_until_nul(&self.type_name)
            .map(|text| text.to_string_lossy().into_owned());
        Endpoint {
            qos: self.qos,
            gid: self.gid,
            type_name: type_name.unwrap_or_default(),
        }
    }
}

#[repr(C)]
pub(super) struct OlDomain {
    _private: [u8; 0],
}

#[repr(C)]
pub(super) struct OlRoute {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub(super) fn ol_rmw_name() -> *const c_char;
    pub(super) fn ol_domain_open(
        domain_id: usize,
        node_name: *const c_char,
        argv: *const *const c_char,
        argc: i32,
        err: *mut c_char,
        err_len: usize,
    ) -> *mut OlDomain;
    pub(super) fn ol_domain_close(domain: *mut OlDomain);
    pub(super) fn ol_domain_wait_graph(
        domain: *mut OlDomain,
        timeout_ns: i64,
        err: *mut c_char,
        err_len: usize,
    ) -> i32;
    pub(super) fn ol_domain_wake(domain: *mut OlDomain) -> i32;
    pub(super) fn ol_publishers(
        domain: *mut OlDomain,
        topic: *const c_char,
        out: *mut OlEndpoint,
        max: usize,
        err: *mut c_char,
        err_len: usize,
    ) -> i32;
    pub(super) fn ol_count_subscribers(
        domain: *mut OlDomain,
        topic: *const c_char,
        err: *mut c_char,
        err_len: usize,
    ) -> i32;
    pub(super) fn ol_route_open(
        from: *mut OlDomain,
        to: *mut OlDomain,
        from_topic: *const c_char,
        to_topic: *const c_char,
        type_support: *const c_void,
        subscription: *const Qos,
        publisher: *const Qos,
        err: *mut c_char,
        err_len: usize,
    ) -> *mut OlRoute;
    pub(super) fn ol_route_close(route: *mut OlRoute);
    pub(super) fn ol_route_gid(
        route: *mut OlRoute,
        gid: *mut u8,
        err: *mut c_char,
        err_len: usize,
    ) -> i32;
    pub(super) fn ol_route_wait(
        route: *mut OlRoute,
        timeout_ns: i64,
        err: *mut c_char,
        err_len: usize,
    ) -> i32;
    pub(super) fn ol_route_wake(route: *mut OlRoute) -> i32;
    pub(super) fn ol_route_take(
        route: *mut OlRoute,
        taken: *mut Taken,
        err: *mut c_char,
        err_len: usize,
    ) -> i32;
    pub(super) fn ol_route_publish(route: *mut OlRoute, err: *mut c_char, err_len: usize) -> i32;
}
