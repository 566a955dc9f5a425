//! Tells a distribution with two peaks from one with a tail, on a logarithmic grid.

use hdrhistogram::Histogram as Hdr;
use serde::{Deserialize, Serialize};

/// Grid cells per factor of two.
const PER_OCTAVE: f64 = 4.0;
/// Fewest samples to judge by.
const LEAST_SAMPLES: u64 = 50;
/// Least share of the samples on each side of the valley.
const LEAST_SHARE: f64 = 0.05;
/// The valley must be below this share of the lower peak.
const VALLEY: f64 = 0.5;
/// How many standard deviations of the counts the lower peak must stand above the valley.
const SIGMAS: f64 = 4.0;

/// One peak of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Where, microseconds.
    pub us: f64,
    /// Share of the samples on its side of the valley, 0 to 1.
    pub share: f64,
}

/// The two highest peaks when a significant valley lies between them.
pub(super) fn find(hdr: &Hdr<u64>) -> Option<[Peak; 2]> {
    if hdr.len() < LEAST_SAMPLES {
        return None;
    }
    let cells = grid(hdr);
    let split = (1..cells.len()).filter_map(|at| Split::at(&cells, at));
    let best = split.max_by(|a, b| a.depth.total_cmp(&b.depth))?;
    let below: u64 = cells[..best.valley].iter().sum();
    let share = below as f64 / hdr.len() as f64;
    (LEAST_SHARE..=1.0 - LEAST_SHARE).contains(&share).then(|| {
        [(best.low, share), (best.high, 1.0 - share)].map(|(cell, share)| Peak {
            us: (cell_middle_ns(cell) / 10.0).round() / 100.0,
            share: (share * 1e3).round() / 1e3,
        })
    })
}

struct Split {
    low: usize,
    valley: usize,
    high: usize,
    /// Lower peak minus valley, in counts.
    depth: f64,
}

impl Split {
    fn at(cells: &[u64], valley: usize) -> Option<Self> {
        let low = highest(cells, 0..valley)?;
        let high = highest(cells, valley + 1..cells.len())?;
        let peak = cells[low].min(cells[high]) as f64;
        let floor = cells[valley] as f64;
        let depth = peak - floor;
        let clear = floor < VALLEY * peak && depth > SIGMAS * (peak + floor).sqrt();
        clear.then_some(Self {
            low,
            valley,
            high,
            depth,
        })
    }
}

fn highest(cells: &[u64], range: std::ops::Range<usize>) -> Option<usize> {
    range.max_by_key(|&cell| cells.get(cell))
}

fn grid(hdr: &Hdr<u64>) -> Vec<u64> {
    let mut cells = Vec::new();
    for bucket in hdr.iter_recorded() {
        let cell = cell_of(bucket.value_iterated_to());
        if cells.len() <= cell {
            cells.resize(cell + 1, 0);
        }
        cells[cell] += bucket.count_at_value();
    }
    cells
}

fn cell_of(ns: u64) -> usize {
    ((ns.max(1) as f64).log2() * PER_OCTAVE) as usize
}

fn cell_middle_ns(cell: usize) -> f64 {
    ((cell as f64 + 0.5) / PER_OCTAVE).exp2()
}
