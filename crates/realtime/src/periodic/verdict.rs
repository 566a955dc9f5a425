//! What a cell's figures are worth, and which cells are too dangerous to run unasked. Pure.

use serde::{Deserialize, Serialize};

use super::record::Recorder;
use super::spin::{Hole, RtLimit};
use super::surroundings::Interference;
use crate::cpu_list::CpuList;
use crate::thread::policy::Policy;
use crate::thread::refusal::Refusal;

/// What a cell's figures are worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// As good as the sample count.
    Ok,
    /// The kernel refused the policy or the pin; nothing was measured.
    Refused {
        /// What and why.
        refusals: Vec<Refusal>,
    },
    /// Something else ran on the machine.
    Contaminated {
        /// What.
        reasons: Vec<String>,
    },
    /// The machine slowed the loop down on purpose.
    Throttled {
        /// How.
        reason: String,
    },
}

/// The verdict from the records alone: throttling before contamination, because it explains the figures.
pub(crate) fn judge(
    recorder: &Recorder,
    policy: Policy,
    interference: &Interference,
    limit: RtLimit,
) -> Verdict {
    if let Some(reason) = interference.throttling() {
        return Verdict::Throttled { reason };
    }
    if let Some(reason) = policy
        .is_real_time()
        .then(|| limit.verdict(&stolen(recorder)))
        .flatten()
    {
        return Verdict::Throttled { reason };
    }
    let reasons = interference.contamination();
    if reasons.is_empty() {
        Verdict::Ok
    } else {
        Verdict::Contaminated { reasons }
    }
}

/// The times of the worst cycles in which the job was under way without the CPU, in order of time.
fn stolen(recorder: &Recorder) -> Vec<Hole> {
    let mut cycles: Vec<_> = recorder
        .worst()
        .into_iter()
        .map(|(_, cycle)| cycle)
        .collect();
    cycles.sort_by_key(|cycle| cycle.due);
    cycles
        .iter()
        .map(|cycle| Hole {
            began: cycle.began,
            length_ns: cycle.exec_ns().saturating_sub(cycle.cpu_ns),
        })
        .collect()
}

/// Why a cell needs an explicit "force": a real-time thread at the top priority, or on the machine's only core, can
/// keep everything else, including the shell that could stop it, from running.
#[must_use]
pub fn danger(policy: Policy, online: usize, pin: Option<&CpuList>) -> Option<String> {
    if policy.priority() == Some(99) {
        return Some(
            "priority 99 is that of the kernel's own migration and watchdog threads".to_owned(),
        );
    }
    let cores = pin.map_or(online, CpuList::len).min(online);
    (policy.is_real_time() && online <= 1 && cores <= 1).then(|| {
        "a real-time loop on the only core can keep everything else from running".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::mono::Mono;
    use crate::periodic::record::Cycle;

    const STOCK: RtLimit = RtLimit {
        runtime_us: 950_000,
        period_us: 1_000_000,
    };

    /// Jitter test at top priority stops the machine: priority 99 or the only core needs a force flag.
    #[test]
    fn top_priority_or_the_only_core_needs_force() {
        assert!(danger(Policy::Fifo(99), 4, None).unwrap().contains("99"));
        assert!(
            danger(Policy::Fifo(80), 1, None)
                .unwrap()
                .contains("only core")
        );
        assert!(danger(Policy::deadline_for(Duration::from_millis(4)), 1, None).is_some());
        assert_eq!(
            danger(Policy::Fifo(80), 2, Some(&"0".parse().unwrap())),
            None
        );
        assert_eq!(danger(Policy::Other, 1, None), None);
    }

    fn recorder_with_holes(length_ms: u64) -> Recorder {
        let mut recorder = Recorder::new(4_000_000, 1).unwrap();
        for index in 0..2000u64 {
            let began = Mono(index * 4_000_000);
            let hole = if index % 250 == 249 {
                length_ms * 1_000_000
            } else {
                0
            };
            let ended = Mono(began.0 + 10_000 + hole);
            recorder.record(&Cycle {
                index,
                due: began,
                woke: began,
                began,
                ended,
                cpu_ns: 10_000,
                skipped: 0,
            });
        }
        recorder
    }

    #[test]
    fn throttling_and_contamination_make_the_verdict() {
        let quiet = Interference::default();
        let holes = recorder_with_holes(50);
        let Verdict::Throttled { reason } = judge(&holes, Policy::Fifo(80), &quiet, STOCK) else {
            panic!("not throttled");
        };
        assert!(reason.contains("sched_rt_runtime_us = 950000"), "{reason}");
        assert_eq!(judge(&holes, Policy::Other, &quiet, STOCK), Verdict::Ok);
        let busy = Interference {
            foreign_share: Some(0.5),
            ..quiet
        };
        let verdict = judge(&recorder_with_holes(3), Policy::Fifo(80), &busy, STOCK);
        assert!(matches!(verdict, Verdict::Contaminated { .. }));
    }
}
