//! What the bridge tells about itself, once a period: diagnostics of every robot, connection statistics, warnings.

use std::time::{Duration, Instant};

use bridge_core::drone;
use bridge_core::health::{Level, Report};
use crtp::supervisor::Info;
use latency::histogram::Histogram;
use rclrs::Publisher;
use ros_env::crazyflie_openlink::msg as own;
use ros_env::diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus, KeyValue};

use super::messages as convert;
use super::robot::{Robot, wall_ns};
use crate::ros::stand_in::Named;

/// More setpoints than this share do not reach the drone: the link is slower than who sends.
const SUPERSEDED_SHARE: f64 = 0.1;
/// Fewer setpoints than this in a period say nothing.
const FEW: u64 = 10;

/// Exchanges after which a new connection that is not yet ok is a failing one.
const FEW_EXCHANGES: u32 = 10;

/// When to look and whom to tell.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Time between two looks.
    pub(super) period: Duration,
    /// Publish connection statistics.
    pub(super) statistics: bool,
    /// Poses of motion capture should come this often, Hz.
    pub(super) poses_hz: [f64; 2],
}

/// Everything that is told once a period.
pub(super) struct Health {
    settings: Settings,
    due: Instant,
    diagnostics: Publisher<DiagnosticArray>,
    statistics: Option<Publisher<Named<own::ConnectionStatisticsArray>>>,
    /// Time from the stamp of a setpoint to its hand-over to the link, since the last look.
    ages: Histogram,
    /// Messages of motion capture since the last look.
    pub(super) poses: u64,
    poses_were_bad: bool,
}

impl Health {
    pub(super) fn new(
        settings: Settings,
        diagnostics: Publisher<DiagnosticArray>,
        statistics: Option<Publisher<Named<own::ConnectionStatisticsArray>>>,
    ) -> Self {
        Self {
            due: Instant::now() + settings.period,
            settings,
            diagnostics,
            statistics,
            ages: Histogram::new(),
            poses: 0,
            poses_were_bad: false,
        }
    }

    /// When to look next.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// A setpoint has been handed to its link this long after its stamp; clocks that disagree are left out.
    pub(super) fn record_age(&mut self, ns: i64) {
        if let Ok(ns) = u64::try_from(ns) {
            self.ages.record(ns);
        }
    }

    /// Tells everything.
    pub(super) fn look(&mut self, now: Instant, robots: &mut [Robot]) {
        let mut status = vec![self.bridge_status(robots.len())];
        for robot in robots.iter_mut() {
            status.push(robot_status(now, robot));
        }
        let header = convert::header(wall_ns(), "");
        let message = DiagnosticArray { header, status };
        if let Err(error) = self.diagnostics.publish(message) {
            tracing::warn!(%error, "cannot publish diagnostics");
        }
        self.publish_statistics(robots);
        self.check_poses();
        self.ages = Histogram::new();
        self.due = now + self.settings.period;
    }

    fn bridge_status(&self, robots: usize) -> DiagnosticStatus {
        let milliseconds = |q: f64| {
            let age = self.ages.quantile(q);
            age.map_or_else(|| "none".to_owned(), |ns| format!("{:.3}", ns / 1e6))
        };
        let values = vec![
            pair("robots", robots),
            pair("setpoints", self.ages.len()),
            pair("setpoint age p50, ms", milliseconds(0.5)),
            pair("setpoint age p99, ms", milliseconds(0.99)),
            pair("motion capture messages", self.poses),
        ];
        DiagnosticStatus {
            level: DiagnosticStatus::OK,
            name: "bridge".into(),
            message: "running".into(),
            hardware_id: String::new(),
            values,
        }
    }

    fn publish_statistics(&self, robots: &[Robot]) {
        let Some(all) = &self.statistics else { return };
        let stamp = wall_ns();
        let message = |stats| {
            let header = convert::header(stamp, "");
            Named(own::ConnectionStatisticsArray { header, stats })
        };
        let mut everyone = Vec::new();
        for robot in robots {
            let stats = statistics(robot);
            everyone.push(stats.clone());
            if let Some(publisher) = &robot.publishers.statistics
                && let Err(error) = publisher.publish(message(vec![stats]))
            {
                tracing::warn!(robot = robot.name, %error, "cannot publish");
            }
        }
        if let Err(error) = all.publish(message(everyone)) {
            tracing::warn!(%error, "cannot publish connection statistics");
        }
    }

    /// One line when the rate of motion capture leaves its range, none while it comes not at all.
    fn check_poses(&mut self) {
        let [low, high] = self.settings.poses_hz;
        let rate = self.poses as f64 / self.settings.period.as_secs_f64();
        let bad = self.poses > 0 && !(low..=high).contains(&rate);
        if bad && !self.poses_were_bad {
            tracing::warn!("motion capture comes at {rate:.0} Hz instead of {low} to {high} Hz");
        }
        (self.poses, self.poses_were_bad) = (0, bad);
    }
}

