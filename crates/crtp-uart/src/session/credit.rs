//! The credit of one frame: a flag that a token sets and a frame clears. Owns how long the token has been
//! missing; decides nothing about what to do then.

use std::time::{Duration, Instant};

/// How often in a row a token may be taken for lost. A drone whose receiver stands still keeps what comes in a
/// buffer of 200 bytes and stops its motors once that has overflowed; three frames and the offers fit.
const MAX_PRESUMED: u32 = 3;
/// Offers while a frame is unanswered, for the same reason.
const MAX_OFFERS: u32 = 20;

/// What a token that came in was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// The answer to a frame.
    Awaited,
    /// The answer to a frame, after a stall.
    Late,
    /// Nobody waited for it.
    Surplus,
}

/// Credit for sending.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Credit {
    held: bool,
    /// Since when a token is missing.
    missing_since: Option<Instant>,
    stalled: bool,
    /// Nobody knows whether the peer was to give one at all.
    doubtful: bool,
    presumed: u32,
    offers: u32,
}

impl Credit {
    pub(super) const fn may_send(&self) -> bool {
        self.held
    }

    /// A token came in.
    pub(super) fn grant(&mut self) -> Token {
        let token = match (self.missing_since, self.stalled) {
            (None, _) if self.held => Token::Surplus,
            (Some(_), true) => Token::Late,
            _ => Token::Awaited,
        };
        *self = Self {
            held: true,
            ..Self::default()
        };
        token
    }

    /// A frame goes out.
    pub(super) fn spend(&mut self, now: Instant) {
        self.held = false;
        self.doubtful = false;
        self.missing_since = Some(now);
    }

    /// The peer is there, but nobody knows whether it has granted a token that was lost.
    pub(super) fn unknown(&mut self, now: Instant) {
        if !self.held && self.missing_since.is_none() {
            self.missing_since = Some(now);
            self.doubtful = true;
        }
    }

    /// An offer goes out.
    pub(super) fn count_offer(&mut self) {
        self.offers += u32::from(self.missing_since.is_some());
    }

    /// Whether another offer may go out although the peer may not be reading.
    pub(super) const fn can_offer(&self) -> bool {
        self.offers < MAX_OFFERS
    }

    /// Since when the answer to a frame is awaited that surely reached a peer which reads.
    pub(super) fn answer_since(&self) -> Option<Instant> {
        self.missing_since
            .filter(|_| !self.held && !self.stalled && !self.doubtful && self.presumed == 0)
    }

    /// When the missing token counts as a stall, unless it has counted already.
    pub(super) fn stall_at(&self, after: Duration) -> Option<Instant> {
        let since = self
            .missing_since
            .filter(|_| !self.stalled && !self.doubtful)?;
        Some(since + after)
    }

    pub(super) fn stall(&mut self) {
        self.stalled = true;
    }

    /// When the missing token is to be taken for lost.
    pub(super) fn presume_at(&self, after: Duration) -> Option<Instant> {
        let since = self
            .missing_since
            .filter(|_| !self.held && self.presumed < MAX_PRESUMED)?;
        Some(since + after * 2_u32.pow(self.presumed))
    }

    /// Takes the missing token for lost. It stays missing, so that a real one still ends the stall.
    pub(super) fn presume(&mut self) {
        self.held = true;
        self.presumed += 1;
    }
}
