//! What the link has to show before a drone is armed.

use super::{Level, Report, WINDOW};

/// What speaks against arming a drone over this link, in words; empty: nothing. The self-test is the last 100 exchanges,
/// 10 s of them.
#[must_use]
pub fn blockers(report: &Report) -> Vec<String> {
    let mut found = Vec::new();
    if report.level != Level::Ok {
        found.push(format!("the link is {}: {}", report.level, report.why));
    }
    if report.exchanges < WINDOW {
        let done = report.exchanges;
        found.push(format!(
            "the self-test of the link is not complete: {done} of {WINDOW} echoes"
        ));
    }
    found
}
