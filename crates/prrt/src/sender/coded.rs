//! Symbols of a video frame on their way out: first all of the frame, then as many parity symbols as were lost plus one in
//! the first round of repairs, plus two in the next. Which ones were lost does not matter. Knows no other frame.

use crate::code;

/// Code of one frame.
#[derive(Debug)]
pub(super) struct Code {
    /// All parity symbols, made when the first is needed.
    made: Vec<u8>,
    count: u16,
    parity: u16,
    /// Parity symbols sent.
    next: u16,
    /// Parity symbols to be sent beyond those.
    wanted: u16,
    /// Symbols sent that are neither acknowledged nor taken for lost.
    in_air: u16,
    round: u16,
    /// Parity symbols of each round, where that is set by hand.
    vector: Option<Box<[u8]>>,
}

impl Code {
    pub(super) fn new(count: u16) -> Self {
        let parity = code::parity_symbols(count.into());
        Self {
            made: Vec::new(),
            count,
            parity: u16::try_from(parity).unwrap_or(u16::MAX - count),
            next: 0,
            wanted: 0,
            in_air: 0,
            round: 0,
            vector: None,
        }
    }

    /// All symbols.
    pub(super) const fn symbols(&self) -> usize {
        self.count as usize + self.parity as usize
    }

    /// Sends the parity symbols of `vector`, round by round, and nothing beyond.
    pub(super) fn set_vector(&mut self, vector: &[u8]) {
        self.vector = Some(vector.into());
    }

    /// Whether nothing is sent again once the parity is used up.
    pub(super) const fn is_classic(&self) -> bool {
        self.vector.is_some()
    }

    /// Sends `symbols` of parity behind the frame without waiting for a loss.
    pub(super) fn ahead(&mut self, symbols: u16) {
        let by_hand = self
            .vector
            .as_ref()
            .map(|v| v.first().copied().unwrap_or(0));
        let symbols = by_hand.map_or(symbols, u16::from);
        self.wanted = self.wanted.max(symbols).min(self.parity - self.next);
    }

    /// Whether every parity symbol has been sent.
    pub(super) const fn is_used_up(&self) -> bool {
        self.next >= self.parity
    }

    /// The parity symbol to send next, if one is wanted.
    pub(super) fn peek(&self) -> Option<u16> {
        (self.wanted > 0 && !self.is_used_up()).then(|| self.count + self.next)
    }

    /// A symbol left.
    pub(super) fn sent(&mut self, symbol: u16) {
        self.in_air += 1;
        if symbol >= self.count && symbol == self.count + self.next {
            self.next += 1;
            self.wanted = self.wanted.saturating_sub(1);
        }
    }

    /// A symbol arrived (for the first time).
    pub(super) fn acked(&mut self) {
        self.in_air = self.in_air.saturating_sub(1);
    }

    /// A symbol seems lost; `needed` more have to arrive, `unsent` of the frame have not left yet.
    pub(super) fn lost(&mut self, needed: u16, unsent: u16) {
        self.in_air = self.in_air.saturating_sub(1);
        let coming = self.in_air + self.wanted + unsent;
        let missing = needed.saturating_sub(coming);
        if missing > 0 {
            self.round = self.round.saturating_add(1);
            let more = self.repairs(missing);
            self.wanted = (self.wanted + more).min(self.parity - self.next);
        }
    }

    /// Parity symbols of the round that begins.
    fn repairs(&self, missing: u16) -> u16 {
        match &self.vector {
            Some(vector) => vector
                .get(usize::from(self.round))
                .copied()
                .map_or(0, u16::from),
            None => missing + self.round.min(2),
        }
    }

    /// Makes the parity symbols if that has not happened.
    pub(super) fn make(&mut self, frame: &[u8], size: u16) {
        if self.made.is_empty() {
            self.made = code::encode(frame, size.into()).unwrap_or_default();
        }
    }

    /// The bytes of parity symbol number `symbol - count`.
    pub(super) fn bytes(&self, symbol: u16, size: u16) -> Option<&[u8]> {
        let start = usize::from(symbol.checked_sub(self.count)?) * usize::from(size);
        self.made.get(start..start + usize::from(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_send_one_more_than_missing_and_then_two_more() {
        let mut code = Code::new(6);
        (0..6).for_each(|symbol| code.sent(symbol));
        (0..4).for_each(|_| code.acked());
        code.lost(2, 0);
        assert_eq!((code.wanted, code.peek()), (2, Some(6)));
        code.lost(2, 0);
        assert_eq!(code.wanted, 2, "what is coming is enough");
        code.sent(6);
        code.sent(7);
        assert_eq!(code.peek(), None);
        code.lost(2, 0);
        assert_eq!(code.wanted, 3);
    }

    #[test]
    fn a_vector_set_by_hand_is_kept_to() {
        let mut code = Code::new(6);
        code.set_vector(&[1, 3]);
        code.ahead(9);
        assert_eq!(code.wanted, 1);
        (0..7).for_each(|symbol| code.sent(symbol));
        (0..4).for_each(|_| code.acked());
        code.lost(2, 0);
        assert_eq!(code.wanted, 0, "one is missing and one in the air");
        code.lost(2, 0);
        assert_eq!(code.wanted, 3);
        (7..10).for_each(|symbol| code.sent(symbol));
        (0..4).for_each(|_| code.lost(2, 0));
        assert_eq!(code.wanted, 0);
    }

    #[test]
    fn nothing_beyond_the_parity_that_exists() {
        let mut code = Code::new(1);
        code.sent(0);
        code.ahead(100);
        assert_eq!(code.wanted, 4);
        (1..5).for_each(|symbol| code.sent(symbol));
        assert!(code.is_used_up() && code.peek().is_none());
    }
}