fn statistics(robot: &Robot) -> own::ConnectionStatistics {
    let (link, client) = (robot.notes.link_stats, robot.drone.health().client);
    own::ConnectionStatistics {
        uri: robot.uri.clone(),
        sent_count: link.sent,
        sent_ping_count: client.pings,
        receive_count: link.received,
        enqueued_count: robot.drone.counters().sent,
        ack_count: client.echoes,
    }
}

fn robot_status(now: Instant, robot: &mut Robot) -> DiagnosticStatus {
    let health = robot.drone.health();
    let link = robot.drone.link_health(now);
    let (level, message) = judge(robot, &health, &link);
    let counters = robot.drone.counters();
    let supervisor = robot.drone.supervisor();
    let values = vec![
        pair("link", &robot.notes.link),
        pair("uri", &robot.uri),
        pair("supervisor", supervisor.map_or_else(String::new, in_words)),
        pair("link health", format!("{}: {}", link.level, link.why)),
        pair("success rate", optional(link.success_rate)),
        pair("echoes missed in a row", link.miss_streak),
        pair("echoes missed in a row, worst", link.worst_streak),
        pair("links lost", link.losses),
        pair("last packet sent, ms ago", milliseconds(link.sent_age)),
        pair("last packet received, ms ago", milliseconds(link.heard_age)),
        pair("round trip, ms", milliseconds(health.round_trip)),
        pair("battery, V", robot.notes.voltage.unwrap_or(f64::NAN)),
        pair("packets sent", robot.notes.link_stats.sent),
        pair("packets received", robot.notes.link_stats.received),
        pair("telemetry samples", health.samples),
        pair("setpoints superseded", counters.superseded),
        pair("packets expired", counters.expired),
        pair(
            "packets dropped, queue full",
            counters.full + robot.notes.link_stats.dropped_full,
        ),
        pair("packets dropped, not connected", counters.not_connected),
        pair("packets refused", counters.refused),
        pair("setpoints refused", robot.notes.refused_setpoints),
        pair("events dropped", health.events_dropped),
    ];
    note_pace(robot);
    DiagnosticStatus {
        level,
        name: format!("bridge: {}", robot.name),
        message,
        hardware_id: robot.uri.clone(),
        values,
    }
}

fn judge(robot: &Robot, health: &drone::Health, report: &Report) -> (u8, String) {
    let refusal = robot.drone.supervisor().and_then(Info::refusal);
    let voltage = robot.notes.voltage.unwrap_or(f64::MAX);
    if !health.connected {
        let link = if robot.notes.link.is_empty() {
            "connecting"
        } else {
            &robot.notes.link
        };
        (DiagnosticStatus::ERROR, link.to_owned())
    } else if voltage < robot.battery.critical {
        (
            DiagnosticStatus::ERROR,
            format!("battery critical: {voltage:.2} V"),
        )
    } else if report.level >= Level::Failing && report.exchanges >= FEW_EXCHANGES {
        (DiagnosticStatus::ERROR, in_short(report))
    } else if let Some(why) = refusal {
        (DiagnosticStatus::WARN, why.to_owned())
    } else if report.level == Level::Degraded {
        (DiagnosticStatus::WARN, in_short(report))
    } else if voltage < robot.battery.warning {
        (
            DiagnosticStatus::WARN,
            format!("battery low: {voltage:.2} V"),
        )
    } else {
        (DiagnosticStatus::OK, "connected".to_owned())
    }
}

fn in_short(report: &Report) -> String {
    format!("link {}: {}", report.level, report.why)
}

/// Who sends faster than the link takes is told, once a period: the rest is superseded, never queued.
fn note_pace(robot: &mut Robot) {
    let counters = robot.drone.counters();
    let superseded = counters.superseded - robot.notes.superseded;
    let sent = counters.sent - robot.notes.sent;
    (robot.notes.superseded, robot.notes.sent) = (counters.superseded, counters.sent);
    let share = superseded as f64 / (superseded + sent).max(1) as f64;
    if superseded >= FEW && share > SUPERSEDED_SHARE {
        tracing::warn!(
            robot = robot.name,
            superseded,
            sent,
            "setpoints come faster than the link takes them: the older ones are superseded"
        );
    }
}

/// The bits that are set, and why the drone would not fly.
fn in_words(info: Info) -> String {
    const BITS: [(Info, &str); 8] = [
        (Info::CAN_BE_ARMED, "can be armed"),
        (Info::ARMED, "armed"),
        (Info::CAN_FLY, "can fly"),
        (Info::FLYING, "flying"),
        (Info::TUMBLED, "tumbled"),
        (Info::LOCKED, "locked"),
        (Info::CRASHED, "crashed"),
        (Info::HIGH_LEVEL_ACTIVE, "high-level flight"),
    ];
    let set = BITS.iter().filter(|(bit, _)| info.has(*bit));
    set.map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
}

fn milliseconds(duration: Option<Duration>) -> String {
    duration.map_or_else(
        || "unknown".to_owned(),
        |time| format!("{:.3}", time.as_secs_f64() * 1e3),
    )
}

fn optional(share: Option<f64>) -> String {
    share.map_or_else(|| "unknown".to_owned(), |share| format!("{share:.2}"))
}

fn pair(key: &str, value: impl ToString) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: value.to_string(),
    }
}
