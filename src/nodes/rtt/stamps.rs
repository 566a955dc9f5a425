//! Times of received echoes that the middleware stamped or that two processes with one clock can compare.

use latency::{Histogram, Stamps};

use super::wire::Arrival;

/// Histograms of the stamps of one run.
pub(super) struct Recorder {
    shared_clock: bool,
    wake: Histogram,
    transit: Histogram,
    out: Histogram,
    back: Histogram,
}

impl Recorder {
    /// `shared_clock`: the relay's monotonic and wall clocks are ours, so that differences of both mean something.
    pub(super) fn new(shared_clock: bool) -> Self {
        Self {
            shared_clock,
            wake: Histogram::new(),
            transit: Histogram::new(),
            out: Histogram::new(),
            back: Histogram::new(),
        }
    }

    pub(super) fn record(&mut self, arrival: &Arrival) {
        if let Some(wake) = arrival.wake_ns {
            self.wake.record(wake);
        }
        if !self.shared_clock {
            return;
        }
        if let Some(transit) = arrival.transit_ns {
            self.transit.record(transit);
        }
        if let Some((received, sent)) = arrival.echo.relay {
            self.out.record(received.since(arrival.sent));
            self.back.record(arrival.at.since(sent));
        }
    }

    pub(super) fn summary(&self) -> Stamps {
        Stamps {
            wake_us: self.wake.summary(),
            transit_us: self.transit.summary(),
            out_us: self.out.summary(),
            back_us: self.back.summary(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latency::{Echo, MonoNs};

    fn arrival() -> Arrival {
        Arrival {
            at: MonoNs(10_000),
            echo: Echo {
                run_id: 0,
                sequence: 0,
                relay: Some((MonoNs(3_000), MonoNs(6_000))),
                bytes: 0,
            },
            sent: MonoNs(1_000),
            wake_ns: Some(500),
            transit_ns: Some(1_500),
            intact: true,
        }
    }

    #[test]
    fn nothing_is_called_one_way_unless_clocks_are_shared() {
        let mut apart = Recorder::new(false);
        apart.record(&arrival());
        let stamps = apart.summary();
        assert_eq!(
            stamps.wake_us.p50,
            Some(0.5),
            "both stamps are of this process"
        );
        for empty in [stamps.transit_us, stamps.out_us, stamps.back_us] {
            assert_eq!(empty.p50, None);
        }
        let mut shared = Recorder::new(true);
        shared.record(&arrival());
        let stamps = shared.summary();
        assert_eq!(
            (stamps.out_us.p50, stamps.back_us.p50),
            (Some(2.0), Some(4.0))
        );
        assert_eq!(stamps.transit_us.p50, Some(1.5));
    }
}
