//! The summary of a bridge, for people and for machines.

use std::time::Duration;

use bridge_core::Summary;
use bridge_core::bridge::LinkReport;
use bridge_core::drone_side::Actions;
use bridge_core::outbox::Counters;
use serde::Serialize;

use super::Args;
use crate::out;

#[derive(Serialize)]
struct Report<'a> {
    from: String,
    to: String,
    seconds: f64,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Prints it.
pub(super) fn print(args: &Args, elapsed: Duration, summary: &Summary) {
    if args.json {
        let report = Report {
            from: args.from.to_string(),
            to: args.to.to_string(),
            seconds: elapsed.as_secs_f64(),
            summary,
        };
        out::json(&report);
    } else {
        for line in lines(args, elapsed, summary) {
            out::line(line);
        }
    }
}

fn lines(args: &Args, elapsed: Duration, summary: &Summary) -> Vec<String> {
    let mut lines = vec![
        format!(
            "bridged {} and {} for {:.1} s",
            args.from,
            args.to,
            elapsed.as_secs_f64()
        ),
        format!("to the drone:   {}", counters(&summary.uplink)),
        format!("from the drone: {}", counters(&summary.downlink)),
        format!("client link:    {}", link(&summary.client)),
        format!("drone link:     {}", link(&summary.drone)),
    ];
    lines.extend(
        summary
            .safety
            .as_ref()
            .map(|actions| format!("safety rules:   {}", safety(actions))),
    );
    lines.extend(
        summary
            .unsafe_by_rule
            .iter()
            .map(|(rule, count)| format!("refused {count}: {rule}")),
    );
    lines
}

fn counters(counters: &Counters) -> String {
    let Counters {
        sent,
        injected,
        superseded,
        expired,
        full,
        not_connected,
        refused,
        null,
    } = *counters;
    format!(
        "{sent} sent, of these {injected} added here; dropped: {superseded} superseded, {expired} expired, \
         {full} queue full, {not_connected} no peer, {refused} unsafe, {null} null"
    )
}

fn link(report: &LinkReport) -> String {
    let LinkReport {
        sent,
        received,
        bad_frames,
        strangers,
        stalls,
        reopened,
        superseded,
        expired,
    } = *report;
    format!(
        "{sent} written, {received} read, {bad_frames} damaged, {strangers} of strangers, {stalls} stalls, {reopened} times reopened, \
         {superseded} superseded, {expired} expired"
    )
}

fn safety(actions: &Actions) -> String {
    let Actions {
        unlock,
        high_level_next,
        hand_back,
        link_loss,
        hold_limit,
        client_gone,
        ending,
    } = *actions;
    format!(
        "{unlock} thrust unlocks, {high_level_next} notify-stops before high-level commands, {hand_back} hand-backs, \
         {link_loss} link losses, {hold_limit} hold limits, {client_gone} lost clients, {ending} in-flight endings"
    )
}
