//! Settings of an endpoint, checked once. Defaults suit 10 to 500 Hz control traffic over Wi-Fi.

use std::time::Duration;

use crate::error::ConfigError;
use crate::keys::Keys;

/// How lost messages are repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Repairs spread over what is left of the life after the first sign of loss.
    Spread,
    /// The classic vector. Block length 1: `vector[i]` copies in cycle `i`, cycles one retransmission time-out
    /// apart; `vector[0]` copies go out together with the first one. A video frame of `k` symbols: `vector[i]` parity
    /// symbols in cycle `i`, `vector[0]` of them right behind the frame, so that `n` is `k` plus the sum of the vector.
    Vector(Vec<u8>),
    /// No repair of messages that have a life: plain datagrams. Messages without one are still delivered.
    Never,
}

/// Settings of an endpoint. [`Config::check`] names what is out of range.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest UDP payload sent, bytes (256 to 65 000). 1200 passes every path in use.
    pub max_datagram: usize,
    /// Largest message accepted from the application or the peer, bytes (up to 64 MiB).
    pub max_message: usize,
    /// Most messages queued or in flight.
    pub send_messages: usize,
    /// Most bytes queued or in flight.
    pub send_bytes: usize,
    /// Most bytes held for reassembly and for the reader, per connection.
    pub receive_bytes: usize,
    /// Most messages of one ordered stream between the oldest unfinished one and the newest (1 to 1024).
    pub window: u32,
    /// An idle connection sends a sign of life this often. Below 100 ms it also keeps Wi-Fi radios from sleeping
    /// between beacons.
    pub keep_alive: Duration,
    /// A peer silent for this long is gone.
    pub idle_timeout: Duration,
    /// First and longest pause between two attempts to reach the peer.
    pub connect_retry: (Duration, Duration),
    /// Most peers of a listener.
    pub max_peers: usize,
    /// Repair method.
    pub repair: Repair,
    /// Most datagrams per message on average, repairs included.
    pub max_redundancy: f32,
    /// Datagrams up to this size take unacknowledged small messages along, bytes. 0 switches it off.
    pub piggyback_below: usize,
    /// Steady streams above 50 Hz on paths that lose little are acknowledged in batches, and the receiver asks for what
    /// is overdue. Halves the datagrams on the air. Otherwise every datagram is acknowledged.
    pub sparse_feedback: bool,
    /// A client connects again by itself when the connection is lost.
    pub reconnect: bool,
    /// Keys of this end and its peers. With them everything is encrypted and only peers with the right keys get an
    /// answer; without them everything is plain text.
    pub keys: Option<Keys>,
    /// Allows plain text to other machines.
    pub insecure: bool,
    /// Collect what happens to single messages, for [`Endpoint::poll_trace`](crate::Endpoint::poll_trace).
    pub trace: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_datagram: 1200,
            max_message: 4 << 20,
            send_messages: 1024,
            send_bytes: 16 << 20,
            receive_bytes: 16 << 20,
            window: 256,
            keep_alive: Duration::from_millis(250),
            idle_timeout: Duration::from_secs(2),
            connect_retry: (Duration::from_millis(20), Duration::from_millis(250)),
            max_peers: 64,
            repair: Repair::Spread,
            max_redundancy: 2.5,
            piggyback_below: 200,
            sparse_feedback: true,
            reconnect: true,
            keys: None,
            insecure: false,
            trace: false,
        }
    }
}

impl Config {
    /// Checks every field.
    ///
    /// # Errors
    /// Names the first field out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        range("max_datagram", self.max_datagram as u128, 256, 65_000)?;
        range("max_message", self.max_message as u128, 1, 64 << 20)?;
        range("send_messages", self.send_messages as u128, 1, 1 << 20)?;
        range(
            "send_bytes",
            self.send_bytes as u128,
            self.max_message as u128,
            1 << 32,
        )?;
        range(
            "receive_bytes",
            self.receive_bytes as u128,
            self.max_message as u128,
            1 << 32,
        )?;
        range("window", self.window.into(), 1, 1024)?;
        range("max_peers", self.max_peers as u128, 1, 65_536)?;
        range("piggyback_below", self.piggyback_below as u128, 0, 1200)?;
        range(
            "max_redundancy in percent",
            (self.max_redundancy * 100.0) as u128,
            100,
            1000,
        )?;
        if let Some(keys) = &self.keys {
            range("keys.peers", keys.peers.len() as u128, 1, 65_536)?;
        }
        micros("keep_alive", self.keep_alive, 1000, 60_000_000)?;
        micros("idle_timeout", self.idle_timeout, 10_000, 600_000_000)?;
        micros("connect_retry.0", self.connect_retry.0, 1000, 60_000_000)?;
        micros("connect_retry.1", self.connect_retry.1, 1000, 60_000_000)
    }
}

fn range(key: &'static str, value: u128, min: u128, max: u128) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::Range {
        key,
        value,
        min,
        max,
    })
}

fn micros(key: &'static str, value: Duration, min: u128, max: u128) -> Result<(), ConfigError> {
    range(key, value.as_micros(), min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range_and_errors_name_the_field() {
        assert_eq!(Config::default().check(), Ok(()));
        let config = Config {
            window: 0,
            ..Config::default()
        };
        assert_eq!(
            config.check().unwrap_err().to_string(),
            "window is 0, allowed is 1 to 1024"
        );
    }
}
