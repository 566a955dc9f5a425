//! Which robots there are: made from the fleet file at the start, added and removed by service later.
//!
//! It makes links, publishers and subscriptions; the driver moves them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use bridge_core::{Drone, Fleet, fleet};
use crtp_client::TableCache;
use latency::record::Recording;
use link::tap::Place;
use link::{Link, LinkTap, Role};
use rclrs::{Node, Service};
use ros_env::crazyflie_openlink::srv;

use super::input::{Command, Inbox, RobotInbox};
use super::params::Mirror;
use super::preflight::Gate;
use super::robot::{Notes, Robot};
use super::topics::{self, Common, CustomPublisher, Listeners};

/// Everything a new robot needs.
pub(super) struct Crew {
    pub(super) node: Node,
    pub(super) inbox: Inbox,
    pub(super) mirror: Mirror,
    pub(super) common: Common,
    /// The fleet file's text: later robots take its defaults.
    pub(super) text: String,
    pub(super) query_params: bool,
    /// Looked at before a drone is armed.
    pub(super) gate: Arc<Gate>,
    /// Folder for the packet logs, one for each robot: packets of several drones have the same bytes, so that each
    /// way needs a log of its own.
    pub(super) record: Option<PathBuf>,
    pub(super) cache: Box<dyn Fn() -> Box<dyn TableCache> + Send + Sync>,
    pub(super) members: Mutex<Members>,
}

/// Who is there.
#[derive(Default)]
pub(super) struct Members {
    next: u64,
    /// Name and settings of the robots that came later.
    later: Vec<(String, String)>,
    listeners: BTreeMap<String, Listeners>,
}

/// The services that change the crew.
pub(super) struct CrewServices {
    _add: Service<srv::AddRobot>,
    _remove: Service<srv::RemoveRobot>,
}

impl Crew {
    /// Makes a robot with all its topics; its `link` is open already.
    ///
    /// # Errors
    /// What rclrs says.
    pub(super) fn make(&self, robot: &fleet::Robot, link: &mut dyn Link) -> Result<Robot> {
        let mut members = self.members();
        members.next += 1;
        let id = members.next;
        let name = robot.name.as_str();
        let inbox = RobotInbox {
            robot: id,
            inbox: self.inbox.clone(),
        };
        let publishers = topics::Publishers::create(&self.node, name, &self.common)?;
        let custom = self.custom_publishers(robot)?;
        let listeners = Listeners::create(&self.node, name, &inbox, &self.common)?;
        members.listeners.insert(name.to_owned(), listeners);
        let mut settings = robot.clone();
        settings.query_params = self.query_params;
        Ok(Robot {
            id,
            name: name.to_owned(),
            frame: robot.reference_frame.clone(),
            uri: robot.uri.to_string(),
            tf_from_odom: robot.topics.pose.is_none(),
            battery: robot.battery,
            gate: Arc::clone(&self.gate),
            drone: Drone::new(&settings, (self.cache)()),
            publishers,
            custom,
            mirror: self.mirror.clone(),
            notes: Notes::default(),
            waiting: BTreeMap::new(),
            recording: self.start_recording(robot, link),
        })
    }

    /// Begins the robot's packet log, if logs are wanted.
    fn start_recording(&self, robot: &fleet::Robot, link: &mut dyn Link) -> Recording {
        let Some(folder) = &self.record else {
            return Recording::default();
        };
        let path = folder.join(format!("{}.mcap", robot.name));
        let uri = robot.uri.to_string();
        let recording = Recording::start(&path, "bridge", &[&uri], |text| tracing::warn!("{text}"));
        let place = if robot.uri.faces_drone(Role::To) {
            Place::Drone
        } else {
            Place::Network
        };
        link.set_tap(LinkTap::new(recording.tap(), 0, place));
        recording
    }

    fn custom_publishers(&self, robot: &fleet::Robot) -> Result<BTreeMap<String, CustomPublisher>> {
        let profiles = &self.common.profiles;
        let names = robot.topics.custom.keys();
        names
            .map(|topic| {
                let full = format!("{}/{topic}", robot.name);
                let publisher = profiles.publisher(&self.node, &full, profiles.telemetry)?;
                Ok((topic.clone(), publisher))
            })
            .collect()
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        // Nothing panics while it holds the lock; if it did, the names are still right.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, name: &str, settings: &str) -> Result<()> {
        let mut later = self.members().later.clone();
        let at = (name.to_owned(), settings.to_owned());
        later.push(at.clone());
        let fleet = Fleet::read_with(&self.text, &later)?;
        let found = fleet.enabled().find(|robot| robot.name.as_str() == name);
        let Some(robot) = found else {
            bail!("robots.{name}: it is not enabled");
        };
        if self.members().listeners.contains_key(name) {
            bail!("robots is {name}, allowed: a name that no robot has");
        }
        let mut link = open(robot)?;
        let robot = self.make(robot, link.as_mut())?;
        self.members().later.push(at);
        self.inbox.push(Command::Add(Box::new(robot), link));
        tracing::info!(robot = name, "robot added");
        Ok(())
    }

    /// Takes the robot's topics away; its number for the driver.
    fn dismiss(&self, name: &str) -> Option<u64> {
        let mut members = self.members();
        members.later.retain(|(later, _)| later != name);
        members.listeners.remove(name).map(|listeners| listeners.id)
    }

    async fn remove(&self, name: &str) -> Result<(), String> {
        let Some(id) = self.dismiss(name) else {
            return Err(format!("there is no robot {name}"));
        };
        self.inbox.ask(|reply| Command::Remove(id, reply)).await
    }
}

/// Opens the link of a robot.
///
/// # Errors
/// What the link says, naming the robot's URI.
pub(super) fn open(robot: &fleet::Robot) -> Result<Box<dyn Link>> {
    link::open(Instant::now(), &robot.uri, Role::To)
        .with_context(|| format!("robots.{}.uri", robot.name))
}

/// Serves `add_robot` and `remove_robot`.
///
/// # Errors
/// What rclrs says.
pub(super) fn serve(crew: &Arc<Crew>) -> Result<CrewServices> {
    let (adds, removes) = (Arc::clone(crew), Arc::clone(crew));
    let add = move |request: srv::AddRobot_Request| {
        let outcome = adds.add(&request.name, &request.settings);
        let message = outcome.err().map(|error| crate::told_once(&error));
        srv::AddRobot_Response {
            success: message.is_none(),
            message: message.unwrap_or_default(),
        }
    };
    let remove = move |request: srv::RemoveRobot_Request| {
        let crew = Arc::clone(&removes);
        async move {
            let message = crew.remove(&request.name).await.err();
            srv::RemoveRobot_Response {
                success: message.is_none(),
                message: message.unwrap_or_default(),
            }
        }
    };
    Ok(CrewServices {
        _add: crew.node.create_service("add_robot", add)?,
        _remove: crew.node.create_async_service("remove_robot", remove)?,
    })
}
