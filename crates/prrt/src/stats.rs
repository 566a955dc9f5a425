//! Counters and figures of a connection. A figure that nothing has been measured for is `None`, never a number.

use std::time::Duration;

/// Fate of messages on their way out, since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendStats {
    /// Accepted from the application.
    pub messages: u64,
    /// Known to have arrived, at whatever age.
    pub confirmed: u64,
    /// Replaced by a newer one of the same key, before or after they had left.
    pub superseded: u64,
    /// Of those, before they had left.
    pub superseded_unsent: u64,
    /// Died before the first transmission.
    pub expired_unsent: u64,
    /// Died after a transmission without having been confirmed by then.
    pub expired_unconfirmed: u64,
    /// Of those, never confirmed afterwards either: lost as far as the sender can tell.
    pub unconfirmed: u64,
    /// Repairs of whole messages.
    pub repairs: u64,
    /// Datagrams that held nothing but such repairs.
    pub repair_datagrams: u64,
    /// Copies that rode along in datagrams that left anyway.
    pub riders: u64,
    /// Fragments sent again.
    pub fragment_repairs: u64,
}

/// Fate of messages on their way in, since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveStats {
    /// Handed to the application.
    pub delivered: u64,
    /// Of those, first arrived as a repair.
    pub repaired: u64,
    /// Copies of messages that were there already.
    pub duplicates: u64,
    /// Older than one of the same key that was there already, or replaced by a newer one before it was read.
    pub stale: u64,
    /// Arrived or read after their expiry.
    pub expired: u64,
    /// Given up on ordered streams: never arrived in time.
    pub missed: u64,
    /// Not taken for lack of room; the sender repeats them.
    pub no_room: u64,
    /// Larger than the limit.
    pub too_large: u64,
}

/// Round-trip time as the acknowledgements show it, without the time the peer held them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttStats {
    /// Smoothed.
    pub smoothed: Duration,
    /// Smoothed deviation.
    pub variation: Duration,
    /// Smallest of the last 10 s.
    pub min: Duration,
}

/// Time that each stage takes for one message, where it was measured. The slowest sets the pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paces {
    /// The application hands over one message in this time.
    pub application: Option<Duration>,
    /// One datagram with messages leaves in this time.
    pub transport: Option<Duration>,
    /// The bottleneck of the path takes this long for a datagram of the mean size; after one has been found.
    pub network: Option<Duration>,
    /// The peer's application, or what is behind it, takes this long for one message; while it is a limit.
    pub receiver: Option<Duration>,
    /// Our application, or what is behind it, takes this long for one message from the peer; while it is a limit.
    pub reader: Option<Duration>,
}

/// Everything known about a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Datagrams sent, acknowledgements and signs of life included.
    pub datagrams_sent: u64,
    /// Bytes in them (UDP payload).
    pub bytes_sent: u64,
    /// Datagrams that left and arrived with a congestion mark (ECN).
    pub marked: u64,
    /// Requests for overdue messages sent.
    pub requests_sent: u64,
    /// Requests for overdue messages received.
    pub requests_received: u64,
    /// Of the datagrams sent, those that hold an acknowledgement and nothing else.
    pub acks_sent: u64,
    /// Datagrams received that were not duplicates.
    pub datagrams_received: u64,
    /// Bytes in them (UDP payload).
    pub bytes_received: u64,
    /// Datagrams seen before (duplicated on the way or replayed).
    pub duplicate_datagrams: u64,
    /// Datagrams that could not be read.
    pub malformed: u64,
    /// Messages out.
    pub send: SendStats,
    /// Messages in.
    pub receive: ReceiveStats,
    /// Round trip, after the first sample.
    pub rtt: Option<RttStats>,
    /// Share of our datagrams lost on the way (0 to 1), before repair, after the first verdict.
    pub raw_loss: Option<f64>,
    /// Messages that missed their deadline beyond what one in a thousand allows, as far as repairs still make up for it
    /// (0 to 3).
    pub debt: f64,
    /// Mean length of a loss burst, after the first.
    pub burst: Option<Duration>,
    /// Round trips after a pause that took 60 to 600 ms longer than the shortest: the mark of a sleeping radio.
    pub spikes: u64,
    /// Bottleneck of our direction, bits per second, after the first acknowledgement.
    pub bottleneck_bps: Option<u64>,
    /// Paces of all stages.
    pub paces: Paces,
    /// Bit rate for an encoder whose frames should not wait: 85 % of the bottleneck once that has been found.
    pub encoder_bps: Option<u64>,
}

impl Stats {
    /// Share of our messages lost for good (0 to 1), after repair; `None` before any fate is known.
    pub fn residual_loss(&self) -> Option<f64> {
        let lost = self.send.unconfirmed + self.send.expired_unsent;
        let known = lost + self.send.confirmed;
        (known > 0).then(|| lost as f64 / known as f64)
    }
}
