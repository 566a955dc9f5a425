//! Bounds-checked reading and writing of big-endian fields. Neither side can panic.

use crate::error::WireError;

/// Reads fields from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// Fewer are left; names `field`.
    pub fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], WireError> {
        let (head, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(WireError::Truncated(field))?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// Fewer are left; names `field`.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(WireError::Truncated(field))?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next byte.
    ///
    /// # Errors
    /// Nothing is left; names `field`.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        self.array(field).map(u8::from_be_bytes)
    }

    /// The next 16-bit number.
    ///
    /// # Errors
    /// Too little is left; names `field`.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, WireError> {
        self.array(field).map(u16::from_be_bytes)
    }

    /// The next 32-bit number.
    ///
    /// # Errors
    /// Too little is left; names `field`.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        self.array(field).map(u32::from_be_bytes)
    }
}

/// Writes fields into a slice; `None` means that there is no room and nothing was written.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    len: usize,
    limit: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the front of `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            limit: buffer.len(),
            buffer,
            len: 0,
        }
    }

    /// Bytes written.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing has been written.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lets nothing be written beyond `limit` bytes in all.
    pub const fn cap(&mut self, limit: usize) {
        if limit < self.limit {
            self.limit = limit;
        }
    }

    /// Bytes that still fit.
    pub const fn room(&self) -> usize {
        self.limit.saturating_sub(self.len)
    }

    /// Appends bytes.
    pub fn bytes(&mut self, data: &[u8]) -> Option<()> {
        let end = self
            .len
            .checked_add(data.len())
            .filter(|&end| end <= self.limit)?;
        self.buffer.get_mut(self.len..end)?.copy_from_slice(data);
        self.len = end;
        Some(())
    }

    /// Appends a byte.
    pub fn u8(&mut self, value: u8) -> Option<()> {
        self.bytes(&[value])
    }

    /// Appends a 16-bit number.
    pub fn u16(&mut self, value: u16) -> Option<()> {
        self.bytes(&value.to_be_bytes())
    }

    /// Appends a 32-bit number.
    pub fn u32(&mut self, value: u32) -> Option<()> {
        self.bytes(&value.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_names_the_field() {
        let mut reader = Reader::new(&[1, 2]);
        assert_eq!(reader.u8("a"), Ok(1));
        assert_eq!(reader.u32("b"), Err(WireError::Truncated("b")));
        assert_eq!(reader.rest(), [2]);
    }

    #[test]
    fn writing_past_the_end_writes_nothing() {
        let mut buffer = [0; 3];
        let mut writer = Writer::new(&mut buffer);
        writer.u16(0x0102).unwrap();
        assert_eq!(writer.u16(3), None);
        assert_eq!((writer.len(), writer.room()), (2, 1));
    }
}
