//! Findings and the fixed part of each check: why it matters, where that is known from, the remedy.
//!
//! Plain data.

use serde::{Deserialize, Serialize};

use super::machine::Machine;
use super::profile::Profile;

/// What a check says, from harmless to harmful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Pass,
    /// Has no meaning on this machine or for this profile.
    NotApplicable,
    /// Could not be read; the reading says why.
    CannotTell,
    /// Costs latency or will surprise.
    Warn,
    /// Makes the profile's job impossible or unsafe.
    Fail,
}

impl Verdict {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::NotApplicable => "not applicable",
            Self::CannotTell => "cannot tell",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    /// Process exit code for the worst verdict of a run: 0, 1 for a warning, 2 for a failure.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass | Self::NotApplicable | Self::CannotTell => 0,
            Self::Warn => 1,
            Self::Fail => 2,
        }
    }
}

/// What to do, by distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// On Debian.
    pub debian: &'static str,
    /// On Ubuntu.
    pub ubuntu: &'static str,
    /// On Raspberry Pi OS.
    pub raspberry_pi_os: &'static str,
    /// Whether it takes effect only after a reboot.
    pub reboot: bool,
    /// What it may cost or break.
    pub risk: &'static str,
}

impl Remedy {
    /// The same everywhere, without a reboot.
    #[must_use]
    pub const fn same(text: &'static str, risk: &'static str) -> Self {
        Self::each(text, text, text, false, risk)
    }

    /// One text a distribution.
    #[must_use]
    pub const fn each(
        debian: &'static str,
        ubuntu: &'static str,
        raspberry_pi_os: &'static str,
        reboot: bool,
        risk: &'static str,
    ) -> Self {
        Self {
            debian,
            ubuntu,
            raspberry_pi_os,
            reboot,
            risk,
        }
    }

    /// No action: the finding is information.
    pub const NONE: Self = Self::same("nothing to do", "none");
}

/// A remedy by boot parameter, spelled for each distribution.
macro_rules! boot_parameter {
    ($parameter:literal, $risk:literal) => {
        $crate::doctor::finding::Remedy::each(
            concat!(
                "add ",
                $parameter,
                " to GRUB_CMDLINE_LINUX in /etc/default/grub and run update-grub"
            ),
            concat!(
                "add ",
                $parameter,
                " to GRUB_CMDLINE_LINUX in /etc/default/grub and run sudo update-grub"
            ),
            concat!(
                "append ",
                $parameter,
                " to the one line of /boot/firmware/cmdline.txt"
            ),
            true,
            $risk,
        )
    };
}

/// A remedy by kernel setting, lasting over reboots.
macro_rules! sysctl {
    ($setting:literal, $risk:literal) => {
        $crate::doctor::finding::Remedy::same(
            concat!(
                "echo '",
                $setting,
                "' | sudo tee -a /etc/sysctl.d/90-openlink.conf && sudo sysctl --system"
            ),
            $risk,
        )
    };
}

pub(crate) use {boot_parameter, sysctl};

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What was read, raw enough to be checked by hand.
    pub read: String,
}

impl Judgement {
    /// A verdict with its reading.
    pub fn new(verdict: Verdict, read: impl Into<String>) -> Self {
        Self {
            verdict,
            read: read.into(),
        }
    }

    /// As it should be.
    pub fn pass(read: impl Into<String>) -> Self {
        Self::new(Verdict::Pass, read)
    }

    /// Costs latency or will surprise.
    pub fn warn(read: impl Into<String>) -> Self {
        Self::new(Verdict::Warn, read)
    }

    /// Makes the job impossible.
    pub fn fail(read: impl Into<String>) -> Self {
        Self::new(Verdict::Fail, read)
    }

    /// Could not be read, and why.
    pub fn cannot_tell(why: impl Into<String>) -> Self {
        Self::new(Verdict::CannotTell, why)
    }

    /// Has no meaning here, and why.
    pub fn not_applicable(why: impl Into<String>) -> Self {
        Self::new(Verdict::NotApplicable, why)
    }

    /// `bad` with the verdict given when `condition` holds, else a pass.
    pub fn when(condition: bool, bad: Verdict, read: impl Into<String>) -> Self {
        Self::new(if condition { bad } else { Verdict::Pass }, read)
    }
}

/// One check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// `group.name`.
    pub id: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// Where that is known from.
    pub source: &'static str,
    /// What to do when it does not pass.
    pub remedy: Remedy,
    /// Reads and judges.
    pub judge: fn(&Machine, Profile) -> Judgement,
}

/// One check's outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `group.name`.
    pub id: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// What was read.
    pub read: String,
    /// Why it matters.
    pub why: &'static str,
    /// Where that is known from.
    pub source: &'static str,
    /// What to do; only when it did not pass.
    pub remedy: Option<Remedy>,
}

impl Finding {
    /// Makes the check on a machine.
    #[must_use]
    pub fn of(check: &Check, machine: &Machine, profile: Profile) -> Self {
        let Judgement { verdict, read } = (check.judge)(machine, profile);
        Self {
            id: check.id,
            verdict,
            read,
            why: check.why,
            source: check.source,
            remedy: (verdict >= Verdict::Warn).then_some(check.remedy),
        }
    }

    /// The group, i.e. the id up to its dot.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.id.split('.').next().unwrap_or(self.id)
    }
}
