//! The declarations of `raw.h`, field by field.

use std::ffi::{c_char, c_void};

/// Bytes of a publisher's identity; shorter ones are padded with zeros.
pub(super) const GID_SIZE: usize = 24;

/// The identity of a publisher.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct OlTaken {
    pub(super) data: *const u8,
    pub(super) bytes: u64,
    pub(super) source_ns: i64,
    pub(super) received_ns: i64,
    pub(super) gid: Gid,
}

#[repr(C)]
pub(super) struct OlEndpoint {
    pub(super) qos: Qos,
    pub(super) gid: Gid,
    pub(super) type_name: *const c_char,
    pub(super) node: *const c_char,
    pub(super) namespace: *const c_char,
}

/// Who asked for something, so that the answer finds its way back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct RequestId([u8; 32]);

macro_rules! opaque {
    ($($name:ident),*) => { $(
        #[repr(C)]
        pub(super) struct $name {
            _private: [u8; 0],
        }
    )* };
}
opaque!(OlDomain, OlPublisher, OlSubscription, OlServer, OlClient);

pub(super) type VisitEndpoint = extern "C" fn(*mut c_void, *const OlEndpoint);
pub(super) type VisitName = extern "C" fn(*mut c_void, *const c_char, *const c_char);

#[rustfmt::skip]
unsafe extern "C" {
    pub(super) fn ol_rmw_name() -> *const c_char;
    pub(super) fn ol_domain_open(domain_id: usize, node_name: *const c_char, argv: *const *const c_char, argc: i32, err: *mut c_char, err_len: usize) -> *mut OlDomain;
    pub(super) fn ol_domain_close(domain: *mut OlDomain);
    pub(super) fn ol_domain_wait_graph(domain: *mut OlDomain, timeout_ns: i64, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_domain_wake(domain: *mut OlDomain) -> i32;
    pub(super) fn ol_endpoints(domain: *mut OlDomain, topic: *const c_char, publishers: i32, visit: VisitEndpoint, context: *mut c_void, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_topics(domain: *mut OlDomain, visit: VisitName, context: *mut c_void, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_nodes(domain: *mut OlDomain, visit: VisitName, context: *mut c_void, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_services_of(domain: *mut OlDomain, node: *const c_char, namespace: *const c_char, visit: VisitName, context: *mut c_void, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_publisher_open(domain: *mut OlDomain, topic: *const c_char, type_support: *const c_void, qos: *const Qos, err: *mut c_char, err_len: usize) -> *mut OlPublisher;
    pub(super) fn ol_publisher_close(publisher: *mut OlPublisher);
    pub(super) fn ol_publisher_gid(publisher: *mut OlPublisher, gid: *mut u8, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_publisher_publish(publisher: *mut OlPublisher, data: *const u8, bytes: usize, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_publisher_assert_alive(publisher: *mut OlPublisher, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_publisher_flush(publisher: *mut OlPublisher, timeout_ns: i64) -> i32;
    pub(super) fn ol_subscription_open(domain: *mut OlDomain, topic: *const c_char, type_support: *const c_void, qos: *const Qos, watch_liveliness: i32, err: *mut c_char, err_len: usize) -> *mut OlSubscription;
    pub(super) fn ol_subscription_close(subscription: *mut OlSubscription);
    pub(super) fn ol_subscription_wait(subscription: *mut OlSubscription, timeout_ns: i64, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_subscription_wake(subscription: *mut OlSubscription) -> i32;
    pub(super) fn ol_subscription_take(subscription: *mut OlSubscription, taken: *mut OlTaken, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_subscription_alive(subscription: *mut OlSubscription) -> i32;
    pub(super) fn ol_subscription_lost(subscription: *mut OlSubscription) -> i32;
    pub(super) fn ol_server_open(domain: *mut OlDomain, name: *const c_char, type_support: *const c_void, err: *mut c_char, err_len: usize) -> *mut OlServer;
    pub(super) fn ol_server_close(server: *mut OlServer);
    pub(super) fn ol_server_wait(server: *mut OlServer, timeout_ns: i64, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_server_wake(server: *mut OlServer) -> i32;
    pub(super) fn ol_server_take(server: *mut OlServer, id: *mut RequestId, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_server_reply(server: *mut OlServer, id: *const RequestId, client: *mut OlClient, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_client_open(domain: *mut OlDomain, name: *const c_char, type_support: *const c_void, err: *mut c_char, err_len: usize) -> *mut OlClient;
    pub(super) fn ol_client_close(client: *mut OlClient);
    pub(super) fn ol_client_wait(client: *mut OlClient, timeout_ns: i64, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_client_wake(client: *mut OlClient) -> i32;
    pub(super) fn ol_client_send(client: *mut OlClient, server: *mut OlServer, sequence: *mut i64, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_client_take(client: *mut OlClient, sequence: *mut i64, err: *mut c_char, err_len: usize) -> i32;
    pub(super) fn ol_client_ready(client: *mut OlClient, err: *mut c_char, err_len: usize) -> i32;
}
