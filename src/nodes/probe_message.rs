//! The messages that carry probes, one for each kind of payload, seen as a head with times and a payload.
//!
//! All of them are the middleware's own layout, so a payload is never copied in this process' code. What the times
//! mean is `latency`'s business.

use latency::Payload;
use latency::pattern::{Alphabet, fill, is_intact};
use ros_env::crazyflie_openlink::msg::rmw::{RttImage, RttImu, RttProbe, RttText};

/// Size of an IMU record: stamp, frame id, 37 numbers of 8 bytes (three vectors and their covariances); bytes.
pub const IMU_BYTES: usize = 8 + 8 + 37 * 8;
/// Names of the kinds, as the parameter `payload` takes them.
pub const KINDS: [&str; 4] = ["binary", "image", "string", "imu"];

/// What every probe carries beside its payload. Times are monotonic, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Identifies the run.
    pub run_id: u64,
    /// Counts from 0.
    pub sequence: u64,
    /// When the schedule wanted the probe to leave.
    pub intended_ns: i64,
    /// When it left.
    pub sent_ns: i64,
    /// When the relay received it; 0 in a probe.
    pub relay_received_ns: i64,
    /// When the relay sent it back; 0 in a probe.
    pub relay_sent_ns: i64,
}

/// A message that carries a probe.
pub trait ProbeMessage: rosidl_runtime_rs::Message + Default {
    /// Its kind.
    const KIND: Payload;

    /// A message with a payload of this size, bytes, zeroed or as letters.
    fn with_size(bytes: usize) -> Self;

    /// Size of the payload, bytes.
    fn size(&self) -> usize;

    /// The head.
    fn head(&self) -> Head;

    /// Replaces the head.
    fn set_head(&mut self, head: &Head);

    /// Fills the payload with what belongs to probe `sequence`.
    fn fill(&mut self, sequence: u64);

    /// Whether the payload is that of probe `sequence`.
    fn is_intact(&self, sequence: u64) -> bool;
}

macro_rules! head {
    () => {
        fn head(&self) -> Head {
            Head {
                run_id: self.run_id,
                sequence: self.sequence,
                intended_ns: self.intended_ns,
                sent_ns: self.sent_ns,
                relay_received_ns: self.relay_received_ns,
                relay_sent_ns: self.relay_sent_ns,
            }
        }

        fn set_head(&mut self, head: &Head) {
            self.run_id = head.run_id;
            self.sequence = head.sequence;
            self.intended_ns = head.intended_ns;
            self.sent_ns = head.sent_ns;
            self.relay_received_ns = head.relay_received_ns;
            self.relay_sent_ns = head.relay_sent_ns;
            self.head_changed();
        }
    };
}

/// What else follows from the head.
trait HeadChanged {
    fn head_changed(&mut self) {}
}

impl HeadChanged for RttProbe {}
impl HeadChanged for RttText {}
impl HeadChanged for RttImu {}
impl HeadChanged for RttImage {
    fn head_changed(&mut self) {
        self.publish_time = self.sent_ns as f64 / 1e9;
    }
}

impl ProbeMessage for RttProbe {
    const KIND: Payload = Payload::Binary;

    head!();

    fn with_size(bytes: usize) -> Self {
        Self {
            data: vec![0; bytes].into(),
            ..Self::default()
        }
    }

    fn size(&self) -> usize {
        self.data.len()
    }

    fn fill(&mut self, sequence: u64) {
        fill(self.data.as_mut_slice(), sequence, Alphabet::Bytes);
    }

    fn is_intact(&self, sequence: u64) -> bool {
        is_intact(self.data.as_slice(), sequence, Alphabet::Bytes)
    }
}

impl ProbeMessage for RttImage {
    const KIND: Payload = Payload::Image;

    head!();

    /// One row of grey pixels.
    fn with_size(bytes: usize) -> Self {
        let mut message = Self::default();
        message.image.encoding = "mono8".into();
        message.image.height = 1;
        message.image.width = bytes as u32;
        message.image.step = bytes as u32;
        message.image.data = vec![0; bytes].into();
        message
    }

    fn size(&self) -> usize {
        self.image.data.len()
    }

    fn fill(&mut self, sequence: u64) {
        fill(self.image.data.as_mut_slice(), sequence, Alphabet::Bytes);
    }

    fn is_intact(&self, sequence: u64) -> bool {
        is_intact(self.image.data.as_slice(), sequence, Alphabet::Bytes)
    }
}

impl ProbeMessage for RttText {
    const KIND: Payload = Payload::String;

    head!();

    fn with_size(bytes: usize) -> Self {
        Self {
            text: "a".repeat(bytes).as_str().into(),
            ..Self::default()
        }
    }

    fn size(&self) -> usize {
        self.text.len()
    }

    fn fill(&mut self, sequence: u64) {
        let mut letters = vec![0; self.size()];
        fill(&mut letters, sequence, Alphabet::Letters);
        self.text = String::from_utf8_lossy(&letters).as_ref().into();
    }

    fn is_intact(&self, sequence: u64) -> bool {
        is_intact(self.text.to_cstr().to_bytes(), sequence, Alphabet::Letters)
    }
}

impl ProbeMessage for RttImu {
    const KIND: Payload = Payload::Imu;

    head!();

    /// A record has one size only.
    fn with_size(_bytes: usize) -> Self {
        let mut message = Self::default();
        message.imu.header.frame_id = "imu".into();
        message
    }

    fn size(&self) -> usize {
        IMU_BYTES
    }

    fn fill(&mut self, sequence: u64) {
        self.imu.linear_acceleration_covariance = record(sequence);
    }

    fn is_intact(&self, sequence: u64) -> bool {
        self.imu.linear_acceleration_covariance == record(sequence)
    }
}

/// Whole numbers that doubles hold exactly.
fn record(sequence: u64) -> [f64; 9] {
    std::array::from_fn(|index| ((sequence & 0xffff_ffff) * 16 + index as u64) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<M: ProbeMessage>(bytes: usize) {
        let mut message = M::with_size(bytes);
        assert_eq!(message.size(), bytes);
        let head = Head {
            run_id: 1,
            sequence: 2,
            intended_ns: 3,
            sent_ns: 4_000_000_000,
            relay_received_ns: 5,
            relay_sent_ns: 6,
        };
        message.set_head(&head);
        assert_eq!(message.head(), head);
        message.fill(7);
        assert_eq!(message.size(), bytes, "filling keeps the size");
        assert!(message.is_intact(7) && !message.is_intact(8));
    }

    #[test]
    fn every_kind_keeps_head_size_and_content() {
        check::<RttProbe>(1001);
        check::<RttImage>(1001);
        check::<RttText>(1001);
        check::<RttImu>(IMU_BYTES);
    }

    #[test]
    fn an_image_carries_its_publishing_time_in_seconds() {
        let mut image = RttImage::with_size(12);
        image.set_head(&Head {
            sent_ns: 2_500_000_000,
            ..Head::default()
        });
        assert_eq!((image.publish_time, image.image.step), (2.5, 12));
    }
}
