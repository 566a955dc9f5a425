//! The block code of video frames: a frame is cut into symbols of equal size, and parity symbols made from them replace
//! any that are lost, one for one. Both ends derive the number of parity symbols from the size of the frame. Knows
//! nothing of datagrams.

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

/// Most source symbols of a frame.
pub(crate) const MAX_SYMBOLS: usize = 4096;
/// Symbols are a multiple of this, bytes.
const GRAIN: usize = 64;

/// Parity symbols that exist for a frame of `count` source symbols.
pub(crate) const fn parity_symbols(count: usize) -> usize {
    count / 2 + 4
}

/// Largest symbol that fits into `room` bytes.
pub(crate) const fn largest_symbol(room: usize) -> usize {
    let whole = room / GRAIN * GRAIN;
    if whole == 0 { GRAIN } else { whole }
}

/// Size of the symbols of a frame of `len` bytes: as equal as possible, so that little is padded.
pub(crate) fn symbol_size(len: usize, largest: usize) -> usize {
    let count = len.div_ceil(largest).max(1);
    len.div_ceil(count).next_multiple_of(GRAIN).min(largest)
}

/// All parity symbols of a frame, one behind the other; `None` if there are too many source symbols.
pub(crate) fn encode(frame: &[u8], size: usize) -> Option<Vec<u8>> {
    let count = frame.len().div_ceil(size);
    let parity = parity_symbols(count);
    let mut encoder = ReedSolomonEncoder::new(count, parity, size).ok()?;
    let mut last = vec![0; size];
    for symbol in frame.chunks(size) {
        if symbol.len() == size {
            encoder.add_original_shard(symbol).ok()?;
        } else {
            last.get_mut(..symbol.len())?.copy_from_slice(symbol);
            encoder.add_original_shard(&last).ok()?;
        }
    }
    let result = encoder.encode().ok()?;
    Some(result.recovery_iter().flatten().copied().collect())
}

/// Fills in what is missing of a frame. `frame` is padded to whole symbols; `has` tells which of them are there; `parity` are
/// the parity symbols that are there, with their position. `None` if they are too few.
pub(crate) fn decode(
    frame: &mut [u8],
    size: usize,
    has: impl Fn(usize) -> bool,
    parity: &[(usize, Vec<u8>)],
) -> Option<()> {
    let count = frame.len() / size;
    let mut decoder = ReedSolomonDecoder::new(count, parity_symbols(count), size).ok()?;
    for (index, symbol) in frame.chunks(size).enumerate().filter(|(i, _)| has(*i)) {
        decoder.add_original_shard(index, symbol).ok()?;
    }
    for (index, symbol) in parity {
        decoder.add_recovery_shard(*index, symbol).ok()?;
    }
    let result = decoder.decode().ok()?;
    for (index, symbol) in result.restored_original_iter() {
        frame
            .get_mut(index * size..(index + 1) * size)?
            .copy_from_slice(symbol);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_symbols_in_sufficient_number_give_back_the_frame(
            len in 1usize..40_000,
            seed: u64,
        ) {
            let frame: Vec<u8> = (0..len).map(|i| (i as u64 ^ seed) as u8).collect();
            let size = symbol_size(len, largest_symbol(1150));
            let count = len.div_ceil(size);
            let made = encode(&frame, size).unwrap();
            prop_assert_eq!(made.len(), parity_symbols(count) * size);
            let lost = count.min(parity_symbols(count));
            let has = |index: usize| index >= lost;
            let mut damaged = frame.clone();
            damaged.resize(count * size, 0);
            damaged[..(lost * size).min(len)].fill(0xee);
            let parity: Vec<(usize, Vec<u8>)> = made
                .chunks(size)
                .map(<[u8]>::to_vec)
                .enumerate()
                .skip(parity_symbols(count) - lost)
                .collect();
            decode(&mut damaged, size, has, &parity).unwrap();
            prop_assert_eq!(&damaged[..len], &frame[..]);
            if lost > 1 {
                prop_assert!(decode(&mut damaged, size, has, &parity[1..]).is_none());
            }
        }
    }

    #[test]
    fn symbols_are_about_equal_and_never_too_large() {
        let largest = largest_symbol(1150);
        assert_eq!(largest, 1088);
        for len in 1..20_000 {
            let size = symbol_size(len, largest);
            assert!(size <= largest && size.is_multiple_of(64));
            assert_eq!(len.div_ceil(size), len.div_ceil(largest), "{len}");
        }
    }
}
