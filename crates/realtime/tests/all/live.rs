//! Bounded runs on the real clock. They check bookkeeping and what was reported, never how fast the machine is.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use realtime::Policy;
use realtime::periodic::cell::{Cell, Plan, Verdict};
use realtime::periodic::export::{cyclictest_histogram, page};
use realtime::periodic::job::Io;
use realtime::periodic::load::LoadProfile;
use realtime::periodic::report::{Document, Method};
use realtime::periodic::runner::Timing;
use realtime::periodic::surroundings::Host;

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
    assert_eq!(
        figures.warmup + figures.cycles + figures.skipped,
        175,
        "ticks of 0.7 s at 4 ms"
    );
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
