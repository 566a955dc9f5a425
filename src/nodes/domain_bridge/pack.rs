//! The bytes of a message packed as ros2/domain_bridge packs them: one zstd frame in a `domain_bridge/CompressedMsg`,
//! whose only field is `uint8[] data`. The frame states its content's size, which the other side needs.

use super::cdr;
use super::config::Mode;

/// The message that carries packed bytes.
pub(super) const TYPE: &str = "domain_bridge/msg/CompressedMsg";
/// zstd's own default.
const LEVEL: i32 = 3;
/// Largest message that is unpacked, bytes: a frame may claim any size.
const LARGEST: usize = 1 << 30;

/// Packs or unpacks messages, one after the other, in buffers that are kept.
pub(super) struct Packer {
    mode: Mode,
    pack: zstd::bulk::Compressor<'static>,
    unpack: zstd::bulk::Decompressor<'static>,
    out: Vec<u8>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl Packer {
    /// A packer for a route of this mode; `None` where bytes stay as they are.
    ///
    /// # Errors
    /// What zstd says.
    pub(super) fn new(mode: Mode) -> std::io::Result<Option<Self>> {
        if mode == Mode::Normal {
            return Ok(None);
        }
        Ok(Some(Self {
            mode,
            pack: zstd::bulk::Compressor::new(LEVEL)?,
            unpack: zstd::bulk::Decompressor::new()?,
            out: Vec::new(),
        }))
    }

    /// The message to publish for one that was taken.
    ///
    /// # Errors
    /// The message is not what the mode expects.
    pub(super) fn convert(&mut self, message: &[u8]) -> std::io::Result<&[u8]> {
        if self.mode == Mode::Compress {
            let mut writer = cdr::Writer::new();
            writer.bytes(&self.pack.compress(message)?);
            self.out = writer.finish();
        } else {
            let invalid = |why| std::io::Error::new(std::io::ErrorKind::InvalidData, why);
            let frame = cdr::only_bytes(message).ok_or_else(|| invalid("no CompressedMsg"))?;
            let size = zstd::zstd_safe::get_frame_content_size(frame)
                .ok()
                .flatten();
            let size = size
                .and_then(|size| usize::try_from(size).ok())
                .filter(|size| *size <= LARGEST)
                .ok_or_else(|| invalid("the frame states no size, or one above 1 GiB"))?;
            self.out = self.unpack.decompress(frame, size)?;
        }
        Ok(&self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        let mut pack = Packer::new(Mode::Compress).unwrap().unwrap();
        let mut unpack = Packer::new(Mode::Decompress).unwrap().unwrap();
        for size in [0, 1, 1000, 1 << 20] {
            let message: Vec<u8> = (0..size).map(|n: usize| (n / 100) as u8).collect();
            let packed = pack.convert(&message).unwrap().to_vec();
            assert!(
                size < 1000 || packed.len() < size / 5,
                "{size} became {}",
                packed.len()
            );
            assert_eq!(&packed[..4], [0, 1, 0, 0]);
            assert_eq!(
                &packed[8..12],
                0xFD2F_B528_u32.to_le_bytes(),
                "zstd's magic number"
            );
            assert_eq!(unpack.convert(&packed).unwrap(), message);
        }
    }

    #[test]
    fn rubbish_is_refused() {
        let mut unpack = Packer::new(Mode::Decompress).unwrap().unwrap();
        for bad in [
            &[][..],
            &[0, 1, 0, 0, 0, 0, 0, 0],
            &[0, 1, 0, 0, 3, 0, 0, 0, 1, 2, 3],
        ] {
            assert!(unpack.convert(bad).is_err());
        }
    }

    #[test]
    fn bytes_that_stay_need_no_packer() {
        assert!(Packer::new(Mode::Normal).unwrap().is_none());
    }
}
