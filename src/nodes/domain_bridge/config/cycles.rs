//! Which sets of routes cannot be: the same route twice, and routes that lead messages in a circle.

use std::collections::BTreeMap;

use super::values::Wrong;
use super::{RouteRule, ServiceRule};

/// Two rules that write the same topic from the same topic would double every message; rules that lead back to
/// where they began other than as a pair would circle for ever.
pub(super) fn refuse_repeats(routes: &[RouteRule]) -> Result<(), Wrong> {
    let mut seen = BTreeMap::new();
    for route in routes {
        let source = (route.from_domain, &route.from_topic);
        let target = (route.to_domain, &route.to_topic);
        if seen.insert((source, target), ()).is_some() {
            let why = format!(
                "the route from domain {} to domain {} to {} is there twice; allowed: once",
                route.from_domain, route.to_domain, route.to_topic
            );
            return Err((format!("topics.{}", route.from_topic), why));
        }
    }
    refuse_cycles(routes)
}

pub(in super::super) fn refuse_cycles(routes: &[RouteRule]) -> Result<(), Wrong> {
    let mut next: BTreeMap<(usize, &str), Vec<(usize, &str)>> = BTreeMap::new();
    for route in routes {
        let target = (route.to_domain, route.to_topic.as_str());
        next.entry((route.from_domain, route.from_topic.as_str()))
            .or_default()
            .push(target);
    }
    for &start in next.keys() {
        if let Some(path) = cycle_from(start, &next) {
            let places: Vec<_> = path
                .iter()
                .map(|(domain, topic)| format!("{topic} in {domain}"))
                .collect();
            let why = format!(
                "messages would circle: {}; allowed: at most a two-way pair",
                places.join(" > ")
            );
            return Err(("topics".into(), why));
        }
    }
    Ok(())
}

/// A way of three or more hops from `start` back to itself.
fn cycle_from<'a>(
    start: (usize, &'a str),
    next: &BTreeMap<(usize, &'a str), Vec<(usize, &'a str)>>,
) -> Option<Vec<(usize, &'a str)>> {
    let mut open = vec![vec![start]];
    while let Some(path) = open.pop() {
        let &last = path.last()?;
        for &place in next.get(&last).map_or(&[][..], Vec::as_slice) {
            let longer = || path.iter().copied().chain([place]).collect::<Vec<_>>();
            if place == start && path.len() > 2 {
                return Some(longer());
            }
            if !path.contains(&place) {
                open.push(longer());
            }
        }
    }
    None
}

/// A service that is offered twice in one place would have two servers, and one that leads back would call itself.
pub(super) fn refuse_service_repeats(services: &[ServiceRule]) -> Result<(), Wrong> {
    let mut offered = BTreeMap::new();
    for rule in services {
        let place = (rule.to_domain, rule.to_name.as_str());
        let real = (rule.from_domain, rule.from_name.as_str());
        if offered.insert(place, real).is_some() {
            let why = format!(
                "{} would be offered in domain {} twice; allowed: once",
                rule.to_name, rule.to_domain
            );
            return Err((format!("services.{}", rule.from_name), why));
        }
    }
    for (place, first) in &offered {
        let mut real = Some(first);
        for _ in 0..offered.len() {
            real = real.and_then(|real| offered.get(real));
        }
        if real.is_some() {
            let why = format!(
                "{} in domain {} would call itself; allowed: one direction",
                place.1, place.0
            );
            return Err(("services".into(), why));
        }
    }
    Ok(())
}
