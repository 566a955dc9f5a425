//! What the bridge's parameters say.

use std::path::PathBuf;
use std::time::Duration;

use bridge_core::units::Compat;
use crtp_client::{FileCache, MemoryCache, TableCache};
use realtime::doctor::Profile;

use super::ears::Ears;
use super::health;
use super::preflight::{self, Heed};
use super::threads;
use super::topics::Profiles;
use crate::ros::args::{ArgsError, NodeArgs};
use crate::ros::topics::Topics;
use crate::ros::{domain, qos};

/// What a robot looks like where nobody says it: a disc of the size of a Crazyflie 2.x.
const DESCRIPTION: &str = concat!(
    r#"<?xml version="1.0"?><robot name="$NAME"><link name="$NAME"><visual><geometry>"#,
    r#"<cylinder radius="0.06" length="0.03"/></geometry></visual></link></robot>"#
);

/// What the bridge's parameters say.
pub(super) struct Settings {
    pub(super) domain: usize,
    pub(super) robots_file: String,
    toc_cache: String,
    /// Folder for the packet logs, one for each robot.
    pub(super) record: Option<PathBuf>,
    pub(super) profiles: Profiles,
    pub(super) compat: Compat,
    pub(super) query_params: bool,
    /// A URDF with `$NAME` for the robot's name.
    pub(super) description: String,
    pub(super) health: health::Settings,
    /// What becomes of a blocker before arming.
    pub(super) preflight: Heed,
    /// What the doctor examines the machine for.
    pub(super) profile: Profile,
    pub(super) threads: threads::Settings,
}

impl Settings {
    /// Reads and checks every parameter.
    ///
    /// # Errors
    /// [`ArgsError`] naming parameter, value and what is allowed.
    pub(super) fn read(args: &NodeArgs) -> Result<Self, ArgsError> {
        let settings = Self {
            domain: domain::of(args, "domain_id")?,
            robots_file: args.text("robots_file", "")?,
            toc_cache: args.text("toc_cache", "")?,
            record: record(args)?,
            profiles: Profiles {
                setpoints: qos::profile(args, "setpoints", "listener")?,
                telemetry: qos::profile(args, "telemetry", "default")?,
                raw: qos::profile(args, "raw", "default")?,
                topics: Topics::read(args)?,
                ears: Ears::default(),
            },
            compat: compat(args)?,
            query_params: args.bool("firmware_params.query_all_values_on_connect", false)?,
            description: args.text("robot_description", DESCRIPTION)?,
            health: warnings(args)?,
            preflight: Heed::of(&args.word("preflight", "warn", &preflight::WORDS)?),
            profile: profile(args)?,
            threads: threads::Settings::read(args)?,
        };
        args.refuse_unknown()?;
        if settings.robots_file.is_empty() {
            let allowed = "the path of a fleet file";
            return Err(ArgsError::value("robots_file", "nothing", allowed));
        }
        Ok(settings)
    }

    /// Where drones' tables are kept between connections.
    pub(super) fn cache(&self) -> Box<dyn Fn() -> Box<dyn TableCache> + Send + Sync> {
        let folder = self.toc_cache.clone();
        Box::new(move || match folder.as_str() {
            "" => Box::new(MemoryCache::default()),
            folder => Box::new(FileCache::new(folder)),
        })
    }
}

fn compat(args: &NodeArgs) -> Result<Compat, ArgsError> {
    let word = args.word("compat", "none", &["none", "crazyswarm2"])?;
    Ok(match word.as_str() {
        "crazyswarm2" => Compat::Crazyswarm2,
        _ => Compat::None,
    })
}

fn profile(args: &NodeArgs) -> Result<Profile, ArgsError> {
    let names = Profile::ALL.map(Profile::name);
    let word = args.word("preflight_profile", Profile::GroundStation.name(), &names)?;
    let found = Profile::ALL.into_iter().find(|one| one.name() == word);
    Ok(found.unwrap_or_default())
}

fn record(args: &NodeArgs) -> Result<Option<PathBuf>, ArgsError> {
    let folder = args.text("record", "")?;
    Ok((!folder.is_empty()).then(|| folder.into()))
}

fn warnings(args: &NodeArgs) -> Result<health::Settings, ArgsError> {
    let hz = args.float("warnings.frequency", 1.0, 0.1..=20.0)?;
    let range = args.ints(
        "warnings.motion_capture.warning_if_rate_outside",
        &[80, 120],
        0..=10_000,
    )?;
    let &[low, high] = range.as_slice() else {
        let (key, allowed) = (
            "warnings.motion_capture.warning_if_rate_outside",
            "the lowest and the highest rate, Hz",
        );
        return Err(ArgsError::value(key, format!("{range:?}"), allowed));
    };
    Ok(health::Settings {
        period: Duration::from_secs_f64(1.0 / hz),
        statistics: args.bool("warnings.communication.publish_stats", false)?,
        poses_hz: [low as f64, high as f64],
    })
}
