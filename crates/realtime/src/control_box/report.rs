//! The result of a box run as a document, as text, and in the shape of ROS 2 diagnostics.
//!
//! Renders what it is given.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::network::LinkFacts;
use super::run::{BoxPlan, BoxRun, ResponderPlan, ResponderRun};
use super::score::Counts;
use crate::periodic::load::LoadRecord;
use crate::periodic::report::{aligned, number};
use crate::periodic::summary::{Summary, upper_bound_95};
use crate::periodic::surroundings::{Host, Interference};
use crate::thread::settings::Applied;

/// Version of the document's layout.
pub const SCHEMA: u32 = 1;
const FINE: f64 = 0.95;
const BORDERLINE: f64 = 0.90;

/// Everything about one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// Always `box`.
    pub kind: String,
    /// The machine.
    pub host: Host,
    /// The link.
    pub link: LinkFacts,
    /// IP fragments made on the box's side during the run; none = cannot be told.
    pub fragments_made: Option<u64>,
    /// Period, microseconds.
    pub period_us: f64,
    /// Misses in a row that stop the box.
    pub stop_after: u32,
    /// Pause after a stop, seconds; none = stays stopped.
    pub auto_recover_s: Option<f64>,
    /// How the responder waits.
    pub responder_mode: String,
    /// Work of the responder, microseconds.
    pub work_us: f64,
    /// The box's thread.
    pub box_thread: Applied,
    /// The responder's thread; none when it runs elsewhere.
    pub responder_thread: Option<Applied>,
    /// Background load.
    pub load: Option<LoadRecord>,
    /// What else the machine did.
    pub interference: Interference,
    /// The counters.
    pub counts: Counts,
    /// States not judged at the end, 0 or 1.
    pub in_flight: u64,
    /// Smallest, mean and largest success rate over 100 commands.
    pub success_rate: [Option<f64>; 3],
    /// Longest row of misses.
    pub worst_streak: u32,
    /// How many rows of misses had each length: `[length, count]`.
    pub streaks: Vec<(usize, u64)>,
    /// Ids at which the box stopped and the misses in a row.
    pub stops: Vec<(u64, u32)>,
    /// From sending a state to taking its answer, microseconds.
    pub round_trip_us: Summary,
    /// From taking an answer to the next slot, microseconds.
    pub slack_us: Summary,
    /// From a slot to the sending of its state, microseconds: the box's own lateness.
    pub send_lateness_us: Summary,
    /// Upper end of the 95 % interval of the miss probability per command.
    pub miss_bound_95: Option<f64>,
    /// Upper end of the 95 % interval of the rate of stops, per minute.
    pub stops_per_minute_95: Option<f64>,
}

/// What surrounds the two runs in the document.
#[derive(Clone, Debug)]
pub struct Around {
    /// The machine.
    pub host: Host,
    /// The link.
    pub link: LinkFacts,
    /// IP fragments made during the run.
    pub fragments_made: Option<u64>,
    /// Background load.
    pub load: Option<LoadRecord>,
    /// What else the machine did.
    pub interference: Interference,
}

impl Document {
    /// Puts a run together.
    #[must_use]
    pub fn new(
        around: Around,
        plan: &BoxPlan,
        responder: Option<(&ResponderPlan, ResponderRun)>,
        run: BoxRun,
    ) -> Self {
        let BoxRun {
            applied,
            score,
            in_flight,
            stops,
        } = run;
        let counts = score.counts;
        let judged = counts.accepted + counts.missed;
        let minutes = counts.sent as f64 * plan.rules.period.as_secs_f64() / 60.0;
        let filled = score
            .streaks
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        Self {
            schema: SCHEMA,
            kind: "box".to_owned(),
            host: around.host,
            link: around.link,
            fragments_made: around.fragments_made,
            period_us: plan.rules.period.as_secs_f64() * 1e6,
            stop_after: plan.rules.stop_after,
            auto_recover_s: plan.rules.auto_recover.map(|pause| pause.as_secs_f64()),
            responder_mode: responder.as_ref().map_or_else(
                || "elsewhere".to_owned(),
                |(plan, _)| format!("{:?}", plan.waiting).to_lowercase(),
            ),
            work_us: responder
                .as_ref()
                .map_or(0.0, |(plan, _)| plan.work.as_secs_f64() * 1e6),
            box_thread: applied,
            responder_thread: responder.map(|(_, run)| run.applied),
            load: around.load,
            interference: around.interference,
            counts,
            in_flight,
            success_rate: [score.lowest_rate, score.mean_rate(), score.highest_rate],
            worst_streak: score.worst_streak,
            streaks: filled.map(|(length, count)| (length, *count)).collect(),
            stops,
            round_trip_us: Summary::of(&score.round_trip),
            slack_us: Summary::of(&score.slack),
            send_lateness_us: Summary::of(&score.send_lateness),
            miss_bound_95: upper_bound_95(counts.missed, judged),
            stops_per_minute_95: stops_bound(counts.stops, minutes),
        }
    }

