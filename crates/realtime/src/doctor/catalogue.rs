//! All checks in order, and the examination of a machine with them.

use super::checks;
use super::finding::{Check, Finding};
use super::machine::Machine;
use super::profile::Profile;

/// Every check, group by group.
#[must_use]
pub fn all() -> Vec<&'static Check> {
    let groups: [&'static [Check]; 10] = [
        checks::kernel::CHECKS,
        checks::isolation::CHECKS,
        checks::speed::CHECKS,
        checks::irq::CHECKS,
        checks::scheduler::CHECKS,
        checks::memory::CHECKS,
        checks::network::CHECKS,
        checks::wifi::CHECKS,
        checks::uart::CHECKS,
        checks::time::CHECKS,
    ];
    groups.into_iter().flatten().collect()
}

/// Makes every check on a machine.
#[must_use]
pub fn examine(machine: &Machine, profile: Profile) -> Vec<Finding> {
    all()
        .into_iter()
        .map(|check| Finding::of(check, machine, profile))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_every_check_is_explained() {
        let ids: BTreeSet<_> = all().iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), all().len());
        for check in all() {
            assert!(
                check.id.contains('.') && !check.why.is_empty() && !check.source.is_empty(),
                "{}",
                check.id
            );
            assert!(
                !check.remedy.debian.is_empty() && !check.remedy.risk.is_empty(),
                "{}",
                check.id
            );
        }
    }

    #[test]
    fn unlimited_real_time_is_never_advised_without_its_risk() {
        for check in all() {
            let texts = [
                check.remedy.debian,
                check.remedy.ubuntu,
                check.remedy.raspberry_pi_os,
            ];
            if texts.iter().any(|text| {
                text.contains("sched_rt_runtime_us=-1") || text.contains("sched_rt_runtime_us = -1")
            }) {
                assert!(check.remedy.risk.contains("hangs the core"), "{}", check.id);
            }
            assert!(
                !texts.iter().any(|text| text.contains("mitigations=off")),
                "{}",
                check.id
            );
        }
    }

    /// An empty folder: nothing can be read, nothing panics, nothing fails for it.
    #[test]
    fn an_unreadable_machine_is_not_blamed() {
        let folder = tempfile::tempdir().unwrap();
        for profile in Profile::ALL {
            for finding in examine(&Machine::recorded(folder.path()), profile) {
                assert!(
                    finding.verdict <= crate::doctor::Verdict::Warn,
                    "{finding:?}"
                );
            }
        }
    }
}
