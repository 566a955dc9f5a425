//! Frames: what the body of a data datagram is made of, after its 4-byte time stamp. A frame begins with its kind.

use arrayvec::ArrayVec;

use super::{Reader, Writer};
use crate::code::{MAX_SYMBOLS, parity_symbols};
use crate::error::WireError;
use crate::message::Stream;
use crate::seq::Seq;
use crate::time::Span;

/// Most history an acknowledgement carries, bytes (8 datagrams each).
pub const ACK_HISTORY: usize = 32;

/// Messages that one request can name after the first.
pub const NACK_SPAN: usize = 16;

const ACK: u8 = 0x01;
const PING: u8 = 0x02;
const CLOSE: u8 = 0x03;
const NACK: u8 = 0x04;
const PACE: u8 = 0x05;
const MARKS: u8 = 0x06;
const CHALLENGE: u8 = 0x07;
const ANSWER: u8 = 0x08;
const MESSAGE: u8 = 0x10;
const ORDERED: u8 = 0x01;
const FRAGMENT: u8 = 0x02;
const PERIODIC: u8 = 0x04;
const CODED: u8 = 0x08;

/// Acknowledgement: `01 largest:4 hold:2 len:1 history:len`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Low half of the largest datagram number seen.
    pub largest: u32,
    /// How long the largest one was here before this left.
    pub hold: Span,
    /// Bit `i` (bit `i % 8` of byte `i / 8`) tells whether `largest - 1 - i` was seen.
    pub history: ArrayVec<u8, ACK_HISTORY>,
}

impl Ack {
    /// Bytes on the wire.
    pub fn wire_len(&self) -> usize {
        8 + self.history.len()
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let largest = reader.u32("largest")?;
        let hold = Span::from_wire(reader.u16("hold")?);
        let len = reader.u8("history length")?;
        let bytes = reader.bytes(len.into(), "history")?;
        let history = ArrayVec::try_from(bytes).map_err(|_| WireError::Unknown {
            field: "history length",
            value: len.into(),
        })?;
        Ok(Self {
            largest,
            hold,
            history,
        })
    }

    /// Writes the frame; `None` if it does not fit.
    pub fn emit(&self, writer: &mut Writer<'_>) -> Option<()> {
        if writer.room() < self.wire_len() {
            return None;
        }
        writer.u8(ACK)?;
        writer.u32(self.largest)?;
        writer.u16(self.hold.get())?;
        writer.u8(self.history.len() as u8)?;
        writer.bytes(&self.history)
    }
}

/// What an ordered message says about those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// How many numbers before this one the oldest is that the sender still works on; everything older has arrived
    /// or is given up.
    pub back: u16,
    /// How long after this message's birth the last of those may still arrive; then nothing before it is worth
    /// waiting for.
    pub wait: Span,
}

/// Which part of a larger message this is. On frame streams positions beyond the last part are parity symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Position, from 0.
    pub index: u16,
    /// Bytes of every fragment but the last.
    pub size: u16,
    /// Bytes of the whole message.
    pub total: u32,
}

impl Fragment {
    /// Number of fragments of the message; 0 if the fields make no sense.
    pub fn count(self) -> usize {
        if self.size == 0 {
            0
        } else {
            self.total.div_ceil(self.size.into()) as usize
        }
    }

    /// Bytes that this fragment must have.
    pub fn expected_len(self) -> usize {
        if usize::from(self.index) >= self.count() {
            return self.size.into();
        }
        let start = u64::from(self.index) * u64::from(self.size);
        u64::from(self.total)
            .saturating_sub(start)
            .min(self.size.into()) as usize
    }

    fn parse(reader: &mut Reader<'_>, coded: bool) -> Result<Self, WireError> {
        let fragment = Self {
            index: reader.u16("fragment index")?,
            size: reader.u16("fragment size")?,
            total: reader.u32("message length")?,
        };
        let count = fragment.count();
        let parity = if coded && count > 0 {
            parity_symbols(count)
        } else {
            0
        };
        if coded && count > MAX_SYMBOLS {
            return Err(WireError::Unknown {
                field: "number of symbols",
                value: count as u64,
            });
        }
        if usize::from(fragment.index) >= count + parity {
            return Err(WireError::Unknown {
                field: "fragment index",
                value: fragment.index.into(),
            });
        }
        Ok(fragment)
    }
}

/// Request for messages that are overdue: `04 class:1 id:1 first:4 more:2`. Class is 0 for newest wins, 1 for
/// ordered, 2 for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// Their stream.
    pub stream: Stream,
    /// The oldest.
    pub first: Seq,
    /// Bit `i` tells whether `first + 1 + i` is missing, too.
    pub more: u16,
}