    /// The result as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let counts = &self.counts;
        let lines = [
            self.link_line(),
            self.threads_line(),
            format!(
                "control loop executions missed: {} of {} states sent",
                counts.missed, counts.sent
            ),
            self.rates_line(),
            format!(
                "longest row of misses: {} (stop at {}); stops: {}; rows by length: {}",
                self.worst_streak,
                self.stop_after,
                counts.stops,
                rows(&self.streaks)
            ),
            format!(
                "replies: {} accepted, {} late, {} stale, {} duplicate, {} malformed, {} of wrong size",
                counts.accepted,
                counts.late,
                counts.stale,
                counts.duplicate,
                counts.malformed,
                counts.wrong_size
            ),
            format!(
                "the box itself: {} sends late, {} slots skipped, {} states not held against the responder, {} not taken by the network",
                counts.box_late_sends, counts.box_overrun, counts.excluded, counts.send_errors
            ),
            String::new(),
            self.times(),
            String::new(),
            self.bounds_line(),
            self.advice().to_owned(),
        ];
        for line in lines {
            let _infallible = writeln!(text, "{line}");
        }
        for reason in self.remarks() {
            let _infallible = writeln!(text, "note: {reason}");
        }
        text.trim_end().to_owned()
    }

    fn link_line(&self) -> String {
        let show =
            |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
        format!(
            "link: {}, MTU {}; a state of 2373 bytes is {} IP fragment(s), a reply of 371 bytes {}{}",
            self.link.kind,
            show(self.link.mtu),
            show(self.link.state_fragments),
            show(self.link.reply_fragments),
            self.fragments_made
                .map_or_else(String::new, |made| format!(" ({made} fragments made)")),
        )
    }

    fn threads_line(&self) -> String {
        let show = |applied: &Applied| {
            let policy = applied
                .effective
                .policy
                .map_or_else(|| "another class".to_owned(), |policy| policy.to_string());
            format!("{policy} on cpu {}", applied.effective.cpus)
        };
        let responder = self
            .responder_thread
            .as_ref()
            .map_or_else(|| "elsewhere".to_owned(), show);
        format!(
            "box: {}; responder: {responder}, {}, {} us of work",
            show(&self.box_thread),
            self.responder_mode,
            self.work_us
        )
    }

    fn rates_line(&self) -> String {
        let [min, mean, max] = self
            .success_rate
            .map(|rate| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.3}")));
        format!("control command success rate over 100: max {max}, avg {mean}, min {min}")
    }

    fn times(&self) -> String {
        let head = ["us", "min", "p50", "p99", "p99.9", "max", "samples"]
            .map(str::to_owned)
            .to_vec();
        let row = |name: &str, times: &Summary| {
            let mut row = vec![name.to_owned()];
            row.extend([times.min, times.p50, times.p99, times.p999, times.max].map(number));
            row.push(times.count.to_string());
            row
        };
        aligned(&[
            head,
            row("round trip", &self.round_trip_us),
            row("slack of replies", &self.slack_us),
            row("box send lateness", &self.send_lateness_us),
        ])
    }

    fn bounds_line(&self) -> String {
        let per = self.miss_bound_95.map_or_else(
            || "-".to_owned(),
            |bound| format!("one in {:.0} commands", 1.0 / bound),
        );
        let stops = self
            .stops_per_minute_95
            .map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2} a minute"));
        format!("at 95 % confidence: misses at most {per}; stops at most {stops}")
    }

    /// What the mean success rate means in practice.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self.success_rate[1] {
            None => "verdict: too few commands for a success rate over 100",
            Some(_) if self.counts.stops > 0 => {
                "verdict: the box stopped; find the stalls first (openlink doctor, openlink loop)"
            }
            Some(rate) if rate >= FINE => "verdict: fine for control",
            Some(rate) if rate >= BORDERLINE => "verdict: borderline; expect an occasional stop",
            Some(_) => "verdict: not fit for control at this rate",
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.link.refusal.iter().map(ToString::to_string).collect();
        let threads = [Some(&self.box_thread), self.responder_thread.as_ref()];
        remarks.extend(
            threads
                .into_iter()
                .flatten()
                .flat_map(|applied| &applied.refusals)
                .map(ToString::to_string),
        );
        remarks.extend(self.interference.contamination());
        remarks.extend(self.interference.throttling());
        remarks
    }

    /// The result in the shape of `diagnostic_msgs/DiagnosticStatus`.
    #[must_use]
    pub fn diagnostics(&self) -> serde_json::Value {
        let level = match self.advice() {
            "verdict: fine for control" => 0,
            advice if advice.contains("borderline") => 1,
            _ => 2,
        };
        let rate = |index: usize| {
            self.success_rate[index].map_or_else(String::new, |rate| format!("{rate:.4}"))
        };
        let values = [
            ("success_rate_min", rate(0)),
            ("success_rate_mean", rate(1)),
            ("missed", self.counts.missed.to_string()),
            ("worst_streak", self.worst_streak.to_string()),
            ("stops", self.counts.stops.to_string()),
            ("round_trip_p99_us", number(self.round_trip_us.p99)),
        ];
        let values: Vec<_> = values
            .into_iter()
            .map(|(key, value)| serde_json::json!({"key": key, "value": value}))
            .collect();
        serde_json::json!({"level": level, "name": "control box", "message": self.advice(), "hardware_id": self.link.kind, "values": values})
    }
}

fn rows(streaks: &[(usize, u64)]) -> String {
    if streaks.is_empty() {
        return "none".to_owned();
    }
    streaks
        .iter()
        .map(|(length, count)| format!("{length}:{count}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Poisson: with none seen in `minutes`, at most `3 / minutes`; with some, the normal approximation of the upper end.
fn stops_bound(stops: u64, minutes: f64) -> Option<f64> {
    let seen = stops as f64;
    (minutes > 0.0).then(|| {
        if stops == 0 {
            -(0.05_f64.ln()) / minutes
        } else {
            (seen + 1.645 * seen.sqrt() + 1.0) / minutes
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_minutes_without_a_stop_bound_it_at_one_in_two_minutes() {
        let bound = stops_bound(0, 6.0).unwrap();
        assert!((bound - 0.5).abs() < 0.01, "{bound}");
        assert_eq!(stops_bound(3, 0.0), None);
        assert!(stops_bound(4, 1.0).unwrap() > 4.0);
    }
}
