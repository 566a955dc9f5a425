//! Reading and writing packet data field by field: the cursor pair and the macros every layout is declared
//! with. Little-endian throughout, never indexes on trust, never allocates.

use crate::error::{ParseError, ValueError};
use crate::packet::{Channel, MAX_DATA, Packet, Port};

/// Reads the data of one packet.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    got: usize,
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader of the data behind a header whose kind (reserved bits clear) has to be `kind`.
    pub(crate) fn new(
        packet: &'a Packet,
        kind: u8,
        what: &'static str,
    ) -> Result<Self, ParseError> {
        if packet.kind() != kind {
            let header = packet.header();
            return Err(ParseError::Kind { what, header });
        }
        let rest = packet.data();
        let got = rest.len();
        Ok(Self { rest, got, what })
    }

    pub(crate) fn length_error(&self) -> ParseError {
        ParseError::Length {
            what: self.what,
            got: self.got,
        }
    }

    pub(crate) const fn command_error(&self, command: u8) -> ParseError {
        ParseError::Command {
            what: self.what,
            command,
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or_else(|| self.length_error())?;
        self.rest = rest;
        Ok(*head)
    }

    /// Reads one field; `name` is for errors.
    pub(crate) fn field<T: Field>(&mut self, name: &'static str) -> Result<T, ParseError> {
        T::get(name, self)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ParseError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ParseError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ParseError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Text up to a zero byte, which is consumed; bytes are taken as Latin-1, as cflib does.
    pub(crate) fn text(&mut self) -> Result<String, ParseError> {
        let Some(end) = self.rest.iter().position(|&byte| byte == 0) else {
            return Err(ParseError::Text { what: self.what });
        };
        let text = latin1(&self.rest[..end]);
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Requests have exactly their length.
    pub(crate) fn finish(&self) -> Result<(), ParseError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.length_error())
        }
    }
}

/// The text of Latin-1 bytes.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Writes the data of one packet.
pub(crate) struct Writer {
    header: u8,
    len: usize,
    bytes: [u8; MAX_DATA],
}

impl Writer {
    /// A request, or a reply in a reused request buffer: reserved header bits set, as cflib has them.
    pub(crate) const fn new(port: Port, channel: Channel) -> Self {
        Self::with_header(port.number() << 4 | 0x0c | channel.number())
    }

    /// A reply the firmware builds freshly: reserved header bits clear.
    pub(crate) const fn reply(port: Port, channel: Channel) -> Self {
        Self::with_header(port.number() << 4 | channel.number())
    }

    const fn with_header(header: u8) -> Self {
        Self {
            header,
            len: 0,
            bytes: [0; MAX_DATA],
        }
    }

    /// Appends bytes. Every layout fits by its types; what would not is cut off.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        debug_assert!(
            self.len + bytes.len() <= MAX_DATA,
            "layout exceeds a packet"
        );
        for (slot, byte) in self.bytes.iter_mut().skip(self.len).zip(bytes) {
            *slot = *byte;
        }
        self.len = MAX_DATA.min(self.len + bytes.len());
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a Latin-1 text and its zero byte.
    pub(crate) fn text(
        &mut self,
        field: &'static str,
        text: &str,
    ) -> Result<&mut Self, ValueError> {
        if text.is_empty() {
            return Err(ValueError::Text { field });
        }
        self.fits(field, text.chars().count() + 1)?;
        for letter in text.chars() {
            match u8::try_from(letter) {
                Ok(byte @ 1..) => self.u8(byte),
                _ => return Err(ValueError::Text { field }),
            };
        }
        Ok(self.u8(0))
    }

    /// Refuses `length` bytes that have no room.
    pub(crate) const fn fits(&self, field: &'static str, length: usize) -> Result<(), ValueError> {
        let max = MAX_DATA - self.len;
        if length <= max {
            return Ok(());
        }
        Err(ValueError::TooLong {
            field,
            got: length,
            max,
        })
    }

    /// The packet.
    pub(crate) fn packet(&self) -> Packet {
        Packet::from_parts(self.header, &self.bytes, self.len)
    }
}

/// A value with a fixed place in a packet.
pub(crate) trait Field: Sized {
    fn put(&self, name: &'static str, writer: &mut Writer) -> Result<(), ValueError>;
    fn get(name: &'static str, reader: &mut Reader<'_>) -> Result<Self, ParseError>;
}

macro_rules! integer_field {
    ($($ty:ty),*) => {$(
        impl Field for $ty {
            fn put(&self, _: &'static str, writer: &mut Writer) -> Result<(), ValueError> {
                writer.bytes(&self.to_le_bytes());
                Ok(())
            }

            fn get(_: &'static str, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
                Ok(Self::from_le_bytes(reader.array()?))
            }
        }
    )*};
}

integer_field!(u8, u16, u32, i16);

/// A flag is one byte; the firmware takes any but zero for true.
impl Field for bool {
    fn put(&self, _: &'static str, writer: &mut Writer) -> Result<(), ValueError> {
        writer.u8(u8::from(*self));
        Ok(())
    }

    fn get(_: &'static str, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(reader.u8()? != 0)
    }
}

/// Floats of setpoints and commands are finite, both ways.
impl Field for f32 {
    fn put(&self, field: &'static str, writer: &mut Writer) -> Result<(), ValueError> {
        if !self.is_finite() {
            let value = f64::from(*self);
            return Err(ValueError::NotFinite { field, value });
        }
        writer.bytes(&self.to_le_bytes());
        Ok(())
    }

    fn get(field: &'static str, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let value = Self::from_le_bytes(reader.array()?);
        let what = reader.what;
        if value.is_finite() {
            Ok(value)
        } else {
            Err(ParseError::NotFinite { what, field })
        }
    }
}

/// Declares a plain structure whose fields follow each other on the wire in this order.
macro_rules! layout {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $ty:ty),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $ty),*
        }

        impl $name {
            fn put(&self, writer: &mut $crate::wire::Writer) -> Result<(), $crate::ValueError> {
                $($crate::wire::Field::put(&self.$field, stringify!($field), writer)?;)*
                Ok(())
            }

            fn get(reader: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::ParseError> {
                Ok(Self { $($field: reader.field(stringify!($field))?),* })
            }
        }
    };
}
pub(crate) use layout;
