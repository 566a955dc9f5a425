//! Background load by stress-ng: started, recorded and reaped by us, always bounded by its own time-out as well.
//!
//! Dropping a running load ends its whole process group.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

const SETTLE: Duration = Duration::from_millis(300);
const GRACE: Duration = Duration::from_secs(3);
const MARGIN: Duration = Duration::from_secs(15);

/// What keeps the machine busy while the loop runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadProfile {
    /// Nothing of ours.
    #[default]
    None,
    /// Arithmetic on every core.
    Cpu,
    /// Cache and memory bandwidth.
    Memory,
    /// Context switches, timers, forks, sockets.
    Kernel,
    /// All of it, and disk.
    All,
}

/// A load that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// stress-ng is not installed.
    #[error(
        "load {profile:?} needs stress-ng, which is not installed (apt install stress-ng); choose load none"
    )]
    Missing {
        /// The profile asked for.
        profile: LoadProfile,
    },
    /// It ended at once.
    #[error("stress-ng {argv} ended at once: {said}")]
    Ended {
        /// Its arguments.
        argv: String,
        /// What it printed.
        said: String,
    },
    /// It could not be started or watched.
    #[error("stress-ng cannot be run: {0}")]
    Io(#[from] io::Error),
}

/// What was run, for the result file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// First line of `stress-ng --version`.
    pub version: String,
    /// Full arguments.
    pub argv: Vec<String>,
}

impl LoadProfile {
    /// All profiles.
    pub const ALL: [Self; 5] = [Self::None, Self::Cpu, Self::Memory, Self::Kernel, Self::All];

    /// The name used on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Kernel => "kernel",
            Self::All => "all",
        }
    }

    /// The stressors for a machine with `cpus` cores; empty for no load.
    #[must_use]
    pub fn stressors(self, cpus: usize) -> Vec<String> {
        let cpus = cpus.max(1).to_string();
        let half = cpus.parse::<usize>().unwrap_or(1).div_ceil(2).to_string();
        let words: &[&str] = match self {
            Self::None => &[],
            Self::Cpu => &["--cpu", &cpus],
            Self::Memory => &[
                "--stream",
                &half,
                "--cache",
                "1",
                "--vm",
                "1",
                "--vm-bytes",
                "128M",
            ],
            Self::Kernel => &[
                "--switch", &cpus, "--timer", "1", "--fork", "1", "--sock", "1",
            ],
            Self::All => &[
                "--cpu",
                &cpus,
                "--vm",
                "1",
                "--vm-bytes",
                "128M",
                "--switch",
                &cpus,
                "--cache",
                "1",
                "--sock",
                "1",
                "--timer",
                "1",
                "--fork",
                "1",
                "--hdd",
                "1",
                "--hdd-bytes",
                "64M",
            ],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

impl FromStr for LoadProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|profile| profile.name() == text);
        found.ok_or_else(|| format!("load: {text:?} is none of none, cpu, memory, kernel, all"))
    }
}

/// A running load.
#[derive(Debug)]
pub struct Load {
    child: Option<Child>,
    record: Option<LoadRecord>,
}

impl Load {
    /// Starts the profile for a run of `duration` and waits until it is up.
    ///
    /// # Errors
    /// When stress-ng is missing, cannot be started, or ends at once.
    pub fn start(
        profile: LoadProfile,
        cpus: usize,
        duration: Duration,
        seed: u64,
    ) -> Result<Self, LoadError> {
        if profile == LoadProfile::None {
            return Ok(Self {
                child: None,
                record: None,
            });
        }
        let version = version().map_err(|error| missing(profile, error))?;
        let bound = (duration + MARGIN).as_secs().to_string();
        let mut argv = profile.stressors(cpus);
        argv.extend(["--timeout", &bound, "--seed", &seed.to_string()].map(str::to_owned));
        argv.extend([
            "--temp-path".to_owned(),
            std::env::temp_dir().display().to_string(),
        ]);
        let mut child = Command::new("stress-ng")
            .args(&argv)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        ended_at_once(&mut child, &argv)?;
        Ok(Self {
            child: Some(child),
            record: Some(LoadRecord { version, argv }),
        })
    }

    /// What runs; none for no load.
    #[must_use]
    pub fn record(&self) -> Option<&LoadRecord> {
        self.record.as_ref()
    }

    /// Whether it still runs; a load that died makes a run meaningless.
    pub fn is_alive(&mut self) -> bool {
        self.child
            .as_mut()
            .is_none_or(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Ends and reaps it: politely, then after three seconds by force.
    ///
    /// # Errors
    /// When the processes can be neither signalled nor waited for.
    pub fn finish(mut self) -> io::Result<()> {
        self.child.take().map_or(Ok(()), reap)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Ending by drop is the error path, which already carries its own error.
        let _unreported = self.child.take().map(reap);
    }
}

fn missing(profile: LoadProfile, error: io::Error) -> LoadError {
    match error.kind() {
        io::ErrorKind::NotFound => LoadError::Missing { profile },
        _ => LoadError::Io(error),
    }
}

fn version() -> io::Result<String> {
    let output = Command::new("stress-ng").arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn ended_at_once(child: &mut Child, argv: &[String]) -> Result<(), LoadError> {
    thread::sleep(SETTLE);
    if child.try_wait()?.is_none() {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr {
        stderr.read_to_string(&mut said)?;
    }
    Err(LoadError::Ended {
        argv: argv.join(" "),
        said: said.trim().to_owned(),
    })
}

fn reap(mut child: Child) -> io::Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    signal(&child, Signal::TERM)?;
    let give_up = Instant::now() + GRACE;
    while child.try_wait()?.is_none() && Instant::now() < give_up {
        thread::sleep(Duration::from_millis(20));
    }
    // Stressors that survived their parent are still in the group; an empty group is the good case.
    let _empty_group = signal(&child, Signal::KILL);
    child.wait().map(drop)
}

fn signal(child: &Child, signal: Signal) -> io::Result<()> {
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process_group(pid, signal)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_have_names_and_stressors() {
        for profile in LoadProfile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
            assert_eq!(
                profile.stressors(2).is_empty(),
                profile == LoadProfile::None
            );
        }
        assert!(
            "heavy"
                .parse::<LoadProfile>()
                .unwrap_err()
                .contains("kernel")
        );
        assert_eq!(LoadProfile::Cpu.stressors(4), ["--cpu", "4"]);
    }

    #[test]
    fn no_load_starts_nothing() {
        let mut load = Load::start(LoadProfile::None, 2, Duration::from_secs(1), 1).unwrap();
        assert!(load.is_alive() && load.record().is_none());
        load.finish().unwrap();
    }

    #[test]
    fn a_stuck_child_group_is_ended_by_force() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' TERM; sleep 600 & sleep 600"])
            .process_group(0);
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let group = Pid::from_raw(child.id().cast_signed()).unwrap();
        drop(Load {
            child: Some(child),
            record: None,
        });
        let gone = Instant::now() + Duration::from_secs(20);
        while kill_process_group(group, Signal::CONT).is_ok() {
            assert!(
                Instant::now() < gone,
                "children of the load are still there"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}
