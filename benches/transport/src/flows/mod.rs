//! The contenders, one file each.

pub(crate) mod kcp;
pub(crate) mod paced;
pub(crate) mod quic;
pub(crate) mod srt;
pub(crate) mod tcp;
pub(crate) mod udp;

/// A runtime with one thread, so that the caller's waits stay exact to the nanosecond.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
}
