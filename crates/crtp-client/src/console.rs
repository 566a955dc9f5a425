//! Joins the drone's pieces of console text to lines of bounded length.

use arrayvec::ArrayVec;

/// Longest line; longer ones are cut into several.
const MAX_LINE: usize = 240;

/// The line that is being received.
#[derive(Default)]
pub(crate) struct Console {
    line: ArrayVec<u8, MAX_LINE>,
}

impl Console {
    /// Takes a piece and hands over every line that it ends.
    pub(crate) fn push(&mut self, piece: &[u8], mut line: impl FnMut(String)) {
        for &byte in piece {
            if byte != b'\n' {
                self.line.push(byte);
            }
            if (byte == b'\n' && !self.line.is_empty()) || self.line.is_full() {
                line(String::from_utf8_lossy(&self.line).trim_end().to_owned());
                self.line.clear();
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut console = Console::default();
        let mut lines = Vec::new();
        for piece in pieces {
            console.push(piece, |line| lines.push(line));
        }
        lines
    }

    #[test]
    fn pieces_are_joined_and_lines_split_anywhere() {
        let got = lines(&[b"SYS: a", b"bc\r\nDECK", b": x\n\n", b"rest"]);
        assert_eq!(got, ["SYS: abc", "DECK: x"]);
    }

    #[test]
    fn a_line_without_an_end_is_cut_at_its_bound() {
        let got = lines(&[&[b'a'; 30][..]; 9]);
        assert_eq!(got.iter().map(String::len).collect::<Vec<_>>(), [240]);
    }
}
