//! Token bucket for repairs: every new message pays for the repairs that the redundancy cap allows, and a trickle keeps
//! reliable messages trying through an outage. Keeps a narrow link from a storm of repairs.

use std::time::{Duration, Instant};

const MAX_TOKENS: f64 = 24.0;
const INITIAL_TOKENS: f64 = 4.0;
/// One repair each 50 ms whatever the traffic.
const TRICKLE_PER_S: f64 = 20.0;

/// Repair allowance of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    per_message: f64,
    tokens: f64,
    /// At most one token, for messages that never expire.
    trickle: f64,
    filled: Option<Instant>,
}

impl Budget {
    /// `max_redundancy` is the largest mean number of datagrams per message.
    pub(crate) fn new(max_redundancy: f32) -> Self {
        let per_message = f64::from(max_redundancy) - 1.0;
        Self {
            per_message,
            tokens: INITIAL_TOKENS,
            trickle: 1.0,
            filled: None,
        }
    }

    /// A new message left.
    pub(crate) fn on_message(&mut self) {
        self.tokens = (self.tokens + self.per_message).min(MAX_TOKENS);
    }

    /// Whether a datagram of repairs may leave; `reliable` if its first message never expires.
    pub(crate) fn ready(&mut self, now: Instant, reliable: bool) -> bool {
        let filled = *self.filled.get_or_insert(now);
        let elapsed = now.saturating_duration_since(filled).as_secs_f64();
        self.trickle = (self.trickle + elapsed * TRICKLE_PER_S).min(1.0);
        self.filled = Some(now.max(filled));
        self.tokens >= 1.0 || (reliable && self.trickle >= 1.0)
    }

    /// Whether the cap keeps repairs back.
    pub(crate) fn is_empty(&self) -> bool {
        self.tokens < 1.0
    }

    /// A datagram of repairs left.
    pub(crate) fn spend(&mut self) {
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
        } else {
            self.trickle = 0.0;
        }
    }

    /// When a repair of a message that never expires may leave, if no new message comes before.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        let missing = (1.0 - self.trickle).max(0.0) / TRICKLE_PER_S;
        self.filled.unwrap_or(now) + Duration::from_secs_f64(missing) + Duration::from_micros(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_never_exceed_the_cap() {
        let start = Instant::now();
        let mut budget = Budget::new(2.5);
        let mut repairs = 0.0;
        for i in 0..1000u32 {
            let now = start + Duration::from_millis(1) * i;
            budget.on_message();
            while budget.ready(now, false) {
                budget.spend();
                repairs += 1.0;
            }
        }
        assert!(repairs <= 1000.0 * 1.5 + INITIAL_TOKENS, "{repairs}");
        assert!(repairs >= 1000.0 * 1.5, "{repairs}");
    }

    #[test]
    fn trickle_goes_on_without_messages() {
        let start = Instant::now();
        let mut budget = Budget::new(1.0);
        while budget.ready(start, true) {
            budget.spend();
        }
        assert!(!budget.ready(start, true));
        assert!(!budget.ready(budget.next(start), false));
        assert!(budget.ready(budget.next(start), true));
    }
}
