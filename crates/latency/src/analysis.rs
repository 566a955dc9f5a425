//! Rows that belong together: the runs of one configuration and size, pooled as far as that is honest.
//!
//! A process restart is the unit of replication, so figures of a group are taken over its runs. Rows of
//! different rate, QoS, transport, payload or middleware are never pooled.

use std::collections::BTreeMap;

use crate::results::{Payload, Row};

/// Everything that tells configurations apart, but not the size and the run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Config {
    /// `dds`, `prrt`, …
    pub link: String,
    /// `same-domain`, `cross-domain`, …
    pub path: String,
    /// What the payload was.
    pub payload: Payload,
    /// Probes a second in millihertz; 0: ping-pong.
    pub millihertz: u64,
    /// QoS in words.
    pub qos: String,
    /// Transport as the row names it.
    pub transport: String,
    /// Middlewares of both ends.
    pub rmw: String,
}

impl Config {
    /// Of a row.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        let identity = &row.identity;
        Self {
            link: identity.link.clone(),
            path: identity.path.clone(),
            payload: identity.payload,
            millihertz: row.rate_hz.map_or(0, |hz| (hz * 1e3).round() as u64),
            qos: identity.qos.clone().unwrap_or_default(),
            transport: transport(row),
            rmw: identity
                .rmw
                .as_ref()
                .map_or_else(String::new, |ends| ends.join(" / ")),
        }
    }

    /// The pace in words.
    #[must_use]
    pub fn pace(&self) -> String {
        if self.millihertz == 0 {
            "ping-pong".to_owned()
        } else {
            format!("{} Hz", self.millihertz as f64 / 1e3)
        }
    }

    /// The configuration in words.
    #[must_use]
    pub fn label(&self) -> String {
        let words = [
            format!("{} {}", self.link, self.path),
            self.transport.clone(),
            self.qos.clone(),
            self.pace(),
        ];
        let said: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        said.join(", ")
    }
}

/// Transport of a row: as the experiment named it, else as the environment did.
#[must_use]
pub fn transport(row: &Row) -> String {
    row.setting("transport")
        .or_else(|| row.setting("transports"))
        .unwrap_or_default()
}

/// The runs of one configuration and size.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// Size of the payload, bytes.
    pub bytes: usize,
    /// The runs, at least one.
    pub rows: Vec<&'a Row>,
}

/// Groups by configuration, each with its sizes from small to large.
#[must_use]
pub fn groups(rows: &[Row]) -> BTreeMap<Config, Vec<Group<'_>>> {
    let mut all: BTreeMap<Config, BTreeMap<usize, Vec<&Row>>> = BTreeMap::new();
    for row in rows {
        let sizes = all.entry(Config::of(row)).or_default();
        sizes.entry(row.bytes).or_default().push(row);
    }
    let grouped = all.into_iter().map(|(config, sizes)| {
        let groups = sizes.into_iter().map(|(bytes, rows)| Group { bytes, rows });
        (config, groups.collect())
    });
    grouped.collect()
}

impl Group<'_> {
    /// Medians of the runs, microseconds, in the order of the runs.
    #[must_use]
    pub fn medians(&self) -> Vec<f64> {
        self.rows.iter().filter_map(|row| row.rtt_us.p50).collect()
    }

    /// Median of the runs' medians, microseconds.
    #[must_use]
    pub fn p50(&self) -> Option<f64> {
        median(&self.medians())
    }

    /// Median of the runs' 99 % quantiles; of their slowest answers where a run is too short for that.
    #[must_use]
    pub fn p99(&self) -> Option<f64> {
        let tails: Vec<f64> = self
            .rows
            .iter()
            .filter_map(|row| row.rtt_us.p99.or(row.rtt_us.max))
            .collect();
        median(&tails)
    }

    /// Probes that left, and those that were lost or late.
    #[must_use]
    pub fn sent_and_missed(&self) -> (u64, u64) {
        let sum = |of: fn(&Row) -> u64| self.rows.iter().map(|row| of(row)).sum();
        (
            sum(|row| row.sent),
            sum(|row| row.lost + row.late + row.damaged),
        )
    }

    /// Datagrams dropped at full receive buffers over all runs; `None` when no run watched that.
    #[must_use]
    pub fn overflows(&self) -> Option<u64> {
        let counted = self.rows.iter().filter_map(|row| row.causes.as_ref());
        counted.map(crate::Causes::overflows).reduce(|a, b| a + b)
    }

    /// The distribution over all runs, each weighted by its answers: `[microseconds, fraction]`, rising.
    #[must_use]
    pub fn ecdf(&self) -> Vec<[f64; 2]> {
        let answers: u64 = self.rows.iter().map(|row| row.received).sum();
        let mut steps: Vec<[f64; 2]> = Vec::new();
        for row in &self.rows {
            let weight = row.received as f64 / answers.max(1) as f64;
            let mut reached = 0.0;
            for [us, fraction] in &row.rtt_ecdf {
                steps.push([*us, (fraction - reached) * weight]);
                reached = *fraction;
            }
        }
        steps.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let mut sum = 0.0;
        for step in &mut steps {
            sum += step[1];
            step[1] = sum.min(1.0);
        }
        if let Some(last) = steps.last_mut() {
            last[1] = 1.0;
        }
        steps
    }
}

