//! Finds frames in a stream of bytes. After a false start it goes on one byte behind that start, so that a
//! frame hidden in a damaged one is still found. It allocates nothing and judges no order of frames.

use arrayvec::ArrayVec;

use super::{Header, MAX_FRAME, MAX_LEN, START, checksum};

/// What the stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// `FF 00`.
    ClearToSend,
    /// A frame whose checksum and version are right.
    Frame(Frame<'a>),
}

/// A frame with a good checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Route and function.
    pub header: Header,
    /// 0 to 98 bytes.
    pub data: &'a [u8],
}

/// Counters since the decoder was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeStats {
    /// Frames with a good checksum and version.
    pub frames: u64,
    /// Clear-to-send tokens.
    pub tokens: u64,
    /// Candidates whose checksum was wrong.
    pub bad_xor: u64,
    /// Candidates with LEN above 100.
    pub oversize: u64,
    /// Candidates with LEN 1: no room for the routing bytes.
    pub undersize: u64,
    /// Good checksum, but a version other than 0.
    pub bad_version: u64,
    /// Candidates given up because the line went silent before their end.
    pub cut_off: u64,
    /// Bytes that belong to no frame and no token.
    pub resync_bytes: u64,
}

impl DecodeStats {
    /// Damage of any kind: wrong checksum, length or version, or no end.
    #[must_use]
    pub const fn damaged(&self) -> u64 {
        self.bad_xor + self.oversize + self.undersize + self.bad_version + self.cut_off
    }
}

/// Where the next item ends, once enough bytes are here.
enum Scan {
    NeedMore,
    FalseStart,
    Token,
    Whole(usize),
}

/// Incremental decoder.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// Begins with [`START`] or is empty, except for `done` bytes that the last item still borrows.
    buffer: ArrayVec<u8, MAX_FRAME>,
    /// Length of the item that was returned last.
    done: usize,
    stats: DecodeStats,
}

impl Decoder {
    /// An empty decoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> DecodeStats {
        self.stats
    }

    /// Forgets a frame that has begun; the counters stay.
    pub fn reset(&mut self) {
        self.buffer.clear();
        self.done = 0;
    }

    /// Whether a frame has begun and is not whole.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.buffer.len() > self.done
    }

    /// Takes the frame that has begun for a false start: what was taken for its data is searched by the next
    /// [`Decoder::next`]. For a line that has gone silent in the middle of a frame.
    pub fn give_up(&mut self) {
        self.drop_front_item();
        if !self.buffer.is_empty() {
            self.stats.cut_off += 1;
            self.skip();
        }
    }

    /// Takes bytes from the front of `input` until an item is whole. `None`: `input` is used up.
    pub fn next<'a>(&'a mut self, input: &mut &[u8]) -> Option<Item<'a>> {
        loop {
            self.drop_front_item();
            self.refill(input);
            match self.scan() {
                Scan::NeedMore if input.is_empty() => return None,
                Scan::NeedMore => {}
                Scan::FalseStart => self.skip(),
                Scan::Token => {
                    self.done = 2;
                    self.stats.tokens += 1;
                    return Some(Item::ClearToSend);
                }
                Scan::Whole(length) => {
                    self.done = length;
                    if let Some(header) = self.header() {
                        self.stats.frames += 1;
                        let data = &self.buffer[4..length - 1];
                        return Some(Item::Frame(Frame { header, data }));
                    }
                    self.stats.bad_version += 1;
                }
            }
        }
    }

    /// Moves bytes from `input` until the candidate at the front is whole, and no further.
    fn refill(&mut self, input: &mut &[u8]) {
        if self.buffer.is_empty() {
            let noise = input.iter().take_while(|&&byte| byte != START).count();
            self.stats.resync_bytes += noise as u64;
            *input = &input[noise..];
        }
        let wanted = match self.buffer.get(1) {
            Some(&length) => usize::from(length).min(MAX_LEN) + 3,
            None => 2,
        };
        let count = wanted.saturating_sub(self.buffer.len()).min(input.len());
        self.buffer.extend(input[..count].iter().copied());
        *input = &input[count..];
    }

    fn scan(&mut self) -> Scan {
        let length = match self.buffer[..] {
            [] | [_] => return Scan::NeedMore,
            [_, 0, ..] => return Scan::Token,
            [_, length, ..] => usize::from(length),
        };
        if length > MAX_LEN {
            self.stats.oversize += 1;
            return Scan::FalseStart;
        }
        let end = length + 3;
        if self.buffer.len() < end {
            return Scan::NeedMore;
        }
        if checksum(&self.buffer[..end]) != 0 {
            self.stats.bad_xor += 1;
            return Scan::FalseStart;
        }
        if length < 2 {
            self.stats.undersize += 1;
            return Scan::FalseStart;
        }
        Scan::Whole(end)
    }

    fn header(&self) -> Option<Header> {
        Header::parse([*self.buffer.get(2)?, *self.buffer.get(3)?])
    }

    /// Gives up the start byte at the front and goes on behind it.
    fn skip(&mut self) {
        let start = |byte: &u8| *byte == START;
        let next = self.buffer.iter().skip(1).position(start);
        let dropped = next.map_or(self.buffer.len(), |position| position + 1);
        self.stats.resync_bytes += dropped as u64;
        self.drop_front(dropped);
    }

    fn drop_front_item(&mut self) {
        let done = std::mem::take(&mut self.done);
        self.drop_front(done);
    }

    fn drop_front(&mut self, count: usize) {
        if count > 0 {
            self.buffer.drain(..count);
        }
    }
}
