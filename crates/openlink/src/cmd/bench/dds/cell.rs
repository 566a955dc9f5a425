//! Cells: what a plan's matrix unfolds to, and the random order they are measured in.

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;

use super::plan::{Kind, Plan, Qos, Route, Security};
use super::transport::Transport;

/// One combination of the matrix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) route: Route,
    pub(super) kind: Kind,
    /// Absent for IMU records, whose size is fixed.
    pub(super) bytes: Option<usize>,
    /// 0: ping-pong.
    pub(super) hz: f64,
    pub(super) qos: Qos,
    pub(super) transport: Transport,
    /// Of prober and relay.
    pub(super) rmw: [String; 2],
    pub(super) security: Security,
}

impl Cell {
    /// Names the cell in files; the same in every run of a plan.
    pub(super) fn id(&self) -> String {
        let size = self
            .bytes
            .map_or_else(|| "fixed".to_owned(), |bytes| bytes.to_string());
        let pace = if self.hz > 0.0 {
            format!("{}hz", self.hz)
        } else {
            "ping-pong".to_owned()
        };
        let security = if self.security == Security::On {
            "secure"
        } else {
            "open"
        };
        let [probe, relay] = &self.rmw;
        let words = [
            self.route.name(),
            self.kind.names().0,
            &size,
            &pace,
            &self.qos.label(),
            &self.transport.label(),
            probe,
            relay,
            security,
        ];
        words.join("_").replace([' ', '/'], "-")
    }
}

/// All cells of a plan, in the order of its lists.
pub(super) fn all(plan: &Plan) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &security in &plan.security {
        for rmw in &plan.rmw {
            for &transport in &plan.transports {
                for qos in &plan.qos {
                    for &hz in &plan.rates_hz {
                        for &kind in &plan.payloads {
                            for &route in &plan.paths {
                                cells.extend(sizes(plan, kind).into_iter().map(|bytes| Cell {
                                    route,
                                    kind,
                                    bytes,
                                    hz,
                                    qos: qos.clone(),
                                    transport,
                                    rmw: rmw.clone(),
                                    security,
                                }));
                            }
                        }
                    }
                }
            }
        }
    }
    cells
}

fn sizes(plan: &Plan, kind: Kind) -> Vec<Option<usize>> {
    if kind == Kind::Imu {
        return vec![None];
    }
    let mut sizes = Vec::new();
    for bytes in plan.sizes.iter().map(|bytes| Some(*bytes)) {
        if !sizes.contains(&bytes) {
            sizes.push(bytes);
        }
    }
    sizes
}

/// Every cell once for each restart: the restarts one after another, each in a random order of its own, so that a
/// drift of the machine does not fall on one axis.
pub(super) fn schedule(cells: &[Cell], restarts: usize, seed: u64) -> Vec<(usize, Cell)> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut schedule = Vec::new();
    for restart in 0..restarts {
        let mut round: Vec<(usize, Cell)> =
            cells.iter().map(|cell| (restart, cell.clone())).collect();
        round.shuffle(&mut random);
        schedule.extend(round);
    }
    schedule
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn plan() -> Plan {
        let text = "name: x\ncount: 1\npaths: [same-domain, cross-domain]\nsizes: [0, 64, 64]\n\
                    payloads: [binary, imu]\nrates_hz: [0, 100]\nrestarts: 3\n";
        Plan::parse("x", text).unwrap()
    }

    #[test]
    fn the_matrix_is_complete_without_doubles_and_each_cell_has_its_own_name() {
        let cells = all(&plan());
        assert_eq!(
            cells.len(),
            2 * 2 * (2 + 1),
            "paths, rates, two sizes and one record"
        );
        let ids: BTreeSet<String> = cells.iter().map(Cell::id).collect();
        assert_eq!(ids.len(), cells.len());
        assert!(ids.iter().all(|id| !id.contains(['/', ' '])));
    }

    #[test]
    fn the_order_is_random_complete_and_the_same_for_the_same_seed() {
        let cells = all(&plan());
        let order = |seed| -> Vec<String> {
            schedule(&cells, 3, seed)
                .iter()
                .map(|(restart, cell)| format!("{restart} {}", cell.id()))
                .collect()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let unique: BTreeSet<String> = order(1).into_iter().collect();
        assert_eq!(unique.len(), 3 * cells.len());
        assert!(
            order(1)[..cells.len()]
                .iter()
                .all(|entry| entry.starts_with("0 "))
        );
    }
}