/// The middle value, or the mean of the middle two.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    Some(if sorted.len() % 2 == 1 {
        upper
    } else {
        f64::midpoint(sorted[half - 1], upper)
    })
}

/// Rows for the tests of everything that compares rows.
#[cfg(test)]
pub(crate) mod samples {
    use std::time::Duration;

    use crate::results::{Identity, Payload, Row};
    use crate::{Causes, Echo, Mode, MonoNs, Plan, Prober};

    /// A run whose answers take `us(i)` microseconds; `None`: lost.
    pub(crate) fn run(
        path: &str,
        transport: &str,
        bytes: usize,
        us: impl Fn(u64) -> Option<u64>,
    ) -> Row {
        let plan = Plan {
            mode: Mode::Rate { hz: 10.0 },
            bytes,
            count: 200,
            warmup: 0,
            wait: Duration::ZERO,
            timeout: Duration::from_secs(1),
            ..Plan::default()
        };
        let mut prober = Prober::new(plan, MonoNs(0)).unwrap();
        for i in 0..plan.count {
            let now = MonoNs(i * 100_000_000);
            let probe = prober.poll_send(now).unwrap();
            if let Some(us) = us(i) {
                let echo = Echo {
                    run_id: 0,
                    sequence: probe.sequence,
                    relay: None,
                    bytes,
                };
                prober.handle_echo(MonoNs(now.0 + us * 1000), &echo);
            }
        }
        prober.handle_timeout(MonoNs(60_000_000_000));
        let settings = [("transport".to_owned(), transport.into())].into();
        let identity = Identity {
            link: "dds".into(),
            path: path.into(),
            domains: Some([5, 10]),
            rmw: Some(["rmw_fastrtps_cpp".into(), "rmw_fastrtps_cpp".into()]),
            qos: Some("reliable, volatile, keep_last 10".into()),
            payload: Payload::Binary,
            settings,
        };
        Row::new(identity, &prober.finish(MonoNs(60_000_000_000)))
    }

    /// The same with a count of dropped datagrams.
    pub(crate) fn with_overflows(mut row: Row, udp_receive_overflows: u64) -> Row {
        row.causes = Some(Causes {
            udp_receive_overflows,
            ..Causes::default()
        });
        row
    }
}

#[cfg(test)]
mod tests {
    use super::samples::run;
    use super::*;

    #[test]
    fn a_slow_rate_measures_higher_latency_so_rates_are_never_pooled() {
        let mut rows = vec![run("same-domain", "udp", 64, |_| Some(100)); 3];
        rows[1].rate_hz = Some(1000.0);
        rows[2].rate_hz = None;
        let groups = groups(&rows);
        assert_eq!(groups.len(), 3);
        let paces: Vec<String> = groups.keys().map(Config::pace).collect();
        assert_eq!(paces, ["ping-pong", "10 Hz", "1000 Hz"]);
    }

    #[test]
    fn runs_are_pooled_by_size_and_weighted_by_answers() {
        let rows = [
            run("same-domain", "udp", 64, |_| Some(100)),
            run("same-domain", "udp", 64, |i| (i < 100).then_some(400)),
            run("same-domain", "udp", 1000, |_| Some(500)),
        ];
        let groups = groups(&rows);
        let sizes = groups.values().next().unwrap();
        assert_eq!(
            sizes.iter().map(|group| group.bytes).collect::<Vec<_>>(),
            [64, 1000]
        );
        assert_eq!(sizes[0].sent_and_missed(), (400, 100));
        assert!((sizes[0].p50().unwrap() - 250.0).abs() < 1.0);
        let ecdf = sizes[0].ecdf();
        assert!((ecdf[0][1] - 2.0 / 3.0).abs() < 0.01, "{ecdf:?}");
        assert_eq!(ecdf.last().unwrap()[1], 1.0);
    }

    #[test]
    fn the_median_of_nothing_is_nothing() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
    }
}