impl Nack {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let ordered = reader.u8("stream kind")?;
        let id = reader.u8("stream")?;
        let stream = match ordered {
            0 => Stream::Latest(id),
            1 => Stream::Ordered(id),
            2 => Stream::Frame(id),
            other => {
                return Err(WireError::Unknown {
                    field: "stream kind",
                    value: other.into(),
                });
            }
        };
        Ok(Self {
            stream,
            first: Seq::new(reader.u32("first")?),
            more: reader.u16("more")?,
        })
    }

    /// Writes the frame; `None` if it does not fit.
    pub fn emit(&self, writer: &mut Writer<'_>) -> Option<()> {
        if writer.room() < 9 {
            return None;
        }
        let (ordered, id) = match self.stream {
            Stream::Latest(id) => (0, id),
            Stream::Ordered(id) => (1, id),
            Stream::Frame(id) => (2, id),
        };
        writer.bytes(&[NACK, ordered, id])?;
        writer.u32(self.first.get())?;
        writer.u16(self.more)
    }

    /// Every message asked for.
    pub fn seqs(self) -> impl Iterator<Item = Seq> {
        let more = (0..NACK_SPAN as u32).filter(move |i| self.more >> i & 1 == 1);
        std::iter::once(self.first).chain(more.map(move |i| self.first.plus(i + 1)))
    }
}

/// A message or a part of it: `kind:1 id:1 seq:4 [back:2 wait:2] age:2 life:2 attempt:1 [period:2] [index:2 size:2 total:4]
/// len:2 data`. Kind is `10`, plus 1 if ordered (then with back and wait), plus 2 if a fragment, plus 4 if periodic,
/// plus 8 if of a frame stream (which is ordered).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Stream.
    pub stream: Stream,
    /// Number within the stream.
    pub seq: Seq,
    /// Present exactly on ordered streams.
    pub order: Option<Order>,
    /// Time from the birth of the message to the time stamp of the datagram.
    pub age: Span,
    /// Life from birth.
    pub life: Span,
    /// Which transmission this is, 0 for the original; stops at 255.
    pub attempt: u8,
    /// Present if the stream has a rhythm: the next message will be born so much later than this one, and arrivals need
    /// no acknowledgement each.
    pub period: Option<Span>,
    /// Present if this is not the whole message.
    pub fragment: Option<Fragment>,
    /// The bytes.
    pub data: &'a [u8],
}

/// Bytes that a part takes on the wire beyond its data.
pub const fn part_overhead(ordered: bool, fragment: bool) -> usize {
    13 + if ordered { 4 } else { 0 } + if fragment { 8 } else { 0 }
}

impl<'a> Part<'a> {
    /// Bytes on the wire.
    pub const fn wire_len(&self) -> usize {
        let period = if self.period.is_some() { 2 } else { 0 };
        part_overhead(self.order.is_some(), self.fragment.is_some()) + period + self.data.len()
    }

    fn parse(kind: u8, reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let ordered = kind & ORDERED != 0;
        let id = reader.u8("stream")?;
        let coded = kind & CODED != 0;
        let stream = match (ordered, coded) {
            (true, false) => Stream::Ordered(id),
            (true, true) => Stream::Frame(id),
            (false, false) => Stream::Latest(id),
            (false, true) => {
                return Err(WireError::Unknown {
                    field: "frame",
                    value: kind.into(),
                });
            }
        };
        let seq = Seq::new(reader.u32("sequence")?);
        let order = if ordered {
            Some(parse_order(reader)?)
        } else {
            None
        };
        let age = Span::from_wire(reader.u16("age")?);
        let life = Span::from_wire(reader.u16("life")?);
        let attempt = reader.u8("attempt")?;
        let period = if kind & PERIODIC != 0 {
            Some(Span::from_wire(reader.u16("period")?))
        } else {
            None
        };
        let fragment = if kind & FRAGMENT != 0 {
            Some(Fragment::parse(reader, coded)?)
        } else {
            None
        };
        let len = reader.u16("length")?;
        let data = reader.bytes(len.into(), "data")?;
        if fragment.is_some_and(|f| f.expected_len() != data.len()) {
            return Err(WireError::Unknown {
                field: "fragment length",
                value: len.into(),
            });
        }
        Ok(Self {
            stream,
            seq,
            order,
            age,
            life,
            attempt,
            period,
            fragment,
            data,
        })
    }

    /// Writes the frame; `None` if it does not fit.
    pub fn emit(&self, writer: &mut Writer<'_>) -> Option<()> {
        if writer.room() < self.wire_len() {
            return None;
        }
        let (ordered, id) = match self.stream {
            Stream::Latest(id) => (0, id),
            Stream::Ordered(id) => (ORDERED, id),
            Stream::Frame(id) => (ORDERED | CODED, id),
        };
        let fragment = if self.fragment.is_some() { FRAGMENT } else { 0 };
        let periodic = if self.period.is_some() { PERIODIC } else { 0 };
        writer.u8(MESSAGE | ordered | fragment | periodic)?;
        writer.u8(id)?;
        writer.u32(self.seq.get())?;
        if let Some(order) = self.order {
            writer.u16(order.back)?;
            writer.u16(order.wait.get())?;
        }
        writer.u16(self.age.get())?;
        writer.u16(self.life.get())?;
        writer.u8(self.attempt)?;
        if let Some(period) = self.period {
            writer.u16(period.get())?;
        }
        if let Some(fragment) = self.fragment {
            writer.u16(fragment.index)?;
            writer.u16(fragment.size)?;
            writer.u32(fragment.total)?;
        }
        writer.u16(u16::try_from(self.data.len()).ok()?)?;
        writer.bytes(self.data)
    }
}

