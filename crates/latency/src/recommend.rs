//! Ranks measured configurations for a need, each with the rows it rests on.
//!
//! Nothing is extrapolated: a configuration counts only where it was measured at the needed size or above, and a
//! share of misses that the samples cannot resolve is called that.

use serde::Serialize;

use crate::analysis::{Config, Group, groups};
use crate::results::{Row, size};
use crate::table::us;

/// A rate within this factor of the needed one is taken as measured at it.
const NEAR_RATE: f64 = 2.0;

/// What the user needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// Size of a message, bytes.
    pub bytes: usize,
    /// Messages a second.
    pub rate_hz: f64,
    /// Time a message may take, microseconds. Half a round trip less the relay's time is compared with it.
    pub deadline_us: f64,
    /// Share of messages that may miss it, 0 to 1.
    pub loss: f64,
    /// Only links whose name starts so; empty: any.
    pub link: String,
    /// Only this path; empty: any.
    pub path: String,
}

/// How a configuration fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// The upper bound of its misses is within the tolerance.
    Meets,
    /// Its misses are within the tolerance, but too few probes were sent to be sure.
    Unresolved,
    /// It misses too often.
    Misses,
}

/// A ranked configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// Configuration in words.
    pub config: String,
    /// How it fares.
    pub fit: Fit,
    /// Size it was measured at, bytes.
    pub bytes: usize,
    /// Whether the rate is about the needed one; else it was measured at another pace, which changes latency.
    pub same_pace: bool,
    /// Median and 99 % quantile of half a round trip less the relay's time, microseconds.
    pub p50_us: Option<f64>,
    /// See `p50_us`.
    pub p99_us: Option<f64>,
    /// Share of probes lost, late or past the deadline.
    pub missed: f64,
    /// 95 % upper bound of that share.
    pub missed_at_most: f64,
    /// Probes sent.
    pub sent: u64,
    /// Indices of the rows it rests on.
    pub rows: Vec<usize>,
}

impl Recommendation {
    /// One line for a terminal; row numbers count from 1.
    #[must_use]
    pub fn sentence(&self) -> String {
        let fit = match self.fit {
            Fit::Meets => "meets it",
            Fit::Unresolved => "seems to meet it, too few samples to be sure",
            Fit::Misses => "misses too often",
        };
        let pace = if self.same_pace {
            ""
        } else {
            " (measured at another pace)"
        };
        let rows: Vec<String> = self.rows.iter().map(|row| format!("{}", row + 1)).collect();
        format!(
            "{}: {fit}{pace}; at {}: half a round trip p50 {} p99 {} us, {:.3} % missed of {} (at most {:.3} %); rows {}",
            self.config,
            size(self.bytes),
            us(self.p50_us),
            us(self.p99_us),
            self.missed * 100.0,
            self.sent,
            self.missed_at_most * 100.0,
            rows.join(", ")
        )
    }
}

/// Ranks what was measured: what meets the need first, then what may, each by its tail.
#[must_use]
pub fn rank(rows: &[Row], need: &Need) -> Vec<Recommendation> {
    let all = groups(rows);
    let wanted = all.iter().filter(|(config, _)| {
        config.link.starts_with(&need.link) && (need.path.is_empty() || config.path == need.path)
    });
    let mut ranked: Vec<Recommendation> = wanted
        .filter_map(|(config, sizes)| {
            let group = sizes.iter().find(|group| group.bytes >= need.bytes)?;
            Some(judge(rows, config, group, need))
        })
        .collect();
    ranked.sort_by(|a, b| {
        let tail = |one: &Recommendation| one.p99_us.or(one.p50_us).unwrap_or(f64::MAX);
        (a.fit, !a.same_pace)
            .cmp(&(b.fit, !b.same_pace))
            .then(tail(a).total_cmp(&tail(b)))
    });
    ranked
}

fn judge(all: &[Row], config: &Config, group: &Group<'_>, need: &Need) -> Recommendation {
    let (sent, gone) = group.sent_and_missed();
    let too_slow: f64 = group
        .rows
        .iter()
        .map(|row| row.received as f64 * share_beyond(row, 2.0 * need.deadline_us))
        .sum();
    let missed = gone as f64 + too_slow;
    let share = if sent == 0 { 1.0 } else { missed / sent as f64 };
    let at_most = upper_bound(share, sent);
    let fit = if at_most <= need.loss {
        Fit::Meets
    } else if share <= need.loss {
        Fit::Unresolved
    } else {
        Fit::Misses
    };
    let one_way = |of: fn(&Row) -> Option<f64>| {
        crate::analysis::median(
            &group
                .rows
                .iter()
                .filter_map(|row| of(row))
                .collect::<Vec<_>>(),
        )
    };
    let hz = config.millihertz as f64 / 1e3;
    Recommendation {
        config: config.label(),
        fit,
        bytes: group.bytes,
        same_pace: hz >= need.rate_hz / NEAR_RATE && hz <= need.rate_hz * NEAR_RATE,
        p50_us: one_way(|row| row.latency_us.p50),
        p99_us: one_way(|row| row.latency_us.p99),
        missed: share,
        missed_at_most: at_most,
        sent,
        rows: indices(all, &group.rows),
    }
}

