//! How the forwarding thread runs: what the command line asks for, applied and read back.

use anyhow::bail;
use realtime::thread::process::{DEFAULT_PREFAULT, lock_memory};
use realtime::{Applied, CpuList, Effective, Policy, ThreadPolicy};

/// Command line of the forwarding thread.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Thread")]
pub(crate) struct Args {
    /// Scheduling policy of the forwarding thread, e.g. fifo:80, rr:10, other:0.5ms; without it: as started.
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
    /// CPUs that the forwarding thread is confined to, e.g. 2,3.
    #[arg(long, value_name = "CPUS")]
    affinity: Option<CpuList>,
    /// Timer slack of the forwarding thread, µs; without it 1 ns. Real-time policies have none.
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    timer_slack_us: Option<u64>,
    /// Lock present and future memory of the process.
    #[arg(long)]
    lock_memory: bool,
    /// End with an error when the kernel refuses any of these; else a refusal is a warning.
    #[arg(long)]
    strict: bool,
}

impl Args {
    /// Applies everything to the calling thread and says what took effect, if anything was asked for.
    ///
    /// # Errors
    /// A refusal, with `--strict`; or the kernel does not tell what took effect.
    pub(crate) fn apply(&self) -> anyhow::Result<()> {
        let wish = ThreadPolicy {
            policy: self.policy,
            cpus: self.affinity.clone(),
            timer_slack_ns: self.timer_slack_us.map(|us| us * 1000),
            busy_poll_us: None,
        };
        if wish == ThreadPolicy::default() && !self.lock_memory {
            return Ok(());
        }
        let memory = self.lock_memory.then(|| lock_memory(DEFAULT_PREFAULT));
        let locked = memory.as_ref().is_some_and(|memory| memory.locked);
        let Applied {
            effective,
            refusals,
        } = wish.apply()?;
        tracing::info!("forwarding thread: {}", in_words(&effective, locked));
        let unlocked = memory.and_then(|memory| memory.refusal);
        for refusal in unlocked.into_iter().chain(refusals) {
            if self.strict {
                bail!("{refusal}");
            }
            tracing::warn!("{refusal}");
        }
        Ok(())
    }
}

fn in_words(effective: &Effective, locked: bool) -> String {
    let policy = effective.policy.map(|policy| policy.to_string());
    let policy = policy.unwrap_or_else(|| "an unknown policy".to_owned());
    let memory = if locked { "locked" } else { "not locked" };
    format!(
        "{policy} on CPUs {}, timer slack {} ns, memory {memory}",
        effective.cpus, effective.timer_slack_ns
    )
}
