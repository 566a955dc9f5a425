//! The bridge: each robot of a fleet file as ROS topics and services, over whatever link its URI names.
//!
//! One node for all robots, one thread for all links. The brains are `bridge_core::Drone`; this module connects
//! them to ROS.

mod crew;
mod driver;
mod ears;
mod everyone;
mod health;
mod input;
mod messages;
mod params;
mod preflight;
mod robot;
mod settings;
mod threads;
mod topics;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, bail};
use bridge_core::Fleet;
use link::{Link, Reactor};
use rclrs::{Node, QoSProfile};

use crate::ros::args::NodeArgs;
use crate::ros::session::Session;
use crate::ros::stand_in::{self, Package};
use crate::ros::stop::Waiter;
use crew::{Crew, CrewServices, Members};
use driver::Driver;
use everyone::Everyone;
use health::Health;
use preflight::Gate;
use settings::Settings;
use topics::Common;

/// Packages whose types clients use, with the same fields as ours.
const STAND_INS: [Package; 3] = [
    Package {
        name: "crazyflie_interfaces",
        types: &[
            "msg/ConnectionStatisticsArray",
            "msg/FullState",
            "msg/Hover",
            "msg/LogDataGeneric",
            "msg/Position",
            "msg/Status",
            "msg/VelocityWorld",
            "srv/AddLogging",
            "srv/Arm",
            "srv/GoTo",
            "srv/Land",
            "srv/NotifySetpointsStop",
            "srv/RemoveLogging",
            "srv/StartTrajectory",
            "srv/Takeoff",
            "srv/UploadTrajectory",
        ],
    },
    Package {
        name: "motion_capture_tracking_interfaces",
        types: &["msg/NamedPoseArray"],
    },
    Package {
        name: "tf2_msgs",
        types: &[TF],
    },
];
/// The type of `/tf`; under any other package's name nobody understands it.
const TF: &str = "msg/TFMessage";

/// Runs the bridge until SIGINT or SIGTERM.
///
/// # Errors
/// A parameter or a fleet file that is not allowed, a link that cannot be opened, or what rclrs says. No topic
/// exists then.
pub fn run(args: &NodeArgs) -> Result<()> {
    let settings = Settings::read(args)?;
    let (text, fleet) = read_fleet(&settings.robots_file)?;
    let signal = Waiter::install()?;
    let links: Vec<_> = fleet.enabled().map(crew::open).collect::<Result<_>>()?;
    let reactor = Reactor::new().context("cannot set up the loop")?;
    let stand_ins = stand_in::choose(&STAND_INS);
    let mut session = Session::open(args, settings.domain, "")?;
    session.declare(args)?;
    let stop = Arc::new(AtomicBool::new(false));
    let waker = reactor.waker();
    let (inbox, inputs) = input::channel(reactor.waker());
    let common = common(session.node(), &settings, &stand_ins)?;
    let health = health(session.node(), &settings, &common)?;
    let driver = Driver::new(reactor, inputs, health, Arc::clone(&stop));
    let gate = gate(&settings)?;
    let crew = Arc::new(crew(session.node(), inbox, &settings, common, text, gate)?);
    let (driver, _served) = man(driver, &crew, &fleet, links)?;
    let _matching = settings.profiles.topics.watch(session.node())?;
    let thread = start(driver, settings.threads.clone())?;
    session.start()?;
    announce(&settings, &fleet, &stand_ins);
    signal.wait();
    stop.store(true, Ordering::Release);
    waker.wake();
    let ended = thread.join();
    session.stop();
    ended.map_err(|_| anyhow::anyhow!("the links' thread panicked"))?
}