fn indices(all: &[Row], chosen: &[&Row]) -> Vec<usize> {
    let is_chosen = |row: &Row| chosen.iter().any(|one| std::ptr::eq(*one, row));
    let found = all.iter().enumerate().filter(|(_, row)| is_chosen(row));
    found.map(|(index, _)| index).collect()
}

/// Share of a row's answers whose round trip, less the relay's median time, took longer than `limit_us`.
fn share_beyond(row: &Row, limit_us: f64) -> f64 {
    let limit = limit_us + row.processing_us.p50.unwrap_or(0.0);
    let within = row.rtt_ecdf.iter().take_while(|point| point[0] <= limit);
    1.0 - within.last().map_or(0.0, |point| point[1])
}

/// 95 % upper bound of a share seen in `n` trials (Wilson's score interval, one-sided).
fn upper_bound(share: f64, n: u64) -> f64 {
    const Z: f64 = 1.645;
    if n == 0 {
        return 1.0;
    }
    let n = n as f64;
    let z2 = Z * Z;
    let middle = share + z2 / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((middle + half) / (1.0 + z2 / n)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::samples::run;

    fn need(bytes: usize, deadline_us: f64, loss: f64) -> Need {
        Need {
            bytes,
            rate_hz: 10.0,
            deadline_us,
            loss,
            link: String::new(),
            path: String::new(),
        }
    }

    fn rows() -> Vec<Row> {
        vec![
            run("same-domain", "udp", 1000, |_| Some(400)),
            run("same-domain", "shm", 1000, |_| Some(200)),
            run("same-domain", "lossy", 1000, |i| {
                (i % 10 != 0).then_some(100)
            }),
            run("same-domain", "shm", 64, |_| Some(100)),
            run("cross-domain", "slow", 1000, |_| Some(90_000)),
        ]
    }

    #[test]
    fn what_meets_the_need_comes_first_and_cites_its_rows() {
        let rows = rows();
        let ranked = rank(&rows, &need(500, 1000.0, 0.05));
        let order: Vec<(&str, Fit)> = ranked
            .iter()
            .map(|one| (one.config.split(", ").nth(1).unwrap(), one.fit))
            .collect();
        assert_eq!(
            order,
            [
                ("shm", Fit::Meets),
                ("udp", Fit::Meets),
                ("lossy", Fit::Misses),
                ("slow", Fit::Misses)
            ]
        );
        assert_eq!(
            ranked[0].rows,
            [1],
            "the row at the needed size or above, not the smaller one"
        );
        assert_eq!(ranked[0].bytes, 1000);
        assert!(ranked[0].sentence().ends_with("rows 2"));
        assert_eq!(ranked[3].missed, 1.0, "all past the deadline");
    }

    #[test]
    fn a_tolerance_that_the_samples_cannot_resolve_is_called_unresolved() {
        let rows = rows();
        let ranked = rank(&rows, &need(500, 1000.0, 1e-4));
        assert_eq!(ranked[0].fit, Fit::Unresolved);
        assert!(ranked[0].missed == 0.0 && ranked[0].missed_at_most > 0.01);
    }

    #[test]
    fn nothing_is_extrapolated_and_filters_hold() {
        let rows = rows();
        assert_eq!(rank(&rows, &need(2000, 1e6, 1.0)), []);
        let only = Need {
            path: "cross-domain".into(),
            ..need(500, 1e6, 1.0)
        };
        assert_eq!(rank(&rows, &only).len(), 1);
        let other = Need {
            link: "prrt".into(),
            ..need(500, 1e6, 1.0)
        };
        assert_eq!(rank(&rows, &other), []);
        let fast = Need {
            rate_hz: 1000.0,
            ..need(500, 1000.0, 0.05)
        };
        assert!(rank(&rows, &fast).iter().all(|one| !one.same_pace));
    }

    #[test]
    fn the_bound_of_no_misses_is_about_three_over_n() {
        assert!((upper_bound(0.0, 1000) - 0.0027).abs() < 2e-4);
        assert_eq!(upper_bound(0.0, 0), 1.0);
        assert!(upper_bound(1.0, 10) <= 1.0);
    }
}
