//! The bridge: each robot of a fleet file as ROS topics and services, over whatever link its URI names.
//!
//! One node for all robots, one thread for all links. The brains are `bridge_core::Drone`; this module connects
//! them to ROS.

mod driver;
mod input;
mod messages;
mod topics;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use bridge_core::{Drone, Fleet, fleet};
use crtp_client::{FileCache, MemoryCache, TableCache};
use link::{Link, Reactor, Role};
use rclrs::{IntoPrimitiveOptions as _, Node};
use ros_env::crazyflie_openlink::msg::LogDataGeneric;

use crate::ros::args::{ArgsError, NodeArgs};
use crate::ros::session::Session;
use crate::ros::stop::Waiter;
use crate::ros::topics::{Side, Topics};
use crate::ros::{domain, qos};
use driver::{Driver, Robot};
use input::Inbox;
use topics::{Listeners, Profiles, Publishers};

/// What the bridge's parameters say.
struct Settings {
    domain: usize,
    robots_file: String,
    toc_cache: String,
    profiles: Profiles,
}

impl Settings {
    fn read(args: &NodeArgs) -> Result<Self, ArgsError> {
        let settings = Self {
            domain: domain::of(args, "domain_id")?,
            robots_file: args.text("robots_file", "")?,
            toc_cache: args.text("toc_cache", "")?,
            profiles: Profiles {
                setpoints: qos::profile(args, "setpoints", "listener")?,
                telemetry: qos::profile(args, "telemetry", "default")?,
                raw: qos::profile(args, "raw", "default")?,
                topics: Topics::read(args)?,
            },
        };
        args.refuse_unknown()?;
        if settings.robots_file.is_empty() {
            return Err(ArgsError::value(
                "robots_file",
                "nothing",
                "the path of a fleet file",
            ));
        }
        Ok(settings)
    }

    fn fleet(&self) -> Result<Fleet> {
        let path = Path::new(&self.robots_file);
        let text = std::fs::read_to_string(path).with_context(|| self.robots_file.clone())?;
        let fleet = Fleet::read(&text).with_context(|| self.robots_file.clone())?;
        if fleet.enabled().next().is_none() {
            bail!("{}: robots: none is enabled", self.robots_file);
        }
        Ok(fleet)
    }

    fn cache(&self) -> Box<dyn TableCache> {
        if self.toc_cache.is_empty() {
            Box::new(MemoryCache::default())
        } else {
            Box::new(FileCache::new(&self.toc_cache))
        }
    }
}

/// Runs the bridge until SIGINT or SIGTERM.
///
/// # Errors
/// A parameter or a fleet file that is not allowed, a link that cannot be opened, or what rclrs says. No topic
/// exists then.
pub fn run(args: &NodeArgs) -> Result<()> {
    let settings = Settings::read(args)?;
    let fleet = settings.fleet()?;
    let signal = Waiter::install()?;
    let links = open_links(&fleet)?;
    let reactor = Reactor::new().context("cannot set up the loop")?;
    let mut session = Session::open(args, settings.domain, "")?;
    session.declare(args)?;
    let (inbox, inputs) = input::channel(reactor.waker());
    let (robots, _listeners) = create_robots(session.node(), &fleet, &inbox, &settings)?;
    let _matching = settings.profiles.topics.watch(session.node())?;
    let stop = Arc::new(AtomicBool::new(false));
    let waker = reactor.waker();
    let driver = Driver {
        reactor,
        links,
        robots,
        inputs,
        stop: Arc::clone(&stop),
    };
    let thread = std::thread::Builder::new()
        .name("links".into())
        .spawn(move || driver.run())?;
    session.start()?;
    let names: Vec<_> = fleet.enabled().map(|robot| robot.name.as_str()).collect();
    tracing::info!(domain = settings.domain, robots = ?names, "bridge is up");
    signal.wait();
    stop.store(true, Ordering::Release);
    waker.wake();
    let ended = thread.join();
    session.stop();
    ended.map_err(|_| anyhow::anyhow!("the links' thread panicked"))?
}

fn open_links(fleet: &Fleet) -> Result<Vec<Box<dyn Link>>> {
    let now = Instant::now();
    let open = |robot: &fleet::Robot| {
        link::open(now, &robot.uri, Role::To).with_context(|| format!("robots.{}.uri", robot.name))
    };
    fleet.enabled().map(open).collect()
}

fn create_robots(
    node: &Node,
    fleet: &Fleet,
    inbox: &Inbox,
    settings: &Settings,
) -> Result<(Vec<Robot>, Vec<Listeners>)> {
    let (mut robots, mut listeners) = (Vec::new(), Vec::new());
    for (index, robot) in fleet.enabled().enumerate() {
        let name = robot.name.as_str();
        let publishers = Publishers::create(node, name, &settings.profiles)?;
        let custom = custom_publishers(node, robot, &settings.profiles)?;
        listeners.push(Listeners::create(
            node,
            name,
            &inbox.of_robot(index),
            &settings.profiles,
        )?);
        robots.push(Robot {
            name: name.to_owned(),
            frame: robot.reference_frame.clone(),
            drone: Drone::new(robot, settings.cache()),
            publishers,
            custom,
            refused_setpoints: 0,
            supervisor: 0,
            waiting: BTreeMap::new(),
        });
    }
    Ok((robots, listeners))
}

fn custom_publishers(
    node: &Node,
    robot: &fleet::Robot,
    profiles: &Profiles,
) -> Result<BTreeMap<String, rclrs::Publisher<LogDataGeneric>>> {
    let mut out = BTreeMap::new();
    for topic in robot.topics.custom.keys() {
        let name = format!("{}/{topic}", robot.name);
        let qos = profiles
            .topics
            .open(&name, Side::Publisher, profiles.telemetry);
        let publisher = node.create_publisher::<LogDataGeneric>(name.as_str().qos(qos))?;
        out.insert(topic.clone(), publisher);
    }
    Ok(out)
}
