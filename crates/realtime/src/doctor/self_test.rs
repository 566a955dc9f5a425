//! A short self-test of the live machine: the loop at the profile's period, and the control box. Takes about two
//! seconds; its findings are judged against the profile's limits.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::finding::{Finding, Judgement, Remedy, Verdict};
use super::profile::Profile;
use crate::control_box::network::{Cable, LinkKind};
use crate::control_box::responder::{Disturbance, HoldStill, Responder, Waiting};
use crate::control_box::rules::Rules;
use crate::control_box::run::{BoxPlan, Live, ResponderPlan, run_both};
use crate::control_box::score::Score;
use crate::periodic::cell::{Cell, CellResult, Plan};
use crate::periodic::job::Io;
use crate::periodic::load::LoadProfile;
use crate::periodic::report::number;
use crate::periodic::runner::Timing;
use crate::periodic::surroundings::cpus_online;
use crate::periodic::verdict::{Verdict as CellVerdict, danger};
use crate::thread::policy::{DEFAULT_PRIORITY, Policy};
use crate::thread::settings::ThreadPolicy;

const LENGTH: Duration = Duration::from_secs(1);
/// Misses in a row in the box's second that make it fail; half of what stops a real one.
const STREAK_LIMIT: u32 = 10;
const ADVICE: Remedy = Remedy::same(
    "follow the other findings, then measure longer with openlink loop and openlink box",
    "none",
);

/// Runs both tests.
#[must_use]
pub fn run(profile: Profile) -> Vec<Finding> {
    let policy = Policy::Fifo(DEFAULT_PRIORITY);
    let policy = if profile.wants_real_time() && danger(policy, cpus_online(), None).is_none() {
        policy
    } else {
        Policy::Other
    };
    vec![
        finding(
            "self_test.loop",
            "what the machine does now, whatever its settings promise",
            loop_test(profile, policy),
        ),
        finding(
            "self_test.box",
            "twenty missed replies in a row stop a real control box",
            box_test(profile, policy),
        ),
    ]
}

fn finding(id: &'static str, why: &'static str, judgement: Judgement) -> Finding {
    Finding {
        id,
        verdict: judgement.verdict,
        read: judgement.read,
        why,
        source: "this run",
        remedy: (judgement.verdict >= Verdict::Warn).then_some(ADVICE),
    }
}

fn loop_test(profile: Profile, policy: Policy) -> Judgement {
    let plan = Plan {
        timing: Timing {
            period: profile.period(),
            warmup: Duration::from_millis(50),
            duration: LENGTH,
        },
        state_bytes: 64 * 1024,
        io: Io::None,
        timer_slack_ns: Some(1),
        seed: 1,
    };
    let cell = Cell {
        policy,
        load: LoadProfile::None,
        pin: None,
    };
    match cell.measure(&plan, &AtomicBool::new(false)) {
        Err(error) => Judgement::cannot_tell(error.to_string()),
        Ok(result) => judge_loop(profile, &result),
    }
}

fn judge_loop(profile: Profile, result: &CellResult) -> Judgement {
    let Some(figures) = &result.figures else {
        return match &result.verdict {
            CellVerdict::Refused { refusals } => Judgement::new(
                profile.real_time_needed(),
                refusals
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; "),
            ),
            CellVerdict::Ok | CellVerdict::Contaminated { .. } | CellVerdict::Throttled { .. } => {
                Judgement::cannot_tell("nothing was measured")
            }
        };
    };
    let read = format!(
        "{} at {} us: {} misses in {} cycles, wake-up p99 {} us, max {} us",
        result.policy,
        profile.period().as_micros(),
        figures.misses,
        figures.cycles,
        number(figures.wake_us.p99),
        number(figures.wake_us.max),
    );
    Judgement::when(figures.misses > 0, profile.latency_matters(), read)
}

fn box_test(profile: Profile, policy: Policy) -> Judgement {
    if !profile.wants_real_time() {
        return Judgement::not_applicable("this profile answers no control box");
    }
    match run_box_test(policy) {
        Err(error) => Judgement::cannot_tell(error),
        Ok(score) => judge_box(&score, profile),
    }
}

fn run_box_test(policy: Policy) -> Result<Score, String> {
    let thread = ThreadPolicy {
        policy: Some(policy),
        ..ThreadPolicy::default()
    };
    let cable = Cable::lay(LinkKind::Loopback, 1500).map_err(|error| error.to_string())?;
    let plan = BoxPlan {
        rules: Rules::default(),
        duration: LENGTH,
        thread: thread.clone(),
    };
    let responder_plan = ResponderPlan {
        waiting: Waiting::Blocking,
        work: Duration::from_micros(20),
        thread,
    };
    let responder = Responder::new(HoldStill, Disturbance::default());
    let outcome = run_both(
        &cable,
        &plan,
        &responder_plan,
        responder,
        &Live::default(),
        &AtomicBool::new(false),
    );
    outcome
        .map(|(run, _)| run.score)
        .map_err(|error| error.to_string())
}

fn judge_box(score: &Score, profile: Profile) -> Judgement {
    let counts = score.counts;
    let read = format!(
        "{} of {} replies missed, longest row {}, {} slots skipped by the box itself",
        counts.missed, counts.sent, score.worst_streak, counts.box_overrun
    );
    if score.worst_streak >= STREAK_LIMIT {
        return Judgement::new(profile.real_time_needed(), read);
    }
    Judgement::when(counts.missed > 0, Verdict::Warn, read)
}
