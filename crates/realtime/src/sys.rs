//! The system calls that no safe crate wraps: scheduling attributes, per-thread resource use, the allocator's
//! trim and mmap switches. It owns every `unsafe` block of the crate and never decides anything.

#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};

/// `struct sched_attr` of the kernel, version with utilisation clamps (56 bytes; `include/uapi/linux/sched/types.h`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedAttr {
    pub(crate) size: u32,
    pub(crate) policy: u32,
    pub(crate) flags: u64,
    pub(crate) nice: i32,
    pub(crate) priority: u32,
    pub(crate) runtime_ns: u64,
    pub(crate) deadline_ns: u64,
    pub(crate) period_ns: u64,
    pub(crate) util_min: u32,
    pub(crate) util_max: u32,
}

const _: () = assert!(size_of::<SchedAttr>() == 56);

pub(crate) const SCHED_OTHER: u32 = libc::SCHED_OTHER as u32;
pub(crate) const SCHED_FIFO: u32 = libc::SCHED_FIFO as u32;
pub(crate) const SCHED_RR: u32 = libc::SCHED_RR as u32;
pub(crate) const SCHED_DEADLINE: u32 = 6;
pub(crate) const FLAG_RESET_ON_FORK: u64 = 1;

/// Resource use of one thread, or of all children that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
}

/// Gives the calling thread `attr`.
pub(crate) fn sched_setattr(attr: &SchedAttr) -> io::Result<()> {
    let sized = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        ..*attr
    };
    // SAFETY: the kernel reads `size` bytes from a live, fully initialised `repr(C)` struct; pid 0 is the caller.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const sized, 0) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// What the kernel says the calling thread runs under.
pub(crate) fn sched_getattr() -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>() as u32;
    // SAFETY: the kernel writes at most `size` bytes into a live `repr(C)` struct of that size.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(attr)
}

/// Faults and context switches of the calling thread so far.
pub(crate) fn thread_usage() -> Usage {
    usage(libc::RUSAGE_THREAD)
}

/// CPU time and faults of all terminated children that were waited for.
pub(crate) fn children_usage() -> Usage {
    usage(libc::RUSAGE_CHILDREN)
}

fn usage(who: libc::c_int) -> Usage {
    // SAFETY: all-zero bytes are a valid `rusage`, which has only integer fields.
    let mut raw: libc::rusage = unsafe { zeroed() };
    // SAFETY: `raw` is live and of the type the call fills in; the `who` values used here cannot fail.
    unsafe { libc::getrusage(who, &raw mut raw) };
    Usage {
        cpu_ns: timeval_ns(raw.ru_utime) + timeval_ns(raw.ru_stime),
        minor_faults: raw.ru_minflt as u64,
        major_faults: raw.ru_majflt as u64,
        voluntary_switches: raw.ru_nvcsw as u64,
        involuntary_switches: raw.ru_nivcsw as u64,
    }
}

fn timeval_ns(value: libc::timeval) -> u64 {
    value.tv_sec as u64 * 1_000_000_000 + value.tv_usec as u64 * 1_000
}

/// Keeps freed heap memory in the process, so that a locked page stays locked. `false` where the C library
/// offers no such switch.
pub(crate) fn keep_freed_heap() -> bool {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: `mallopt` takes two integers and is documented as callable at any time.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, -1) == 1
                && libc::mallopt(libc::M_MMAP_MAX, 0) == 1
        }
    }
    #[cfg(not(target_env = "gnu"))]
    {
        false
    }
}

/// Moves the calling thread, and the processes it starts from now on, into a new empty network namespace.
pub(crate) fn new_network_namespace() -> io::Result<()> {
    // SAFETY: only the network namespace is unshared; file descriptors and memory stay shared with other threads.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }?;
    Ok(())
}
