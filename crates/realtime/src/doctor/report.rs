//! The findings as text and as a document.

use std::fmt::Write as _;

use serde::Serialize;

use super::finding::{Finding, Verdict};
use super::profile::Profile;

/// Version of the document's layout.
pub const SCHEMA: u32 = 1;

/// The outcome of an examination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// Always `doctor`.
    pub kind: &'static str,
    /// What the machine shall be good for.
    pub profile: Profile,
    /// The worst verdict.
    pub worst: Verdict,
    /// Everything that was found.
    pub findings: Vec<Finding>,
}

impl Document {
    /// Puts the findings together.
    #[must_use]
    pub fn new(profile: Profile, findings: Vec<Finding>) -> Self {
        let worst = findings
            .iter()
            .map(|finding| finding.verdict)
            .max()
            .unwrap_or(Verdict::Pass);
        Self {
            schema: SCHEMA,
            kind: "doctor",
            profile,
            worst,
            findings,
        }
    }

    /// Findings that did not pass with their remedies; everything when `all`.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            match finding.verdict {
                Verdict::Fail | Verdict::Warn => explain(&mut text, finding),
                Verdict::Pass | Verdict::NotApplicable | Verdict::CannotTell if all => {
                    line(&mut text, finding)
                }
                Verdict::Pass | Verdict::NotApplicable | Verdict::CannotTell => {}
            }
        }
        let _infallible = write!(text, "{}", self.totals());
        text
    }

    fn totals(&self) -> String {
        let count = |verdict| {
            self.findings
                .iter()
                .filter(|finding| finding.verdict == verdict)
                .count()
        };
        format!(
            "profile {}: {} fail, {} warn, {} cannot tell, {} not applicable, {} pass",
            self.profile.name(),
            count(Verdict::Fail),
            count(Verdict::Warn),
            count(Verdict::CannotTell),
            count(Verdict::NotApplicable),
            count(Verdict::Pass),
        )
    }
}

fn line(text: &mut String, finding: &Finding) {
    let _infallible = writeln!(
        text,
        "{:<14} {}: {}",
        finding.verdict.word(),
        finding.id,
        finding.read
    );
}

fn explain(text: &mut String, finding: &Finding) {
    line(text, finding);
    let _infallible = writeln!(text, "    why:    {} ({})", finding.why, finding.source);
    let Some(remedy) = finding.remedy else {
        return;
    };
    if remedy.debian == remedy.raspberry_pi_os && remedy.debian == remedy.ubuntu {
        let _infallible = writeln!(text, "    remedy: {}", remedy.debian);
    } else {
        for (name, advice) in [
            ("Debian", remedy.debian),
            ("Ubuntu", remedy.ubuntu),
            ("Raspberry Pi OS", remedy.raspberry_pi_os),
        ] {
            let _infallible = writeln!(text, "    remedy: {name}: {advice}");
        }
    }
    let reboot = if remedy.reboot {
        "; needs a reboot"
    } else {
        ""
    };
    let _infallible = writeln!(text, "    risk:   {}{reboot}\n", remedy.risk);
}