/// Starts the links' thread once it runs as the parameters ask.
fn start(driver: Driver, threads: threads::Settings) -> Result<JoinHandle<Result<()>>> {
    let (sender, applied) = std::sync::mpsc::sync_channel(1);
    let run = move || {
        let outcome = threads.apply();
        let refused = outcome.is_err();
        // Who waits does so until this has come.
        drop(sender.send(outcome));
        if refused { Ok(()) } else { driver.run() }
    };
    let thread = std::thread::Builder::new()
        .name("links".into())
        .spawn(run)?;
    applied.recv().context("the links' thread has ended")??;
    Ok(thread)
}

/// The gate before arming; the doctor looks meanwhile.
fn gate(settings: &Settings) -> Result<Arc<Gate>> {
    let gate = Arc::new(Gate::new(settings.preflight));
    let (doctor, profile) = (Arc::clone(&gate), settings.profile);
    std::thread::Builder::new()
        .name("doctor".into())
        .spawn(move || doctor.examine(profile))?;
    Ok(gate)
}

fn announce(settings: &Settings, fleet: &Fleet, stand_ins: &[String]) {
    if !stand_ins.is_empty() {
        tracing::info!("types of other packages in use: {}", stand_ins.join(", "));
    }
    let names: Vec<_> = fleet.enabled().map(|robot| robot.name.as_str()).collect();
    tracing::info!(domain = settings.domain, robots = ?names, "bridge is up");
}

fn read_fleet(path: &str) -> Result<(String, Fleet)> {
    let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
    let fleet = Fleet::read(&text).with_context(|| path.to_owned())?;
    if fleet.enabled().next().is_none() {
        bail!("{path}: robots: none is enabled");
    }
    Ok((text, fleet))
}

fn common(node: &Node, settings: &Settings, stand_ins: &[String]) -> Result<Common> {
    let has_tf = stand_ins.iter().any(|name| name.ends_with(TF));
    let tf = has_tf
        .then(|| {
            let qos = QoSProfile::topics_default().keep_last(100);
            settings.profiles.publisher(node, "/tf", qos)
        })
        .transpose()?;
    if tf.is_none() {
        tracing::info!("no transforms on /tf: the package tf2_msgs is not in the environment");
    }
    Ok(Common {
        profiles: settings.profiles.clone(),
        compat: settings.compat,
        statistics: settings.health.statistics,
        description: settings.description.as_str().into(),
        tf,
    })
}

fn health(node: &Node, settings: &Settings, common: &Common) -> Result<Health> {
    let profiles = &common.profiles;
    let all = common
        .statistics
        .then(|| profiles.publisher(node, "all/connection_statistics", profiles.telemetry))
        .transpose()?;
    let diagnostics = profiles.publisher(node, "/diagnostics", QoSProfile::topics_default())?;
    Ok(Health::new(settings.health.clone(), diagnostics, all))
}

fn crew(
    node: &Node,
    inbox: input::Inbox,
    settings: &Settings,
    common: Common,
    text: String,
    gate: Arc<Gate>,
) -> Result<Crew> {
    Ok(Crew {
        mirror: params::Mirror::start(node, &inbox)?,
        node: Node::clone(node),
        inbox,
        common,
        text,
        gate,
        query_params: settings.query_params,
        record: settings.record.clone(),
        cache: settings.cache(),
        members: Mutex::new(Members::default()),
    })
}

/// What is kept alive only.
type Served = (Arc<Crew>, CrewServices, Everyone, everyone::Last);

/// Makes every robot's topics, and those for all robots; the emergency stop last of all.
fn man(
    mut driver: Driver,
    crew: &Arc<Crew>,
    fleet: &Fleet,
    links: Vec<Box<dyn Link>>,
) -> Result<(Driver, Served)> {
    for (robot, mut link) in fleet.enabled().zip(links) {
        driver.add(crew.make(robot, link.as_mut())?, link);
    }
    let services = crew::serve(crew)?;
    let everyone = Everyone::create(&crew.node, &crew.inbox, &crew.common.profiles)?;
    let last = everyone::emergency(&crew.node, &crew.inbox)?;
    Ok((driver, (Arc::clone(crew), services, everyone, last)))
}
