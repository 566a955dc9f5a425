//! Settings of the whole process for the length of a run: locked and prefaulted memory, the wake-up latency request.
//!
//! The latency request lasts exactly as long as its value: dropping it closes the file and ends the request.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::path::Path;

use rustix::mm::{MlockAllFlags, mlockall};
use serde::{Deserialize, Serialize};

use super::refusal::{Refusal, Request};
use super::settings::{errno_of, refused};
use crate::sys;

const STACK_BYTES: usize = 256 * 1024;
const PAGE: usize = 4096;
/// Heap touched in advance, bytes.
pub const DEFAULT_PREFAULT: usize = 8 * 1024 * 1024;

/// What became of locking the memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Whether all present and future pages are locked.
    pub locked: bool,
    /// Why not, when not.
    pub refusal: Option<Refusal>,
    /// Whether the C library keeps freed heap; without it a freed and reused block may fault again.
    pub heap_kept: bool,
    /// Heap bytes touched in advance.
    pub prefaulted: usize,
}

/// Locks present and future memory of the process and touches `prefault` bytes of heap and 256 KiB of the
/// calling thread's stack, so that the loop finds its pages in place.
#[must_use]
pub fn lock_memory(prefault: usize) -> Memory {
    let heap_kept = sys::keep_freed_heap();
    let outcome = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    let refusal = refused(&Request::LockMemory, outcome);
    touch_heap(prefault);
    prefault_stack();
    Memory {
        locked: refusal.is_none(),
        refusal,
        heap_kept,
        prefaulted: prefault,
    }
}

fn touch_heap(bytes: usize) {
    let mut block = vec![0u8; bytes];
    block.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    black_box(&block);
}

/// Touches 256 KiB of the calling thread's stack.
#[inline(never)]
pub fn prefault_stack() {
    let mut block = [0u8; STACK_BYTES];
    block.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    black_box(&block);
}

/// A request to the idle governor that no CPU wakes up slower than a given time; ends when dropped.
#[derive(Debug)]
pub struct WakeLatency {
    _held: File,
    us: i32,
}

impl WakeLatency {
    /// Asks for `us` microseconds (0 = no idle state deeper than polling).
    ///
    /// # Errors
    /// A refusal saying "unavailable" where the machine has no such file, and why otherwise.
    pub fn hold(us: i32) -> Result<Self, Refusal> {
        Self::hold_at(Path::new("/dev/cpu_dma_latency"), us)
    }

    fn hold_at(path: &Path, us: i32) -> Result<Self, Refusal> {
        let outcome = Self::request(path, us);
        outcome.map_err(|error| {
            let may = super::facts::Permissions::read();
            Refusal::diagnose(&Request::WakeLatency(us), errno_of(&error), &may)
        })
    }

    fn request(path: &Path, us: i32) -> std::io::Result<Self> {
        let mut held = OpenOptions::new().read(true).write(true).open(path)?;
        held.write_all(&us.to_ne_bytes())?;
        Ok(Self { _held: held, us })
    }

    /// The latency asked for, microseconds.
    #[must_use]
    pub fn us(&self) -> i32 {
        self.us
    }

    /// The target the kernel holds now, over all requesters; `None` where it cannot be read.
    #[must_use]
    pub fn in_force() -> Option<i32> {
        let mut bytes = [0u8; 4];
        File::open("/dev/cpu_dma_latency")
            .ok()?
            .read_exact(&mut bytes)
            .ok()?;
        Some(i32::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::refusal::Cause;
    use std::os::fd::AsRawFd as _;

    /// The request lasts only while the file is open: held for the run, released at its end.
    #[test]
    fn wake_latency_request_is_held_for_the_run_and_released_at_exit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cpu_dma_latency");
        std::fs::write(&path, i32::MAX.to_ne_bytes()).unwrap();
        let held = WakeLatency::hold_at(&path, 7).unwrap();
        let link = format!("/proc/self/fd/{}", held._held.as_raw_fd());
        assert_eq!(std::fs::read(&path).unwrap(), 7i32.to_ne_bytes());
        assert_eq!(std::fs::read_link(&link).unwrap(), path);
        drop(held);
        assert_ne!(std::fs::read_link(&link).ok(), Some(path));
    }

    #[test]
    fn wake_latency_is_unavailable_where_the_file_is_missing() {
        let refusal =
            WakeLatency::hold_at(Path::new("/nonexistent/cpu_dma_latency"), 0).unwrap_err();
        assert_eq!(refusal.cause, Cause::Unavailable);
    }

    #[test]
    fn second_touch_of_prefaulted_stack_costs_no_fault() {
        std::thread::spawn(|| {
            prefault_stack();
            let before = sys::thread_usage().minor_faults;
            prefault_stack();
            assert_eq!(sys::thread_usage().minor_faults, before);
        })
        .join()
        .unwrap();
    }
}
