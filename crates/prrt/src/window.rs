//! Extreme value over a sliding window of time, in constant space: two half-windows, so that a value is remembered for
//! between half and the whole window. Knows nothing of what it filters.

use std::time::{Duration, Instant};

/// Largest value of the recent past. For a minimum, feed [`std::cmp::Reverse`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowedMax<T> {
    half: Duration,
    current: Option<T>,
    previous: Option<T>,
    begun: Option<Instant>,
}

impl<T: Copy + PartialOrd> WindowedMax<T> {
    pub(crate) const fn new(window: Duration) -> Self {
        Self {
            half: Duration::from_nanos(window.as_nanos() as u64 / 2),
            current: None,
            previous: None,
            begun: None,
        }
    }

    pub(crate) fn observe(&mut self, now: Instant, value: T) {
        let begun = *self.begun.get_or_insert(now);
        let elapsed = now.saturating_duration_since(begun);
        if elapsed >= self.half {
            self.previous = if elapsed >= self.half * 2 {
                None
            } else {
                self.current
            };
            self.current = None;
            self.begun = Some(now);
        }
        self.current = max(self.current, Some(value));
    }

    pub(crate) fn get(&self) -> Option<T> {
        max(self.current, self.previous)
    }
}

fn max<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a < b { b } else { a }),
        (a, None) => a,
        (None, b) => b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_for_at_most_the_window() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut filter = WindowedMax::new(Duration::from_secs(10));
        assert_eq!(filter.get(), None);
        filter.observe(at(0), 9);
        filter.observe(at(6), 3);
        assert_eq!(filter.get(), Some(9));
        filter.observe(at(11), 4);
        assert_eq!(filter.get(), Some(4));
        filter.observe(at(60), 1);
        assert_eq!(filter.get(), Some(1));
    }
}
