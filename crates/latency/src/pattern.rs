//! Payloads that can be checked: each byte follows from its place and the probe's number.
//!
//! A payload that was cut, swapped, mixed with another probe's or turned in a bit does not fit any more.

/// Which bytes a payload may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// All.
    Bytes,
    /// The letters `a` to `p`, so that the payload is text in every encoding.
    Letters,
}

/// Writes the payload of probe `sequence`.
pub fn fill(data: &mut [u8], sequence: u64, alphabet: Alphabet) {
    for (index, chunk) in data.chunks_mut(8).enumerate() {
        let word = word(sequence, index as u64, alphabet);
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// Whether `data` is what [`fill`] wrote for probe `sequence`, whatever its length.
#[must_use]
pub fn is_intact(data: &[u8], sequence: u64, alphabet: Alphabet) -> bool {
    let mut chunks = data.chunks(8).enumerate();
    chunks.all(|(index, chunk)| chunk == &word(sequence, index as u64, alphabet)[..chunk.len()])
}

/// Eight bytes of the splitmix64 generator (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
fn word(sequence: u64, index: u64, alphabet: Alphabet) -> [u8; 8] {
    let mut x = sequence
        .wrapping_mul(0xd134_2543_de82_ef95)
        .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    let bytes = match alphabet {
        Alphabet::Bytes => x,
        // The low half of each byte, added to `a`; no sum carries.
        Alphabet::Letters => (x & 0x0f0f_0f0f_0f0f_0f0f) + 0x6161_6161_6161_6161,
    };
    bytes.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_intact_as_written_and_damage_is_seen() {
        for alphabet in [Alphabet::Bytes, Alphabet::Letters] {
            for length in [0, 1, 7, 8, 9, 64, 1000, 65_537] {
                let mut data = vec![0; length];
                fill(&mut data, 7, alphabet);
                assert!(is_intact(&data, 7, alphabet));
                // Few bytes may be the same by chance.
                assert!(
                    length < 8 || !is_intact(&data, 8, alphabet),
                    "another probe's"
                );
                if length > 0 {
                    data[length / 2] ^= 1;
                    assert!(!is_intact(&data, 7, alphabet), "one bit, {length} bytes");
                }
            }
        }
    }

    #[test]
    fn blocks_that_changed_places_are_seen() {
        let mut data = vec![0; 64];
        fill(&mut data, 1, Alphabet::Bytes);
        let (low, high) = data.split_at_mut(32);
        low.swap_with_slice(high);
        assert!(!is_intact(&data, 1, Alphabet::Bytes));
    }

    #[test]
    fn letters_are_text() {
        let mut data = vec![0; 1001];
        fill(&mut data, u64::MAX, Alphabet::Letters);
        assert!(data.iter().all(u8::is_ascii_lowercase));
    }
}
