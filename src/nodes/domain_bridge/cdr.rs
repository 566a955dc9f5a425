//! Just enough of CDR (little endian, as ROS 2 writes it) for the three messages the bridge makes or reads itself:
//! `std_msgs/String`, `diagnostic_msgs/DiagnosticArray` and ros2/domain_bridge's `CompressedMsg`.

/// Bytes before the first field: representation and options.
const HEADER: [u8; 4] = [0, 1, 0, 0];

/// Writes fields behind each other, aligned to their size.
#[derive(Debug)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new() -> Self {
        Self(HEADER.to_vec())
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u32(&mut self, value: u32) {
        while !self.0.len().is_multiple_of(4) {
            self.0.push(0);
        }
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.u32(text.len() as u32 + 1);
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// A message whose only field is a text.
#[must_use]
pub(super) fn text_message(text: &str) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.text(text);
    writer.finish()
}

/// The only field of a message, which is counted: its bytes, in either byte order.
pub(super) fn only_bytes(message: &[u8]) -> Option<&[u8]> {
    let (header, rest) = message.split_at_checked(8)?;
    let count: [u8; 4] = header[4..].try_into().ok()?;
    let count = match header[1] {
        0 => u32::from_be_bytes(count),
        1 => u32::from_le_bytes(count),
        _ => return None,
    };
    rest.get(..count as usize)
}

/// The only field of a message, which is a text.
pub(super) fn only_text(message: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(only_bytes(message)?).ok()?;
    text.strip_suffix('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_aligned_and_texts_end_with_nul() {
        let mut writer = Writer::new();
        writer.u8(7);
        writer.text("ab");
        assert_eq!(
            writer.finish(),
            [0, 1, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, b'a', b'b', 0]
        );
    }

    #[test]
    fn a_text_survives_and_rubbish_is_refused() {
        assert_eq!(only_text(&text_message("héllo")), Some("héllo"));
        assert_eq!(only_text(&text_message("")), Some(""));
        assert_eq!(only_text(&[0, 0, 0, 0, 0, 0, 0, 2, b'x', 0]), Some("x"));
        for bad in [
            &[][..],
            &[0, 1, 0, 0],
            &[0, 1, 0, 0, 9, 0, 0, 0, 1],
            &[0, 7, 0, 0, 1, 0, 0, 0, 0],
        ] {
            assert_eq!(only_text(bad), None);
        }
    }
}