fn parse_order(reader: &mut Reader<'_>) -> Result<Order, WireError> {
    Ok(Order {
        back: reader.u16("back")?,
        wait: Span::from_wire(reader.u16("wait")?),
    })
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The application closed it.
    Done,
    /// No room for another peer.
    Busy,
    /// Nothing was heard for the idle time-out. Never sent.
    Silence,
    /// A newer connection from the same address took its place. Never sent.
    Replaced,
    /// The peer has no memory of the connection: it was restarted. Never sent.
    Restarted,
}

impl CloseReason {
    /// For a log line.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Done => "closed",
            Self::Busy => "peer has no room for another connection",
            Self::Silence => "peer is silent",
            Self::Replaced => "peer connected anew",
            Self::Restarted => "peer has restarted",
        }
    }
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// What has arrived.
    Ack(Ack),
    /// What is overdue.
    Nack(Nack),
    /// `05 message:2`: the time that the reader takes for each message; zero: it is no limit.
    Pace(Span),
    /// `06 count:4`: datagrams that arrived with a congestion mark so far, modulo 2^32.
    Marks(u32),
    /// `07 token:8`: to be answered, by whoever receives at this address.
    Challenge(u64),
    /// `08 token:8`: the answer.
    Answer(u64),
    /// `02`: asks for an acknowledgement.
    Ping,
    /// `03 reason:1`: the connection ends.
    Close(CloseReason),
    /// A message or a part of one.
    Part(Part<'a>),
}

/// Writes a ping; `None` if it does not fit.
pub fn emit_ping(writer: &mut Writer<'_>) -> Option<()> {
    writer.u8(PING)
}

/// Writes a pace; `None` if it does not fit.
pub fn emit_pace(pace: Span, writer: &mut Writer<'_>) -> Option<()> {
    if writer.room() < 3 {
        return None;
    }
    writer.u8(PACE)?;
    writer.u16(pace.get())
}

/// Writes a count of marks; `None` if it does not fit.
pub fn emit_marks(count: u32, writer: &mut Writer<'_>) -> Option<()> {
    if writer.room() < 5 {
        return None;
    }
    writer.u8(MARKS)?;
    writer.u32(count)
}

/// Writes a challenge; `None` if it does not fit.
pub fn emit_challenge(token: u64, writer: &mut Writer<'_>) -> Option<()> {
    emit_token(CHALLENGE, token, writer)
}

/// Writes the answer to a challenge; `None` if it does not fit.
pub fn emit_answer(token: u64, writer: &mut Writer<'_>) -> Option<()> {
    emit_token(ANSWER, token, writer)
}

fn emit_token(kind: u8, token: u64, writer: &mut Writer<'_>) -> Option<()> {
    if writer.room() < 9 {
        return None;
    }
    writer.u8(kind)?;
    writer.bytes(&token.to_be_bytes())
}

/// Writes a close; `None` if it does not fit.
pub fn emit_close(reason: CloseReason, writer: &mut Writer<'_>) -> Option<()> {
    writer.bytes(&[CLOSE, u8::from(reason == CloseReason::Busy)])
}

/// Reads the next frame; `None` at the end of the body.
///
/// # Errors
/// The frame is cut or of an unknown kind; what follows it cannot be read either.
pub fn next_frame<'a>(reader: &mut Reader<'a>) -> Option<Result<Frame<'a>, WireError>> {
    if reader.is_empty() {
        return None;
    }
    Some(parse(reader))
}

fn parse<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, WireError> {
    match reader.u8("frame")? {
        ACK => Ack::parse(reader).map(Frame::Ack),
        PING => Ok(Frame::Ping),
        CLOSE => Ok(Frame::Close(match reader.u8("reason")? {
            1 => CloseReason::Busy,
            _ => CloseReason::Done,
        })),
        PACE => Ok(Frame::Pace(Span::from_wire(reader.u16("pace")?))),
        MARKS => Ok(Frame::Marks(reader.u32("marks")?)),
        CHALLENGE => Ok(Frame::Challenge(u64::from_be_bytes(reader.array("token")?))),
        ANSWER => Ok(Frame::Answer(u64::from_be_bytes(reader.array("token")?))),
        NACK => Nack::parse(reader).map(Frame::Nack),
        kind @ 0x10..=0x1f => Part::parse(kind, reader).map(Frame::Part),
        other => Err(WireError::Unknown {
            field: "frame",
            value: other.into(),
        }),
    }
}

#[cfg(test)]
mod tests;
