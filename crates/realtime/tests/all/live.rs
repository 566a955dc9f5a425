//! Bounded runs on the real clock. They check bookkeeping and what was reported, never how fast the machine is.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use realtime::control_box::network::{Cable, LinkKind, NetworkError};
use realtime::control_box::responder::{Disturbance, HoldStill, Responder, Waiting};
use realtime::control_box::rules::Rules;
use realtime::control_box::run::{BoxPlan, Live, ResponderPlan, run_both};
use realtime::periodic::cell::{Cell, Plan};
use realtime::periodic::export::{cyclictest_histogram, page};
use realtime::periodic::job::Io;
use realtime::periodic::load::LoadProfile;
use realtime::periodic::report::{Document, Method};
use realtime::periodic::runner::Timing;
use realtime::periodic::surroundings::Host;
use realtime::periodic::verdict::Verdict;
use realtime::thread::facts::Permissions;
use realtime::thread::refusal::Cause;
use realtime::{Policy, ThreadPolicy};

fn plan(io: Io) -> Plan {
    Plan {
        timing: Timing {
            period: Duration::from_millis(4),
            warmup: Duration::from_millis(100),
            duration: Duration::from_millis(600),
        },
        state_bytes: 4096,
        io,
        timer_slack_ns: Some(1),
        seed: 1,
    }
}

fn cell(policy: Policy, pin: Option<&str>) -> Cell {
    Cell {
        policy,
        load: LoadProfile::None,
        pin: pin.map(|cpus| cpus.parse().unwrap()),
    }
}

#[test]
fn a_short_run_reports_the_policy_it_really_had() {
    let plan = plan(Io::None);
    let result = cell(Policy::Other, None)
        .measure(&plan, &AtomicBool::new(false))
        .unwrap();
    assert_eq!(result.effective.unwrap().policy, Some(Policy::Other));
    let figures = result.figures.unwrap();
    assert_eq!(figures.warmup, 25);
    assert!(figures.cycles > 0);
    assert_eq!(figures.drift_ns, 0);
    assert_eq!(
        figures
            .histogram
            .iter()
            .map(|(_, count)| count)
            .sum::<u64>()
            + figures.overflow,
        figures.cycles
    );
}

/// A pinned DEADLINE thread is refused with its reason and the matrix goes on.
#[test]
fn pinned_deadline_is_refused_with_the_reason_and_the_matrix_goes_on() {
    let cpu = realtime::Effective::read()
        .unwrap()
        .cpus
        .iter()
        .next()
        .unwrap()
        .to_string();
    let plan = plan(Io::None);
    let stop = AtomicBool::new(false);
    let cells = [
        cell(Policy::deadline_for(plan.timing.period), Some(&cpu)),
        cell(Policy::Other, Some(&cpu)),
    ];
    let results: Vec<_> = cells
        .iter()
        .map(|cell| cell.measure(&plan, &stop).unwrap())
        .collect();
    let Verdict::Refused { refusals } = &results[0].verdict else {
        panic!("a pinned DEADLINE thread ran: {:?}", results[0]);
    };
    assert!(
        !refusals[0].remedy.is_empty() && refusals[0].errno != 0,
        "{refusals:?}"
    );
    assert!(results[0].figures.is_none() && results[1].figures.is_some());
    let document = Document::new(Host::read(), Method::of(&plan, None, None), results, false);
    assert!(document.table().contains("refused"), "{}", document.table());
    assert!(page(&document).unwrap().contains("</svg>"));
}

#[test]
fn exchanges_in_the_loop_are_counted_and_survive_the_file() {
    let plan = plan(Io::Pty);
    let result = cell(Policy::Other, None)
        .measure(&plan, &AtomicBool::new(false))
        .unwrap();
    let exchanges = result.figures.as_ref().unwrap().exchanges.unwrap();
    let figures = result.figures.as_ref().unwrap();
    assert_eq!(
        exchanges.answered + exchanges.unanswered + exchanges.errors,
        figures.cycles + figures.warmup
    );
    let document = Document::new(
        Host::read(),
        Method::of(&plan, None, None),
        vec![result],
        false,
    );
    let json = serde_json::to_string(&document).unwrap();
    assert_eq!(Document::parse(&json).unwrap(), document);
    assert!(cyclictest_histogram(&document).starts_with("# Histogram\n000000 "));
    let other = json.replacen("\"schema\":1", "\"schema\":9", 1);
    assert!(
        Document::parse(&other)
            .unwrap_err()
            .to_string()
            .contains("schema is 9")
    );
}

