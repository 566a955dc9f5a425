//! When the kernel received the last datagram that was read. Owns the one system call for it (`SIOCGSTAMPNS`,
//! socket(7)); the first call on a socket only switches the stamps on.
#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::ioctl::{Getter, Opcode};
use rustix::time::{ClockId, clock_gettime};

/// `SIOCGSTAMPNS` with 64-bit times, linux/sockios.h: `_IOR(0x89, 0x07, long long[2])`.
const SIOCGSTAMPNS: Opcode = rustix::ioctl::opcode::read::<[i64; 2]>(0x89, 0x07);
/// An older stamp belongs to a datagram from before the stamps were switched on, or the clock was set.
const OLDEST: Duration = Duration::from_secs(5);

/// Switches the stamps on.
pub(crate) fn enable(socket: impl AsFd) {
    // The first question is answered with "no stamp yet" and switches them on.
    let _ = wall_ns(socket);
}

/// When the kernel received the datagram that was read last, if it says so.
pub(crate) fn last(socket: impl AsFd) -> Option<Instant> {
    let stamp = wall_ns(socket)?;
    let now = Instant::now();
    let wall = clock_gettime(ClockId::Realtime);
    let wall = i128::from(wall.tv_sec) * 1_000_000_000 + i128::from(wall.tv_nsec);
    let age = Duration::from_nanos(u64::try_from(wall - stamp).ok()?);
    (age < OLDEST).then(|| now.checked_sub(age)).flatten()
}

/// The stamp on the wall clock, ns since 1970.
fn wall_ns(socket: impl AsFd) -> Option<i128> {
    // SAFETY: SIOCGSTAMPNS of this number writes two 64-bit numbers, seconds and nanoseconds, and nothing else.
    let [seconds, nanoseconds] = unsafe {
        let get = Getter::<SIOCGSTAMPNS, [i64; 2]>::new();
        rustix::ioctl::ioctl(socket, get)
    }
    .ok()?;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_stamp_lies_between_sending_and_reading() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        enable(&receiver);
        let before = Instant::now();
        sender
            .send_to(&[1], receiver.local_addr().unwrap())
            .unwrap();
        receiver.recv(&mut [0; 4]).unwrap();
        let at = last(&receiver).unwrap();
        // The two clocks are read one after the other, so that a preemption in between may shift the stamp.
        let slack = Duration::from_millis(200);
        assert!(
            at + slack >= before && at <= Instant::now() + slack,
            "{at:?}"
        );
    }
}
