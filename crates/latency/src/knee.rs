//! Finds the size at which round trips jump, and names the cause as far as the counters show one.
//!
//! A cause is called shown when an intervention removed it: the same cells measured with larger buffers or another
//! transport, without drops and without the jump. Otherwise it is only plausible.

use serde::Serialize;

use crate::analysis::{Config, Group, groups};
use crate::results::size;
use crate::table::us;

/// A tail this many times the expected median is a jump.
const JUMP: f64 = 4.0;
/// Without any drop it takes more than noise.
const UNEXPLAINED_JUMP: f64 = 8.0;
/// Sizes below this are not expected to take longer than each other, bytes.
const FLAT: usize = 16_000;

/// What made the tail jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The kernel dropped datagrams at full receive buffers, and the middleware's repair takes its own time.
    ReceiveBufferOverflow,
    /// From this size on the middleware took another transport: a sample that does not fit its shared memory goes
    /// by UDP.
    TransportChange,
    /// No counter moved.
    Unexplained,
}

/// A measured cure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// The transport that cures.
    pub transport: String,
    /// Its 99 % quantile at the knee, microseconds.
    pub p99_us: f64,
    /// Datagrams dropped with it.
    pub overflows: u64,
}

/// A jump.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// Configuration in words.
    pub config: String,
    /// Largest size before the jump, bytes.
    pub last_good: usize,
    /// Size at which the tail jumps, bytes.
    pub bytes: usize,
    /// Median there, microseconds.
    pub p50_us: f64,
    /// 99 % quantile there (the slowest answer of short runs), microseconds.
    pub p99_us: f64,
    /// Median to expect there from the sizes before, microseconds.
    pub expected_us: f64,
    /// Datagrams dropped there at full receive buffers.
    pub overflows: u64,
    /// Lost or late, and sent.
    pub missed: [u64; 2],
    /// The cause.
    pub cause: Cause,
    /// Interventions that removed it; empty: the cause is plausible, not shown.
    pub shown: Vec<Shown>,
}

impl Knee {
    /// What to do about it.
    #[must_use]
    pub const fn cure(&self) -> &'static str {
        match self.cause {
            Cause::ReceiveBufferOverflow => {
                "raise net.core.rmem_max and give the middleware's sockets larger buffers (Fast DDS: a profile with \
                 receiveBufferSize, or net.core.rmem_default; Cyclone DDS: SocketReceiveBufferSize), or take LARGE_DATA \
                 (FASTDDS_BUILTIN_TRANSPORTS=LARGE_DATA), or limit the burst with a flow controller"
            }
            Cause::TransportChange => {
                "enlarge the shared memory segment (Fast DDS: segment_size of the SHM transport), or take LARGE_DATA"
            }
            Cause::Unexplained => {
                "measure again with more restarts; look at steal, busy processors and the relay's own time first"
            }
        }
    }

    /// The finding in words.
    #[must_use]
    pub fn sentence(&self) -> String {
        let what = match self.cause {
            Cause::ReceiveBufferOverflow => {
                format!(
                    "{} datagrams dropped at full receive buffers",
                    self.overflows
                )
            }
            Cause::TransportChange => "another transport from this size on".to_owned(),
            Cause::Unexplained => "no counter moved".to_owned(),
        };
        let certainty = match self.shown.as_slice() {
            [] => format!("plausible, not shown; cure: {}", self.cure()),
            shown => {
                let cures = shown.iter().map(|cure| {
                    let p99 = us(Some(cure.p99_us));
                    format!(
                        "with {}: p99 {p99} us, {} dropped",
                        cure.transport, cure.overflows
                    )
                });
                format!(
                    "shown by intervention: {}",
                    cures.collect::<Vec<_>>().join("; ")
                )
            }
        };
        format!(
            "knee at {} ({}): p50 {} p99 {} us where {} were to be expected, {} of {} lost or late; {what}; {certainty}",
            size(self.bytes),
            self.config,
            us(Some(self.p50_us)),
            us(Some(self.p99_us)),
            us(Some(self.expected_us)),
            self.missed[0],
            self.missed[1],
        )
    }
}

/// The first knee of every configuration that was measured at two sizes or more.
#[must_use]
pub fn find(rows: &[crate::Row]) -> Vec<Knee> {
    let all = groups(rows);
    let found = all.iter().filter_map(|(config, sizes)| {
        let mut knee = first(config, sizes)?;
        let others = all.iter().filter(|(other, _)| {
            other.transport != config.transport
                && Config {
                    transport: config.transport.clone(),
                    ..Config::clone(other)
                } == *config
        });
        knee.shown = others
            .filter_map(|(other, sizes)| shown(&knee, other, sizes))
            .collect();
        Some(knee)
    });
    found.collect()
}

