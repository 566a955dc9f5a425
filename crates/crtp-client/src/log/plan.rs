//! Distributes a log's variables over blocks. Pure: a table of contents in, blocks or an error out.

use crtp::Kind;
use crtp::log::{Type, Variable};

use super::{LogConfig, LogError, MAX_BLOCK};
use crate::table::Table;

/// A variable in a block, and where its value goes in the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) variable: Variable,
    pub(super) slot: usize,
}

impl Placed {
    pub(super) const fn kind(&self) -> Kind {
        self.variable.send_as.kind()
    }
}

/// A log made ready for one drone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) blocks: Vec<Vec<Placed>>,
    /// Type of each value of a sample; `None` for variables the drone does not have.
    pub(super) kinds: Vec<Option<Kind>>,
    pub(super) missing: Vec<String>,
}

/// Plans a log. Variables keep their order; a new block begins where the next variable has no room.
pub(super) fn plan(config: &LogConfig, table: &Table, split: bool) -> Result<Plan, LogError> {
    let mut plan = Plan::default();
    let mut placed = Vec::new();
    for (slot, wanted) in config.variables.iter().enumerate() {
        let Some((id, entry)) = table.find(&wanted.name) else {
            plan.missing.push(wanted.name.clone());
            plan.kinds.push(None);
            continue;
        };
        let stored_as = Type::from_number(entry.kind);
        let type_error = |kind| LogError::Type {
            name: config.name.clone(),
            variable: wanted.name.clone(),
            kind,
        };
        let send_as = match wanted.send_as {
            Some(kind) => Type::from_kind(kind).ok_or_else(|| type_error(kind))?,
            None => stored_as.ok_or_else(|| type_error(Kind::F64))?,
        };
        let stored_as = stored_as.unwrap_or(send_as);
        plan.kinds.push(Some(send_as.kind()));
        placed.push(Placed {
            variable: Variable {
                send_as,
                stored_as,
                id,
            },
            slot,
        });
    }
    plan.blocks = distribute(placed);
    check(config, split, plan)
}

fn distribute(placed: Vec<Placed>) -> Vec<Vec<Placed>> {
    let mut blocks: Vec<Vec<Placed>> = Vec::new();
    let mut room = 0;
    for variable in placed {
        let size = variable.kind().size();
        if size > room {
            blocks.push(Vec::new());
            room = MAX_BLOCK;
        }
        if let Some(block) = blocks.last_mut() {
            block.push(variable);
            room -= size;
        }
    }
    blocks
}

fn check(config: &LogConfig, split: bool, plan: Plan) -> Result<Plan, LogError> {
    let name = || config.name.clone();
    if plan.blocks.is_empty() {
        let missing = plan.missing;
        return Err(LogError::NoVariables {
            name: name(),
            missing,
        });
    }
    if plan.blocks.len() > 1 && !split {
        return Err(LogError::TooBig {
            name: name(),
            bytes: plan.kinds.iter().flatten().map(|kind| kind.size()).sum(),
            limit: MAX_BLOCK,
        });
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::table::Entry;

    /// `f.0` to `f.29` are floats, `b.0` to `b.9` bytes.
    fn table() -> Table {
        let entry = |name: String, kind| Entry { name, kind };
        let floats = (0..30).map(|i| entry(format!("f.{i}"), 7));
        let bytes = (0..10).map(|i| entry(format!("b.{i}"), 1));
        Table::new(floats.chain(bytes).collect(), Default::default())
    }

    fn log(variables: &[&str]) -> LogConfig {
        let names = variables.iter().copied();
        LogConfig::new("pose", Duration::from_millis(10), names)
    }

    fn sizes(plan: &Plan) -> Vec<usize> {
        let size = |block: &Vec<Placed>| block.iter().map(|p| p.kind().size()).sum();
        plan.blocks.iter().map(size).collect()
    }

    #[test]
    fn seven_floats_in_one_block_are_split_or_refused_by_name() {
        let seven = ["f.0", "f.1", "f.2", "f.3", "f.4", "f.5", "f.6"];
        let split = plan(&log(&seven), &table(), true).unwrap();
        assert_eq!(sizes(&split), [24, 4]);
        let error = plan(&log(&seven), &table(), false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "log pose: its variables have 28 bytes, a block holds at most 26"
        );
    }

    #[test]
    fn twenty_six_bytes_fit_and_twenty_seven_do_not() {
        let mut names = vec!["f.0", "f.1", "f.2", "f.3", "f.4", "f.5", "b.0", "b.1"];
        assert_eq!(sizes(&plan(&log(&names), &table(), false).unwrap()), [26]);
        names.push("b.2");
        assert!(matches!(
            plan(&log(&names), &table(), false),
            Err(LogError::TooBig { bytes: 27, .. })
        ));
    }

    #[test]
    fn missing_variables_keep_their_place_and_are_named() {
        let plan = plan(&log(&["f.1", "no.such", "b.3"]), &table(), false).unwrap();
        assert_eq!(plan.missing, ["no.such"]);
        assert_eq!(plan.kinds, [Some(Kind::F32), None, Some(Kind::U8)]);
        let slots: Vec<usize> = plan.blocks[0].iter().map(|p| p.slot).collect();
        assert_eq!(slots, [0, 2]);
    }

    #[test]
    fn a_float_may_be_sent_as_half_but_not_as_double() {
        let mut config = log(&["f.0"]);
        config.variables[0].send_as = Some(Kind::F16);
        assert_eq!(sizes(&plan(&config, &table(), false).unwrap()), [2]);
        config.variables[0].send_as = Some(Kind::F64);
        assert!(matches!(
            plan(&config, &table(), false),
            Err(LogError::Type { .. })
        ));
    }
}
