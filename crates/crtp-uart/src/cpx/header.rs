//! The two routing bytes of CPX. Owns their bit layout only.

/// One end of a CPX route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(u8);

impl Target {
    /// The drone's main processor.
    pub const STM32: Self = Self(1);
    /// The Wi-Fi processor of the AI deck.
    pub const ESP32: Self = Self(2);
    /// Us.
    pub const HOST: Self = Self(3);
    /// The application processor of the AI deck.
    pub const GAP8: Self = Self(4);
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function(u8);

impl Function {
    /// Link switching and client presence, see [`super::System`].
    pub const SYSTEM: Self = Self(1);
    /// Text.
    pub const CONSOLE: Self = Self(2);
    /// A CRTP packet.
    pub const CRTP: Self = Self(3);
    /// Wi-Fi control.
    pub const WIFI_CONTROL: Self = Self(4);
    /// Application data.
    pub const APP: Self = Self(5);
    /// Link test.
    pub const TEST: Self = Self(0x0e);
    /// Boot loader.
    pub const BOOTLOADER: Self = Self(0x0f);
}

/// `last<<6 | source<<3 | destination`, then `version<<6 | function`. Bit 7 of the first byte is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Last frame of a longer packet; clear in every CRTP frame seen.
    pub last: bool,
    /// Who sends.
    pub source: Target,
    /// Who receives.
    pub destination: Target,
    /// What for.
    pub function: Function,
}

impl Header {
    /// `19 03`: CRTP to the drone.
    pub const HOST_CRTP: Self = Self::new(Target::HOST, Target::STM32, Function::CRTP);
    /// `19 01`: SYSTEM to the drone.
    pub const HOST_SYSTEM: Self = Self::new(Target::HOST, Target::STM32, Function::SYSTEM);
    /// `0b 03`: CRTP from the drone.
    pub const DRONE_CRTP: Self = Self::new(Target::STM32, Target::HOST, Function::CRTP);

    const fn new(source: Target, destination: Target, function: Function) -> Self {
        Self {
            last: false,
            source,
            destination,
            function,
        }
    }

    /// The routing bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 2] {
        let last = (self.last as u8) << 6;
        [
            last | self.source.0 << 3 | self.destination.0,
            self.function.0,
        ]
    }

    /// The header in these bytes; `None` if its version is not 0.
    #[must_use]
    pub const fn parse([route, function]: [u8; 2]) -> Option<Self> {
        if function >> 6 != 0 {
            return None;
        }
        Some(Self {
            last: route & 0x40 != 0,
            source: Target(route >> 3 & 7),
            destination: Target(route & 7),
            function: Function(function & 0x3f),
        })
    }
}
