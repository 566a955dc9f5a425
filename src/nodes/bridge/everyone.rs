//! What addresses all robots at once: `all/*`, and the poses of a motion-capture system.

use std::sync::Arc;

use anyhow::Result;
use bridge_core::command::Request;
use rclrs::{Node, QoSProfile, RclrsError, Service};
use ros_env::crazyflie_openlink::{msg as own, srv};
use ros_env::std_srvs::srv as std_srvs;

use super::ears::Heard;
use super::input::{Command, Inbox};
use super::messages as convert;
use super::topics::Profiles;
use crate::ros::stand_in::{Named, NamedService};

/// Keeps subscriptions and services alive.
pub(super) struct Everyone {
    _full_state: Heard<Named<own::FullState>>,
    _poses: Heard<Named<own::NamedPoseArray>>,
    _arm: Service<NamedService<srv::Arm>>,
    _takeoff: Service<NamedService<srv::Takeoff>>,
    _land: Service<NamedService<srv::Land>>,
    _go_to: Service<NamedService<srv::GoTo>>,
    _start_trajectory: Service<NamedService<srv::StartTrajectory>>,
    _notify: Service<NamedService<srv::NotifySetpointsStop>>,
}

/// `all/emergency`. Clients take it for the sign that everything else is there, so it comes last.
pub(super) type Last = Service<std_srvs::Empty>;

impl Everyone {
    /// Listens to everything but the emergency stop.
    pub(super) fn create(node: &Node, inbox: &Inbox, profiles: &Profiles) -> Result<Self> {
        Ok(Self {
            _full_state: full_state(node, inbox, profiles)?,
            _poses: poses(node, inbox, profiles)?,
            _arm: serve(node, inbox, "arm", convert::arm)?,
            _takeoff: serve(node, inbox, "takeoff", convert::takeoff)?,
            _land: serve(node, inbox, "land", convert::land)?,
            _go_to: serve(node, inbox, "go_to", convert::go_to)?,
            _start_trajectory: serve(node, inbox, "start_trajectory", convert::start_trajectory)?,
            _notify: serve(node, inbox, "notify_setpoints_stop", convert::notify_stop)?,
        })
    }
}

/// Serves `all/emergency`.
pub(super) fn emergency(node: &Node, inbox: &Inbox) -> Result<Last, RclrsError> {
    serve(node, inbox, "emergency", |_: &std_srvs::Empty_Request| {
        Request::Emergency
    })
}

fn full_state(
    node: &Node,
    inbox: &Inbox,
    profiles: &Profiles,
) -> Result<Heard<Named<own::FullState>>, RclrsError> {
    let inbox = inbox.clone();
    let callback = move |Named(state): Named<own::FullState>| {
        let made_at = convert::stamp(&state.header);
        inbox.push(Command::EachSetpoint(
            convert::cmd_full_state(&state),
            made_at,
        ));
    };
    profiles.subscription(node, "all/cmd_full_state", profiles.setpoints, callback)
}

/// Best effort, the newest only: a pose that is late is worth nothing.
fn poses(
    node: &Node,
    inbox: &Inbox,
    profiles: &Profiles,
) -> Result<Heard<Named<own::NamedPoseArray>>, RclrsError> {
    let inbox = inbox.clone();
    let qos = QoSProfile::topics_default().best_effort().keep_last(1);
    let callback = move |Named(array): Named<own::NamedPoseArray>| {
        let poses = array.poses.iter();
        let poses = poses.map(|pose| (pose.name.clone(), convert::measured(&pose.pose)));
        inbox.push(Command::Poses(poses.collect()));
    };
    profiles.subscription(node, "poses", qos, callback)
}

fn serve<S>(
    node: &Node,
    inbox: &Inbox,
    service: &str,
    convert: impl Fn(&S::Request) -> Request + Send + Sync + 'static,
) -> Result<Service<S>, RclrsError>
where
    S: rosidl_runtime_rs::Service,
{
    let (inbox, name) = (inbox.clone(), format!("all/{service}"));
    let label: Arc<str> = name.as_str().into();
    let callback = move |request: S::Request| {
        let (inbox, label, command) = (inbox.clone(), Arc::clone(&label), convert(&request));
        async move {
            for (robot, why) in inbox.ask_all(command).await {
                tracing::error!(service = &*label, robot, "refused: {why}");
            }
            S::Response::default()
        }
    };
    node.create_async_service::<S, _>(name.as_str(), callback)
}
