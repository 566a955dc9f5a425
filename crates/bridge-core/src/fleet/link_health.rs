//! `link_health` of the fleet file, layer on layer.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::FleetError;
use super::raw::{Health, Rung};
use super::resolve::refuse;
use crate::health::{Limits, Reaction, Thresholds, WINDOW};

/// Counts of exchanges that a setting takes.
const COUNTS: RangeInclusive<u64> = 1..=WINDOW as u64;

/// Both, as far as the layers have settled them.
pub(super) type Settled = (Thresholds, Reaction);

/// Puts one layer on top of those below; `key` is where its values are said to stand.
pub(super) fn apply(below: Settled, key: &str, layer: &Health) -> Result<Settled, FleetError> {
    let (thresholds, reaction) = below;
    let count = |name: &str, value, default| count(&format!("{key}.{name}"), value, default);
    let rung = |name: &str, layer, below| rung(&format!("{key}.{name}"), layer, below);
    let thresholds = Thresholds {
        answer_within: answer_within(key, layer.answer_within_ms, thresholds.answer_within)?,
        degraded: rung("degraded", layer.degraded, thresholds.degraded)?,
        failing: rung("failing", layer.failing, thresholds.failing)?,
        lost_misses: count("lost_misses", layer.lost_misses, thresholds.lost_misses)?,
        enter_after: count("enter_after", layer.enter_after, thresholds.enter_after)?,
        leave_after: count("leave_after", layer.leave_after, thresholds.leave_after)?,
        ..thresholds
    };
    let slow_down_to = share(
        &format!("{key}.slow_down_to"),
        layer.slow_down_to,
        reaction.slow_down_to,
    )?;
    let reaction = Reaction {
        on_degraded: layer.on_degraded.unwrap_or(reaction.on_degraded),
        on_failing: layer.on_failing.unwrap_or(reaction.on_failing),
        slow_down_to,
    };
    Ok((thresholds, reaction))
}

/// Refuses rungs in the wrong order: a worse rung would hide a better one.
pub(super) fn check(key: &str, thresholds: &Thresholds) -> Result<(), FleetError> {
    let Thresholds {
        degraded,
        failing,
        lost_misses,
        ..
    } = thresholds;
    if failing.success_below > degraded.success_below {
        let allowed = format!("at most that of degraded, {}", degraded.success_below);
        return Err(refuse(
            format!("{key}.failing.success_below"),
            failing.success_below,
            allowed,
        ));
    }
    if failing.misses < degraded.misses {
        let allowed = format!("at least those of degraded, {}", degraded.misses);
        return Err(refuse(
            format!("{key}.failing.misses"),
            failing.misses,
            allowed,
        ));
    }
    if *lost_misses < failing.misses {
        let allowed = format!("at least the misses of failing, {}", failing.misses);
        return Err(refuse(format!("{key}.lost_misses"), lost_misses, allowed));
    }
    Ok(())
}

fn answer_within(key: &str, ms: Option<u64>, default: Duration) -> Result<Duration, FleetError> {
    match ms {
        None => Ok(default),
        Some(ms) if (1..=1000).contains(&ms) => Ok(Duration::from_millis(ms)),
        Some(ms) => Err(refuse(
            format!("{key}.answer_within_ms"),
            ms,
            "1 to 1000 ms",
        )),
    }
}

fn rung(key: &str, layer: Option<Rung>, below: Limits) -> Result<Limits, FleetError> {
    let Some(layer) = layer else { return Ok(below) };
    let success_below = share(
        &format!("{key}.success_below"),
        layer.success_below,
        below.success_below,
    )?;
    let misses = count(&format!("{key}.misses"), layer.misses, below.misses)?;
    Ok(Limits {
        success_below,
        misses,
    })
}

fn count(key: &str, value: Option<u64>, default: u32) -> Result<u32, FleetError> {
    let Some(value) = value else {
        return Ok(default);
    };
    let fits = u32::try_from(value)
        .ok()
        .filter(|_| COUNTS.contains(&value));
    let allowed = || format!("{} to {}", COUNTS.start(), COUNTS.end());
    fits.ok_or_else(|| refuse(key, value, allowed()))
}

fn share(key: &str, value: Option<f64>, default: f64) -> Result<f64, FleetError> {
    match value {
        None => Ok(default),
        Some(value) if (0.0..=1.0).contains(&value) => Ok(value),
        Some(value) => Err(refuse(key, value, "0 to 1")),
    }
}
