//! A logarithmic time axis: its range, its ticks and how a time is written.

/// Least time that a logarithmic axis shows, us.
const LEAST_US: f64 = 0.01;
/// Free space on both sides, as a factor.
const MARGIN: f64 = 1.12;
/// An axis spans at least this factor, so that equal values do not collapse it.
const LEAST_SPAN: f64 = 2.0;

/// Range of a logarithmic axis, us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogAxis {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl LogAxis {
    /// Covers all finite `values`; one decade around 100 us when there are none.
    pub(super) fn covering(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            low = low.min(value.max(LEAST_US));
            high = high.max(value.max(LEAST_US));
        }
        if high == 0.0 {
            (low, high) = (30.0, 300.0);
        }
        let widen = (LEAST_SPAN / (high / low)).max(1.0).sqrt();
        Self {
            low: low / widen / MARGIN,
            high: high * widen * MARGIN,
        }
    }

    /// Where `us` is drawn: inside the axis.
    pub(super) fn clamp(self, us: f64) -> f64 {
        us.clamp(self.low, self.high)
    }

    /// Round values within, at most `most` of them where that leaves at least two.
    pub(super) fn ticks(self, most: usize) -> Vec<f64> {
        let steps: [&[f64]; 4] = [
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            &[1.0, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0],
        ];
        let fitting = steps.into_iter().map(|steps| self.multiples(steps));
        let mut fewest = Vec::new();
        for ticks in fitting {
            if ticks.len() <= most && ticks.len() >= 2 {
                return ticks;
            }
            if ticks.len() >= 2 {
                fewest = ticks;
            }
        }
        let every = fewest.len().div_ceil(most.max(1)).max(1);
        fewest.into_iter().step_by(every).collect()
    }

    fn multiples(self, steps: &[f64]) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().floor() as i32;
        decades
            .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)))
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }
}

/// A time for people: `0.5 µs`, `20 µs`, `1.5 ms`, `2 s`; three significant digits.
pub(crate) fn time(us: f64) -> String {
    let (value, unit) = match us {
        us if us >= 999_500.0 => (us / 1e6, "s"),
        us if us >= 999.5 => (us / 1e3, "ms"),
        us => (us, "µs"),
    };
    let digits = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let trimmed = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{trimmed} {unit}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_with_three_digits() {
        let shown = [0.0, 0.5, 20.0, 999.4, 999.6, 1500.0, 17_540.0, 2e6].map(time);
        assert_eq!(
            shown,
            [
                "0 µs", "0.5 µs", "20 µs", "999 µs", "1 ms", "1.5 ms", "17.5 ms", "2 s"
            ]
        );
    }

    #[test]
    fn equal_values_and_none_at_all_still_give_an_axis() {
        let one = LogAxis::covering([500.0]);
        assert!(
            one.low < 400.0 && one.high > 600.0 && one.ticks(6).len() >= 2,
            "{one:?}"
        );
        assert!(LogAxis::covering([]).ticks(6).len() >= 2);
        assert!(LogAxis::covering([f64::NAN, 0.0]).low > 0.0);
    }

    proptest! {
        #[test]
        fn ticks_are_few_rising_and_inside(low in 0.01_f64..1e7, factor in 1.0_f64..1e8) {
            let axis = LogAxis::covering([low, low * factor]);
            let ticks = axis.ticks(6);
            prop_assert!((2..=6).contains(&ticks.len()), "{:?} {:?}", axis, ticks);
            prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(ticks.iter().all(|tick| (axis.low..=axis.high).contains(tick)));
        }
    }
}
