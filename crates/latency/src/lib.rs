//! Probes, histograms, results files, charts and the report.
//!
//! The prober, the histograms and the analysis are pure: time comes in as an argument and nothing is sent or
//! read here. Reading and writing files is confined to [`results`] and to the files' own modules.

pub mod analysis;
pub mod causes;
pub mod compare;
pub mod histogram;
pub mod knee;
pub mod pattern;
pub mod probe;
pub mod recommend;
pub mod record;
pub mod report;
pub mod results;
pub mod table;
pub mod trace;
pub mod wire;

pub use causes::{Causes, Snapshot, Watched};
pub use tap::time;

pub use histogram::{Histogram, Summary};
pub use probe::{Echo, Measurement, Mode, Phase, Plan, PlanError, Probe, Prober, Verdict};
pub use record::{Direction, Hop, Reason, Recorder, Stage, Tap, Verdict as HopVerdict};
pub use results::{Host, Identity, Payload, Results, ResultsError, Row, Stamps};
pub use time::{Anchor, MonoNs};
