//! What happened to a packet at one place: a plain record of fixed size, without a reference to anything.
//!
//! It names places, reasons and verdicts with stable codes for files. It never reads a clock and judges nothing.

use crate::time::MonoNs;

/// Most bytes of a packet that are kept: all of a CRTP packet.
pub const DATA_LEN: usize = 32;

macro_rules! codes {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $code:literal $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant = $code,)+ }

        impl $name {
            /// Every one, in order of its code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in files and charts.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The one with this code in a file.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)+ _ => None }
            }

            /// The one with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    };
}

codes! {
    /// Where a packet is, in the order a request and its answer pass: G on the ground, B on the bridge at the
    /// drone, U on its UART.
    Stage {
        /// The application hands the packet over.
        #[default]
        G0 = 0 "G0",
        /// The library takes it from its queue.
        G1 = 1 "G1",
        /// Just before the send call.
        G2 = 2 "G2",
        /// The kernel's transmit scheduler has it.
        G3 = 3 "G3",
        /// The kernel gave it to the network driver.
        G4 = 4 "G4",
        /// The bridge's kernel received it.
        B0 = 5 "B0",
        /// The bridge's receive call returned.
        B1 = 6 "B1",
        /// The bridge knows where it goes.
        B2 = 7 "B2",
        /// It is at the head of the UART's queue; between `UQ` and `UC`.
        U0 = 8 "U0",
        /// The write call returned.
        U1 = 9 "U1",
        /// The last bit is out (computed from the baud rate).
        U2 = 10 "U2",
        /// The first byte of the answer can be read.
        U3 = 11 "U3",
        /// The answer's frame is complete.
        U4 = 12 "U4",
        /// The answer is handed to the network.
        B3 = 13 "B3",
        /// The bridge's kernel gave it to the network driver.
        B4 = 14 "B4",
        /// The ground's kernel received it.
        G5 = 15 "G5",
        /// The receive call returned.
        G6 = 16 "G6",
        /// The answer is matched and delivered.
        G7 = 17 "G7",
        /// The drone received it (simulation only).
        D0 = 18 "D0",
        /// The drone sent the answer (simulation only).
        D1 = 19 "D1",
        /// It is handed to the link that leads to the drone.
        UQ = 20 "UQ",
        /// The drone has granted clear-to-send for it.
        UC = 21 "UC",
        /// The answer is parsed.
        U5 = 22 "U5",
    }
}

codes! {
    /// Which way a packet goes.
    Direction {
        /// To the drone.
        #[default]
        Up = 0 "up",
        /// From the drone.
        Down = 1 "down",
    }
}

codes! {
    /// Why a packet was sent.
    Reason {
        /// For the first time.
        #[default]
        New = 0 "new",
        /// Again, by the application or library.
        Resend = 1 "resend",
        /// Again, by the transport.
        Repair = 2 "repair",
        /// A setpoint, to which there is no answer.
        Setpoint = 3 "setpoint",
        /// To keep the link up.
        KeepAlive = 4 "keep-alive",
        /// An empty packet that only polls.
        Null = 5 "null",
        /// A command to which there is no answer.
        Command = 6 "command",
    }
}

codes! {
    /// What became of a packet at a stage.
    Verdict {
        /// It passed.
        #[default]
        Passed = 0 "passed",
        /// It was rebuilt from repair data.
        Recovered = 1 "recovered",
        /// A newer one of its mailbox replaced it.
        Superseded = 2 "superseded",
        /// It was too old.
        Expired = 3 "expired",
        /// Dropped: the queue was full.
        QueueFull = 4 "dropped-queue-full",
        /// Dropped: the link was down.
        LinkDown = 5 "dropped-link-down",
        /// Dropped: it could crash the drone.
        Unsafe = 6 "dropped-unsafe",
        /// Dropped: it was damaged.
        Damaged = 7 "dropped-damaged",
        /// A further copy.
        Duplicate = 8 "duplicate",
    }
}

impl Stage {
    /// Whether it lies on the ground.
    #[must_use]
    pub const fn is_ground(self) -> bool {
        matches!(
            self,
            Self::G0 | Self::G1 | Self::G2 | Self::G3 | Self::G4 | Self::G5 | Self::G6 | Self::G7
        )
    }
}

impl Verdict {
    /// Whether the packet goes on from here.
    #[must_use]
    pub const fn goes_on(self) -> bool {
        matches!(self, Self::Passed | Self::Recovered)
    }
}

impl Reason {
    /// Whether an answer is to be expected.
    #[must_use]
    pub const fn wants_answer(self) -> bool {
        matches!(self, Self::New | Self::Resend | Self::Repair)
    }
}

/// A packet at a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// When, on the host's monotonic clock.
    pub at: MonoNs,
    /// Identifies a request and its answer on every host that sees them; 0 where whoever took the record cannot
    /// know, and the analysis finds out.
    pub packet: u64,
    /// Where.
    pub stage: Stage,
    /// Which way.
    pub direction: Direction,
    /// Which of the recorder's links.
    pub link: u8,
    /// 0 the first time it is sent, then counting.
    pub attempt: u8,
    /// Why it was sent.
    pub reason: Reason,
    /// What became of it.
    pub verdict: Verdict,
    /// Size of the packet, bytes; may be more than `data` keeps.
    pub size: u16,
    /// The packet's first bytes, the rest zero; byte 0 is the CRTP header.
    pub data: [u8; DATA_LEN],
}

impl Hop {
    /// A packet of these bytes that passed a stage.
    #[must_use]
    pub fn new(at: MonoNs, packet: u64, stage: Stage, direction: Direction, bytes: &[u8]) -> Self {
        let mut data = [0; DATA_LEN];
        let kept = bytes.len().min(DATA_LEN);
        data[..kept].copy_from_slice(&bytes[..kept]);
        Self {
            at,
            packet,
            stage,
            direction,
            size: u16::try_from(bytes.len()).unwrap_or(u16::MAX),
            data,
            ..Self::default()
        }
    }

    /// CRTP port, 0 to 15.
    #[must_use]
    pub const fn port(&self) -> u8 {
        self.data[0] >> 4
    }

    /// CRTP channel, 0 to 3.
    #[must_use]
    pub const fn channel(&self) -> u8 {
        self.data[0] & 3
    }

    /// The bytes that were kept.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.data[..usize::from(self.size).min(DATA_LEN)]
    }
}
