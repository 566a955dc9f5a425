//! Pages of ordinary, empty and hostile results.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::{Echo, Host, Identity, Mode, MonoNs, Payload, Plan, Prober};

fn row(path: &str, bytes: usize, answers: u64) -> Row {
    let plan = Plan {
        mode: Mode::Rate { hz: 100.0 },
        bytes,
        count: answers.max(1),
        warmup: 0,
        wait: Duration::ZERO,
        ..Plan::default()
    };
    let mut prober = Prober::new(plan, MonoNs(0)).unwrap();
    for i in 0..answers {
        let now = MonoNs(i * 10_000_000);
        let probe = prober.poll_send(now).unwrap();
        let echo = Echo {
            run_id: 0,
            sequence: probe.sequence,
            relay: None,
            bytes,
        };
        prober.handle_echo(MonoNs(now.0 + 100_000 + (i * 7919) % 900_000), &echo);
    }
    let identity = Identity {
        link: "dds".into(),
        path: path.into(),
        domains: Some([5, 10]),
        rmw: None,
        qos: None,
        payload: Payload::Binary,
        settings: BTreeMap::new(),
    };
    Row::new(identity, &prober.finish(MonoNs(answers * 10_000_000)))
}

fn page(rows: Vec<Row>) -> String {
    render(&Results::new(Host::default(), rows)).unwrap()
}

fn assert_whole(page: &str) {
    for bad in ["NaN", "inf", "undefined", "http://", "https://"] {
        let known = ["http://www.w3.org/2000/svg"];
        let found = page
            .match_indices(bad)
            .filter(|(at, _)| !known.iter().any(|ok| page[*at..].starts_with(ok)));
        assert_eq!(found.count(), 0, "{bad} is in the page");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
}

#[test]
fn empty_and_one_sample_results_give_a_readable_page() {
    let empty = page(vec![]);
    assert_whole(&empty);
    assert!(empty.contains("nothing was measured"));
    let unanswered = page(vec![row("same-domain", 64, 0)]);
    assert_whole(&unanswered);
    assert!(unanswered.contains("no answer in time") && unanswered.contains("nothing to draw"));
    let one = page(vec![row("same-domain", 64, 1)]);
    assert_whole(&one);
    assert!(one.contains("<svg") && one.contains("1 answers"));
}

#[test]
fn rows_of_one_size_and_rate_share_a_chart() {
    let rows = vec![
        row("same-domain", 64, 200),
        row("cross-domain", 64, 200),
        row("same-domain", 33_000, 200),
    ];
    let page = page(rows);
    assert_whole(&page);
    assert_eq!(
        page.matches("<svg").count(),
        2 * (1 + 2),
        "boxes and two groups, wide and narrow"
    );
    assert_eq!(
        page.matches("data-color").count(),
        3,
        "a legend entry for each line"
    );
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let evil = "</script><script>alert(1)</script>";
    let page = page(vec![row(evil, 64, 50)]);
    assert!(!page.contains(evil) && !page.contains("<script>alert"));
}

#[test]
fn a_page_is_written_whole_into_a_new_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out/report.html");
    write(&Results::new(Host::default(), vec![row("x", 1, 3)]), &path).unwrap();
    assert_whole(&std::fs::read_to_string(path).unwrap());
}
