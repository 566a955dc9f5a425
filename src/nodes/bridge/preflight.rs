//! The gate before arming: what the link's self-test and the doctor say against it, and whether that is heeded.

use std::sync::OnceLock;

use bridge_core::command::Request;
use bridge_core::health::{Report, preflight};
use realtime::doctor::{Finding, Machine, Profile, Verdict, examine};

/// What becomes of a blocker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heed {
    /// Arming and takeoff are refused.
    Require,
    /// One warning, then it is done all the same.
    Warn,
    /// Nobody looks.
    Off,
}

/// The words of [`Heed`].
pub(super) const WORDS: [&str; 3] = ["require", "warn", "off"];

impl Heed {
    /// The one of this word; `warn` for any that is none of [`WORDS`].
    pub(super) fn of(word: &str) -> Self {
        match word {
            "require" => Self::Require,
            "off" => Self::Off,
            _ => Self::Warn,
        }
    }
}

/// One gate for all robots.
#[derive(Debug)]
pub(super) struct Gate {
    heed: Heed,
    /// What the doctor found, once it has looked.
    machine: OnceLock<Vec<String>>,
}

impl Gate {
    pub(super) fn new(heed: Heed) -> Self {
        Self {
            heed,
            machine: OnceLock::new(),
        }
    }

    /// Examines this machine for a profile. Reads many files: not for the links' thread.
    pub(super) fn examine(&self, profile: Profile) {
        if self.heed == Heed::Off {
            return;
        }
        let findings = examine(&Machine::live(), profile);
        let failed = findings.iter().filter(|one| one.verdict == Verdict::Fail);
        // The first examination stands; a second finds it taken.
        drop(self.machine.set(failed.map(in_words).collect()));
    }

    /// Whether a request may go on. `Err`: why not, in words.
    pub(super) fn check(
        &self,
        robot: &str,
        request: &Request,
        flying: bool,
        link: impl FnOnce() -> Report,
    ) -> Result<(), String> {
        let starts = matches!(request, Request::Arm(true) | Request::Takeoff(_));
        if self.heed == Heed::Off || !starts || flying {
            return Ok(());
        }
        let mut blockers = preflight::blockers(&link());
        blockers.extend(self.machine.get().into_iter().flatten().cloned());
        let why = blockers.join("; ");
        match self.heed {
            _ if blockers.is_empty() => Ok(()),
            Heed::Require => Err(format!(
                "preflight: {why} (the parameter preflight:=warn overrides this)"
            )),
            Heed::Warn | Heed::Off => {
                tracing::warn!(robot, "preflight overridden: {why}");
                Ok(())
            }
        }
    }
}

fn in_words(finding: &Finding) -> String {
    format!("this machine fails {}: {}", finding.id, finding.read)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bridge_core::health::{LinkHealth, Thresholds};

    use super::*;

    /// A link that has answered so many echoes.
    fn link(echoes: u32) -> Report {
        let mut health = LinkHealth::new(Thresholds::default());
        let now = Instant::now();
        for _ in 0..echoes {
            health.handle_asked(now);
            health.handle_answer(now, Duration::ZERO);
        }
        health.report(now)
    }

    fn arm(gate: &Gate, echoes: u32) -> Result<(), String> {
        gate.check("cf1", &Request::Arm(true), false, || link(echoes))
    }

    #[test]
    fn a_gate_that_is_required_opens_after_the_self_test() {
        let gate = Gate::new(Heed::Require);
        let why = arm(&gate, 0).unwrap_err();
        assert!(why.contains("the link is lost: not connected yet"), "{why}");
        let why = arm(&gate, 99).unwrap_err();
        assert!(
            why.contains("99 of 100 echoes") && why.contains("preflight:=warn"),
            "{why}"
        );
        assert_eq!(arm(&gate, 100), Ok(()));
    }

    #[test]
    fn what_the_doctor_found_closes_the_gate() {
        let gate = Gate::new(Heed::Require);
        gate.machine
            .set(vec!["this machine fails x".into()])
            .unwrap();
        assert!(
            arm(&gate, 100)
                .unwrap_err()
                .contains("this machine fails x")
        );
    }

    #[test]
    fn only_what_starts_a_flight_is_held_up() {
        let gate = Gate::new(Heed::Require);
        for request in [Request::Arm(false), Request::Emergency] {
            assert_eq!(gate.check("cf1", &request, false, || link(0)), Ok(()));
        }
        assert_eq!(
            gate.check("cf1", &Request::Arm(true), true, || link(0)),
            Ok(())
        );
        assert_eq!(arm(&Gate::new(Heed::Warn), 0), Ok(()));
        assert_eq!(arm(&Gate::new(Heed::Off), 0), Ok(()));
    }
}
