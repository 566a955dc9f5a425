//! Real-time policies, periodic loops, the fake control box and the host doctor.
//!
//! - [`thread`]: what a thread shall run under, what the kernel granted, and why not the rest
//! - [`periodic`]: the absolute periodic loop, its records and its report
//! - [`control_box`]: a 1 kHz control box that judges a responder, and the responder
//! - [`doctor`]: read-only checks of a machine, live or recorded
//!
//! Cores take the time as [`Mono`] and do no I/O; system calls without a safe wrapper live in one module.

pub mod control_box;
pub mod cpu_list;
pub mod doctor;
pub mod mono;
pub mod periodic;
mod sys;
pub mod thread;

pub use cpu_list::CpuList;
pub use mono::{Clock, Mono, SystemClock};
pub use thread::policy::Policy;
pub use thread::refusal::Refusal;
pub use thread::settings::{Applied, Effective, ThreadPolicy};