fn first(config: &Config, sizes: &[Group<'_>]) -> Option<Knee> {
    let mut good: Option<&Group<'_>> = None;
    for group in sizes {
        let Some(before) = good else {
            good = Some(group);
            continue;
        };
        if let Some(knee) = jump(config, before, group) {
            return Some(knee);
        }
        if group.p50().is_some() {
            good = Some(group);
        }
    }
    None
}

fn jump(config: &Config, before: &Group<'_>, group: &Group<'_>) -> Option<Knee> {
    let growth = group.bytes.max(FLAT) as f64 / before.bytes.max(FLAT) as f64;
    let expected_us = before.p50()? * growth;
    let (sent, missed) = group.sent_and_missed();
    // Where nothing arrives, the time-out stands for the answer that did not come.
    let timeout = group
        .rows
        .iter()
        .map(|row| row.timeout_ms * 1e3)
        .fold(0.0, f64::max);
    let p99_us = group.p99().unwrap_or(timeout);
    let overflows = group.overflows().unwrap_or(0);
    let limit = if overflows > 0 {
        JUMP
    } else {
        UNEXPLAINED_JUMP
    };
    (p99_us >= limit * expected_us).then(|| Knee {
        config: config.label(),
        last_good: before.bytes,
        bytes: group.bytes,
        p50_us: group.p50().unwrap_or(timeout),
        p99_us,
        expected_us,
        overflows,
        missed: [missed, sent],
        cause: cause(before, group, overflows),
        shown: Vec::new(),
    })
}

fn cause(before: &Group<'_>, group: &Group<'_>, overflows: u64) -> Cause {
    // One run may have been hidden by another program's traffic, so all of them must agree.
    let all = |group: &Group<'_>, transport: &str| {
        let mut seen = group.rows.iter().map(|row| row.setting("transport_seen"));
        seen.all(|seen| seen.as_deref() == Some(transport))
    };
    if overflows > 0 {
        Cause::ReceiveBufferOverflow
    } else if all(before, "shared memory") && all(group, "udp") {
        Cause::TransportChange
    } else {
        Cause::Unexplained
    }
}

/// Another transport shows the cause when it neither jumps nor drops at the knee.
fn shown(knee: &Knee, other: &Config, sizes: &[Group<'_>]) -> Option<Shown> {
    let group = sizes.iter().find(|group| group.bytes == knee.bytes)?;
    let (p99_us, overflows) = (group.p99()?, group.overflows()?);
    let cured = p99_us < JUMP * knee.expected_us
        && p99_us < knee.p99_us
        && overflows * 10 <= knee.overflows;
    (cured && knee.cause != Cause::Unexplained).then(|| Shown {
        transport: other.transport.clone(),
        p99_us,
        overflows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row;
    use crate::analysis::samples::{run, with_overflows};

    fn smooth(transport: &str, bytes: usize) -> Row {
        with_overflows(
            run("same-domain", transport, bytes, |i| {
                Some(bytes as u64 / 500 + i % 50)
            }),
            0,
        )
    }

    fn rough(bytes: usize, overflows: u64) -> Row {
        let us = move |i| {
            Some(if i % 3 == 0 {
                22_000
            } else {
                bytes as u64 / 500
            })
        };
        with_overflows(run("same-domain", "udp", bytes, us), overflows)
    }

    #[test]
    fn an_overflow_is_named_and_only_plausible_until_a_cure_was_measured() {
        let mut rows = vec![
            smooth("udp", 145_000),
            smooth("udp", 200_000),
            rough(300_000, 900),
            rough(502_000, 2081),
        ];
        let found = find(&rows);
        assert_eq!(found.len(), 1, "the first size alone");
        assert_eq!((found[0].last_good, found[0].bytes), (200_000, 300_000));
        assert_eq!(
            (found[0].cause, found[0].overflows),
            (Cause::ReceiveBufferOverflow, 900)
        );
        assert!(
            found[0].sentence().contains("plausible") && found[0].sentence().contains("rmem_max")
        );
        rows.push(smooth("udp 4 MiB buffers", 300_000));
        let found = find(&rows);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].shown[0].transport, "udp 4 MiB buffers");
        assert!(found[0].sentence().contains("shown by intervention"));
    }

    #[test]
    fn a_transport_that_jumps_as_well_shows_nothing() {
        let mut other = rough(300_000, 700);
        other
            .identity
            .settings
            .insert("transport".into(), "shm".into());
        let rows = [smooth("udp", 200_000), rough(300_000, 900), other];
        assert_eq!(find(&rows)[0].shown, []);
    }

    #[test]
    fn no_knee_without_a_jump_and_none_from_a_single_size() {
        let rows = [
            smooth("udp", 64),
            smooth("udp", 33_000),
            smooth("udp", 4_000_000),
        ];
        assert_eq!(find(&rows), []);
        assert_eq!(find(&[rough(300_000, 900)]), []);
        assert_eq!(find(&[]), []);
    }

    #[test]
    fn a_size_that_never_arrives_is_reported_as_a_knee_of_unknown_cause() {
        let lost = with_overflows(run("same-domain", "udp", 300_000, |_| None), 0);
        let found = find(&[smooth("udp", 200_000), lost]);
        assert_eq!(
            (found[0].missed, found[0].cause),
            ([200, 200], Cause::Unexplained)
        );
    }

    #[test]
    fn samples_that_leave_shared_memory_are_told_from_overflows() {
        let seen = |mut row: Row, transport: &str| {
            row.identity
                .settings
                .insert("transport_seen".into(), transport.into());
            row
        };
        let rows = [
            seen(smooth("udp", 500_000), "shared memory"),
            seen(rough(1_000_000, 0), "udp"),
        ];
        assert_eq!(find(&rows)[0].cause, Cause::TransportChange);
    }
}
