//! What has been measured so far: one JSON line for each cell and restart, so that a run can be taken up again.
//!
//! The first line holds the plan; a journal of another plan is refused. A line that was cut off by a crash is
//! dropped, and its cell is measured again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use latency::Row;
use serde::{Deserialize, Serialize};

use super::plan::Plan;

/// How a cell ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// With figures.
    Measured(Box<Row>),
    /// What it needs is not on this machine.
    NotAvailable(String),
    /// Something went wrong; it is tried again when the run is taken up again.
    Failed(String),
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) cell: String,
    pub(super) restart: usize,
    pub(super) outcome: Outcome,
}

#[derive(Serialize, Deserialize)]
struct Head {
    plan: Plan,
}

/// An open journal.
pub(super) struct Journal {
    file: File,
    entries: Vec<Entry>,
}

impl Journal {
    /// Opens the journal of `plan` at `path`, or begins one; `fresh` throws away what is there.
    pub(super) fn open(path: &Path, plan: &Plan, fresh: bool) -> anyhow::Result<Self> {
        let name = path.display();
        let text = match std::fs::read_to_string(path) {
            Ok(text) if !fresh => text,
            Ok(_) => String::new(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| name.to_string()),
        };
        let mut lines = text.lines();
        if let Some(line) = lines.next() {
            let head: Head = serde_json::from_str(line)
                .with_context(|| format!("{name}: no journal of a bench"))?;
            if head.plan != *plan {
                bail!(
                    "{name} holds results of another plan: choose another --out, or throw them away with --fresh"
                );
            }
        }
        let entries: Vec<Entry> = lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let mut journal = Self {
            file: File::create(path).with_context(|| name.to_string())?,
            entries: Vec::new(),
        };
        journal.write(&Head { plan: plan.clone() })?;
        for entry in entries {
            journal.add(entry)?;
        }
        Ok(journal)
    }

    /// Adds a line; it is on disk when this returns.
    pub(super) fn add(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.write(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    fn write(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        Ok(self.file.sync_data()?)
    }

    /// Cells and restarts that need not be measured again.
    pub(super) fn done(&self) -> BTreeSet<(String, usize)> {
        let done = self
            .entries
            .iter()
            .filter(|entry| !matches!(entry.outcome, Outcome::Failed(_)));
        done.map(|entry| (entry.cell.clone(), entry.restart))
            .collect()
    }

    /// The latest outcome of each cell and restart.
    pub(super) fn latest(&self) -> impl Iterator<Item = &Entry> {
        let latest: BTreeMap<(&str, usize), &Entry> = self
            .entries
            .iter()
            .map(|entry| ((entry.cell.as_str(), entry.restart), entry))
            .collect();
        latest.into_values()
    }

    /// All rows.
    pub(super) fn rows(&self) -> Vec<Row> {
        let rows = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.outcome {
                Outcome::Measured(row) => Some(Row::clone(row)),
                Outcome::NotAvailable(_) | Outcome::Failed(_) => None,
            });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(count: u64) -> Plan {
        let text = format!("name: x\ncount: {count}\npaths: [same-domain]\nsizes: [64]\n");
        Plan::parse("x", &text).unwrap()
    }

    fn entry(restart: usize, outcome: Outcome) -> Entry {
        Entry {
            cell: "cell".to_owned(),
            restart,
            outcome,
        }
    }

    #[test]
    fn a_run_is_taken_up_where_it_was_left_and_a_cut_line_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path, &plan(1), false).unwrap();
        journal
            .add(entry(0, Outcome::NotAvailable("no library".into())))
            .unwrap();
        journal
            .add(entry(1, Outcome::Failed("no relay".into())))
            .unwrap();
        drop(journal);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"cell\": \"cel");
        std::fs::write(&path, text).unwrap();
        let journal = Journal::open(&path, &plan(1), false).unwrap();
        assert_eq!(
            journal.done(),
            BTreeSet::from([("cell".to_owned(), 0)]),
            "what failed is tried again"
        );
        assert_eq!(journal.latest().count(), 2);
        drop(journal);
        let again = std::fs::read_to_string(&path).unwrap();
        assert_eq!(again.lines().count(), 3, "the cut line is gone: {again}");
    }

    #[test]
    fn results_of_another_plan_are_kept_unless_told_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        drop(Journal::open(&path, &plan(1), false).unwrap());
        let Err(refused) = Journal::open(&path, &plan(2), false) else {
            panic!("another plan was taken");
        };
        assert!(refused.to_string().contains("--fresh"));
        assert!(Journal::open(&path, &plan(2), true).is_ok());
    }
}
