//! Sets of CPU numbers in the kernel's list notation (`0-3,5`). It never asks the machine anything.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Highest CPU number accepted; the size of the kernel's `cpu_set_t`.
pub const MAX_CPU: usize = 1023;

/// CPU numbers, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(BTreeSet<usize>);

/// A text that is no CPU list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cpu list: {text:?} is not a list such as \"2\", \"0-3,5\" with numbers 0 to {MAX_CPU}")]
pub struct CpuListError {
    text: String,
}

impl CpuList {
    /// Whether no CPU is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many CPUs are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The CPUs in this set and not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// Reads a hexadecimal mask as `/proc/irq/default_smp_affinity` prints it (`ff`, `00000000,0000000f`).
    ///
    /// # Errors
    /// When a digit is not hexadecimal.
    pub fn from_mask(text: &str) -> Result<Self, CpuListError> {
        let digits: Vec<char> = text.trim().chars().filter(|c| *c != ',').collect();
        let mut cpus = BTreeSet::new();
        for (index, digit) in digits.iter().rev().enumerate() {
            let Some(value) = digit.to_digit(16) else {
                return Err(CpuListError {
                    text: text.to_owned(),
                });
            };
            cpus.extend(
                (0..4)
                    .filter(|bit| value >> bit & 1 == 1)
                    .map(|bit| index * 4 + bit),
            );
        }
        Ok(Self(cpus))
    }
}

impl FromIterator<usize> for CpuList {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let Some((first, last)) = range(part) else {
                return Err(CpuListError {
                    text: text.to_owned(),
                });
            };
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

fn range(part: &str) -> Option<(usize, usize)> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let first = first.trim().parse().ok()?;
    let last = last.trim().parse().ok()?;
    (first <= last && last <= MAX_CPU).then_some((first, last))
}

impl TryFrom<String> for CpuList {
    type Error = CpuListError;

    fn try_from(text: String) -> Result<Self, CpuListError> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        list.to_string()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut rest = self.0.iter().copied().peekable();
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if_eq(&(last + 1)) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kernel_lists_and_masks_are_read() {
        let list: CpuList = "0-3,5\n".parse().unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 5]);
        assert_eq!(CpuList::from_mask("00000000,0000002f\n").unwrap(), list);
        assert_eq!("".parse::<CpuList>().unwrap(), CpuList::default());
    }

    #[test]
    fn nonsense_is_refused_with_the_text() {
        for text in ["3-1", "a", "1-", "0-1024", "-1", "1;2"] {
            let error = text.parse::<CpuList>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        assert!(CpuList::from_mask("xyz").is_err());
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(cpus in proptest::collection::btree_set(0usize..=MAX_CPU, 0..40)) {
            let list = CpuList(cpus);
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }
    }
}
