//! Proof of address without state: a cookie is a keyed hash of the client's address and the time. Used only while many
//! strangers knock.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::wire::{COOKIE_LEN, Cookie};

/// A cookie is good for between one and two of these.
const PERIOD: Duration = Duration::from_secs(5);

/// Makes and checks cookies of one endpoint.
#[derive(Debug)]
pub(crate) struct Cookies {
    start: Instant,
    secret: [u64; 2],
}

impl Cookies {
    pub(crate) const fn new(start: Instant, secret: [u64; 2]) -> Self {
        Self { start, secret }
    }

    fn period(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_secs() / PERIOD.as_secs()
    }

    fn for_period(&self, from: SocketAddr, period: u64) -> Cookie {
        let mut cookie = [0; COOKIE_LEN];
        for (half, place) in cookie.chunks_mut(8).enumerate() {
            let mut hasher = DefaultHasher::new();
            (self.secret, half, from, period).hash(&mut hasher);
            place.copy_from_slice(&hasher.finish().to_be_bytes());
        }
        cookie
    }

    /// The cookie for a client now.
    pub(crate) fn make(&self, now: Instant, from: SocketAddr) -> Cookie {
        self.for_period(from, self.period(now))
    }

    /// Whether a client has shown a cookie that was sent to its address lately.
    pub(crate) fn check(&self, now: Instant, from: SocketAddr, cookie: &Cookie) -> bool {
        let period = self.period(now);
        *cookie == self.for_period(from, period)
            || period
                .checked_sub(1)
                .is_some_and(|before| *cookie == self.for_period(from, before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_and_a_short_time() {
        let start = Instant::now();
        let cookies = Cookies::new(start, [1, 2]);
        let here = SocketAddr::from(([10, 0, 0, 1], 5000));
        let there = SocketAddr::from(([10, 0, 0, 2], 5000));
        let cookie = cookies.make(start, here);
        assert!(cookies.check(start + PERIOD, here, &cookie));
        assert!(!cookies.check(start, there, &cookie));
        assert!(!cookies.check(start + PERIOD * 2, here, &cookie));
        assert!(!cookies.check(start, here, &[0; COOKIE_LEN]));
    }
}
