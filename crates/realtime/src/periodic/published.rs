//! Figures that were published for the same experiment, and ours beside them.
//!
//! Only quotes; every figure carries its condition.

use serde::{Deserialize, Serialize};

use super::cell::CellResult;
use super::report::number;

/// A figure somebody else published for the same experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// What was measured.
    pub what: String,
    /// The figure.
    pub value: String,
    /// Under which conditions.
    pub condition: String,
}

/// Our worst wake-up of each class under the heaviest load beside the published ones.
pub(crate) fn beside(cells: &[CellResult]) -> Vec<Vec<String>> {
    let head = [
        "  policy",
        "ours, max us",
        "% of period",
        "load",
        "published: standard kernel",
        "published: PREEMPT_RT",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (class, standard, real_time) in PUBLISHED_WORST {
        let of_class = cells
            .iter()
            .filter(|cell| cell.policy.class() == class && cell.figures.is_some());
        let heaviest = of_class.max_by_key(|cell| cell.load as u8);
        let figures = heaviest.and_then(|cell| cell.figures.as_ref());
        rows.push(vec![
            format!("  {class}"),
            number(figures.and_then(|figures| figures.wake_us.max)),
            number(figures.and_then(|figures| figures.worst_share_percent)),
            heaviest.map_or("-", |cell| cell.load.name()).to_owned(),
            standard.to_owned(),
            real_time.to_owned(),
        ]);
    }
    rows
}

/// Worst wake-ups under heavy load by class: standard kernel, PREEMPT_RT; same source as [`published`].
const PUBLISHED_WORST: [(&str, &str, &str); 4] = [
    ("other", "9424", "-"),
    ("fifo", "1848", "224"),
    ("rr", "-", "< 225"),
    ("deadline", "-", "< 225"),
];

/// The figures as rows of a table.
pub(crate) fn rows(published: &[Published]) -> Vec<Vec<String>> {
    published
        .iter()
        .map(|figure| {
            vec![
                format!("  {}", figure.what),
                figure.value.clone(),
                figure.condition.clone(),
            ]
        })
        .collect()
}

/// Figures of "Scheduling Analysis of UAV Flight Control Workloads using Raspberry Pi 5 Using PREEMPT_RT Linux"
/// (4 policies × 4 loads on each of two kernels, no I/O in the loop).
pub(crate) fn published() -> Vec<Published> {
    let rows = [
        ("worst wake-up", "9424 us", "standard kernel, heavy stress"),
        ("worst wake-up", "1848 us", "standard kernel, SCHED_FIFO"),
        (
            "worst wake-up",
            "224 us",
            "PREEMPT_RT, SCHED_FIFO; all real-time policies below 225 us",
        ),
        (
            "reduction",
            "almost 88 %",
            "1 - 224/1848, so FIFO against FIFO; against 9424 us it is 97.6 %",
        ),
        ("share of the period", "5.6 %", "224 us of 4000 us"),
        (
            "activation",
            "> 100 us / 7 us",
            "standard kernel through softirq / PREEMPT_RT direct",
        ),
        (
            "execution time",
            "3.8 us to 51 us",
            "idle to stressed, shared cache and memory",
        ),
        (
            "microcontroller",
            "10-20 us",
            "STM32F7 with FreeRTOS, jitter",
        ),
    ];
    rows.map(|(what, value, condition)| Published {
        what: what.to_owned(),
        value: value.to_owned(),
        condition: condition.to_owned(),
    })
    .to_vec()
}
