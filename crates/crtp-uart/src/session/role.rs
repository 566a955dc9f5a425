//! The two ends of a link. Owns what each may send and how it is framed.

use std::fmt::Debug;

use crtp::{Admitted, Packet};

use crate::cpx::{self, FrameBytes, stream};

/// The computer that flies the drone. It sends only what the gate has admitted.
#[derive(Clone, Copy, Debug)]
pub struct Host;

/// The drone, or what stands for it.
#[derive(Clone, Copy, Debug)]
pub struct Device;

/// [`Host`] or [`Device`].
pub trait Role: private::Sealed + Debug + Send + 'static {
    /// What this end sends.
    type Outgoing: Copy + Debug + Send;

    /// Whether this end is the host.
    const IS_HOST: bool;

    /// The frame of a packet.
    fn encode(packet: &Self::Outgoing) -> FrameBytes;

    /// The same on a byte stream that needs neither checksum nor clear-to-send, as TCP.
    fn encode_on_stream(packet: &Self::Outgoing) -> FrameBytes;
}

impl Role for Host {
    type Outgoing = Admitted;
    const IS_HOST: bool = true;

    fn encode(packet: &Admitted) -> FrameBytes {
        cpx::to_drone(packet)
    }

    fn encode_on_stream(packet: &Admitted) -> FrameBytes {
        stream::to_drone(packet)
    }
}

impl Role for Device {
    type Outgoing = Packet;
    const IS_HOST: bool = false;

    fn encode(packet: &Packet) -> FrameBytes {
        cpx::to_host(packet)
    }

    fn encode_on_stream(packet: &Packet) -> FrameBytes {
        stream::to_host(packet)
    }
}

mod private {
    pub trait Sealed {}
    impl Sealed for super::Host {}
    impl Sealed for super::Device {}
}