fn box_plan(millis: u64) -> BoxPlan {
    BoxPlan {
        rules: Rules {
            auto_recover: Some(Duration::from_millis(10)),
            ..Rules::default()
        },
        duration: Duration::from_millis(millis),
        thread: ThreadPolicy::default(),
    }
}

/// Runs box and responder and checks only that every state and every reply is accounted for.
fn box_books_balance(kind: LinkKind, waiting: Waiting) {
    let cable = match Cable::lay(kind, 1500) {
        Ok(cable) => cable,
        Err(NetworkError::Refused(refusal)) => {
            assert!(!refusal.remedy.is_empty());
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let responder_plan = ResponderPlan {
        waiting,
        work: Duration::from_micros(20),
        thread: ThreadPolicy {
            busy_poll_us: Some(20),
            ..ThreadPolicy::default()
        },
    };
    let responder = Responder::new(HoldStill, Disturbance::default());
    let (live, stop) = (Live::default(), AtomicBool::new(false));
    let (near, far) = run_both(
        &cable,
        &box_plan(1_500),
        &responder_plan,
        responder,
        &live,
        &stop,
    )
    .unwrap();
    let counts = near.score.counts;
    assert!(counts.sent > 0 && far.answered > 0, "{counts:?}");
    assert_eq!(
        counts.sent,
        counts.accepted + counts.missed + counts.excluded + near.in_flight,
        "{counts:?}"
    );
    assert_eq!(
        (counts.wrong_size, counts.malformed, far.refused),
        (0, 0, 0)
    );
    assert!(counts.accepted + counts.late + counts.stale <= far.answered);
}

#[test]
fn box_books_balance_on_loopback() {
    box_books_balance(LinkKind::Loopback, Waiting::Blocking);
}

#[test]
fn box_books_balance_between_namespaces_or_the_link_is_refused_with_a_remedy() {
    box_books_balance(LinkKind::Veth, Waiting::BusyPoll);
}

#[test]
fn a_namespace_link_fragments_a_state_in_two() {
    let Ok(mut cable) = Cable::lay(LinkKind::Veth, 1500) else {
        return;
    };
    assert_eq!(
        (cable.facts.mtu, cable.facts.state_fragments),
        (Some(1500), Some(2))
    );
    let before = cable.fragments_made().unwrap();
    cable.near.send(&[0; 2373]).unwrap();
    assert_eq!(cable.fragments_made().unwrap() - before, 2);
}

/// A thread without CAP_SYS_NICE and without a limit that allows it is refused with cause and remedy, keeps the class
/// it had, and makes an error where no compromise is accepted.
#[test]
fn a_thread_without_the_capability_is_refused_and_keeps_its_class() {
    let applied = std::thread::spawn(|| {
        let mut sets = rustix::thread::capabilities(None).unwrap();
        sets.effective
            .remove(rustix::thread::CapabilitySet::SYS_NICE);
        rustix::thread::set_capabilities(None, sets).unwrap();
        let may = Permissions::read();
        let wish = ThreadPolicy {
            policy: Some(Policy::Fifo(80)),
            ..ThreadPolicy::default()
        };
        (may, wish.apply().unwrap())
    });
    let (may, applied) = applied.join().unwrap();
    assert!(!may.sys_nice);
    if may.rtprio_limit.is_none_or(|limit| limit >= 80) {
        assert_eq!(applied.effective.policy, Some(Policy::Fifo(80)));
        return;
    }
    assert_eq!(applied.effective.policy, Some(Policy::Other));
    let refusal = applied.require().unwrap_err();
    assert_eq!(refusal.errno_name, "EPERM");
    assert!(
        matches!(refusal.cause, Cause::ResourceLimit | Cause::CgroupRuntime),
        "{refusal}"
    );
    assert!(
        refusal.remedy.contains("rtprio") || refusal.remedy.contains("rt_runtime_us"),
        "{refusal}"
    );
}
