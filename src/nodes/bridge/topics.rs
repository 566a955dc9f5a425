//! One robot's ROS interface: what it subscribes to, publishes and serves, under its name.

use std::sync::Arc;

use anyhow::Result;
use bridge_core::command::{Request, Setpoint};
use bridge_core::fleet;
use bridge_core::units::Compat;
use rclrs::{IntoPrimitiveOptions as _, Node, Publisher, QoSProfile, RclrsError, Service};
use ros_env::crazyflie_openlink::{msg as own, srv};
use ros_env::geometry_msgs::msg as geometry;
use ros_env::nav_msgs::msg::Odometry;
use ros_env::sensor_msgs::msg as sensor;
use ros_env::std_msgs::msg::String as Text;
use ros_env::std_srvs::srv as std_srvs;
use rosidl_runtime_rs::Message;

use super::ears::{Ears, Heard};
use super::input::{Input, RobotInbox};
use super::messages as convert;
use crate::ros::stand_in::{Named, NamedService};
use crate::ros::topics::{Side, Topics as Opened};

/// QoS of the topic groups.
#[derive(Clone, Debug)]
pub(super) struct Profiles {
    /// `cmd_*`.
    pub(super) setpoints: QoSProfile,
    /// What the drone tells.
    pub(super) telemetry: QoSProfile,
    /// `crtp/tx` and `crtp/rx`.
    pub(super) raw: QoSProfile,
    /// Overrides for single topics, and what has been opened.
    pub(super) topics: Opened,
    /// Who waits for messages.
    pub(super) ears: Ears,
}

impl Profiles {
    /// A publisher whose group has `base`.
    pub(super) fn publisher<T: Message>(
        &self,
        node: &Node,
        topic: &str,
        base: QoSProfile,
    ) -> Result<Publisher<T>, RclrsError> {
        let qos = self.topics.open(topic, Side::Publisher, base);
        node.create_publisher::<T>(topic.qos(qos))
    }

    /// A subscription whose group has `base`.
    pub(super) fn subscription<T: Message>(
        &self,
        node: &Node,
        topic: &str,
        base: QoSProfile,
        callback: impl Fn(T) + Send + Sync + 'static,
    ) -> Result<Heard<T>, RclrsError> {
        let qos = self.topics.open(topic, Side::Subscription, base);
        let worker = self.ears.of(node, topic);
        worker.create_subscription::<T, _>(topic.qos(qos), callback)
    }
}

/// A topic of the user's own.
pub(super) type CustomPublisher = Publisher<Named<own::LogDataGeneric>>;
/// `/tf`.
pub(super) type TfPublisher = Publisher<Named<own::TFMessage>>;

/// What all robots' topics have in common.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) profiles: Profiles,
    pub(super) compat: Compat,
    /// Publish connection statistics.
    pub(super) statistics: bool,
    /// The URDF, with `$NAME` for the robot's name.
    pub(super) description: Arc<str>,
    /// None where tf2_msgs is not installed.
    pub(super) tf: Option<TfPublisher>,
}

/// Publishers of one robot.
pub(super) struct Publishers {
    pub(super) pose: Publisher<geometry::PoseStamped>,
    pub(super) odom: Publisher<Odometry>,
    pub(super) imu: Publisher<sensor::Imu>,
    pub(super) battery: Publisher<sensor::BatteryState>,
    pub(super) status: Publisher<Named<own::Status>>,
    pub(super) scan: Publisher<sensor::LaserScan>,
    pub(super) console: Publisher<Text>,
    pub(super) raw: Publisher<own::CrtpPacket>,
    pub(super) statistics: Option<Publisher<Named<own::ConnectionStatisticsArray>>>,
    pub(super) link_health: Publisher<own::LinkHealth>,
    pub(super) tf: Option<TfPublisher>,
    /// What it has said stays readable as long as it lives.
    _description: Publisher<Text>,
}

impl Publishers {
    /// Advertises everything below `name`, and says what the robot looks like.
    pub(super) fn create(node: &Node, name: &str, common: &Common) -> Result<Self, RclrsError> {
        let (profiles, telemetry) = (&common.profiles, common.profiles.telemetry);
        let below = |topic: &str| format!("{name}/{topic}");
        let latched = QoSProfile::topics_default().transient_local().keep_last(1);
        let description: Publisher<Text> =
            profiles.publisher(node, &below("robot_description"), latched)?;
        let urdf = common.description.replace("$NAME", name);
        description.publish(Text { data: urdf })?;
        let statistics = common.statistics.then(|| below("connection_statistics"));
        Ok(Self {
            pose: profiles.publisher(node, &below("pose"), telemetry)?,
            odom: profiles.publisher(node, &below("odom"), telemetry)?,
            imu: profiles.publisher(node, &below("imu"), telemetry)?,
            battery: profiles.publisher(node, &below("battery"), telemetry)?,
            status: profiles.publisher(node, &below("status"), telemetry)?,
            scan: profiles.publisher(node, &below("scan"), telemetry)?,
            console: profiles.publisher(node, &below("console"), telemetry)?,
            raw: profiles.publisher(node, &below("crtp/rx"), profiles.raw)?,
            statistics: statistics
                .map(|topic| profiles.publisher(node, &topic, telemetry))
                .transpose()?,
            link_health: profiles.publisher(node, &below("link_health"), telemetry)?,
            tf: common.tf.clone(),
            _description: description,
        })
    }
}

/// Keeps subscriptions and services alive; it is nothing but what it holds.
pub(super) struct Listeners {
    pub(super) id: u64,
    _twists: [Heard<geometry::Twist>; 2],
    _hover: Heard<Named<own::Hover>>,
    _position: Heard<Named<own::Position>>,
    _velocity_world: Heard<Named<own::VelocityWorld>>,
    _full_state: Heard<Named<own::FullState>>,
    _attitude: Heard<own::AttitudeSetpoint>,
    _raw: Heard<own::CrtpPacket>,
    _emergency: Service<std_srvs::Empty>,
    _arm: Service<NamedService<srv::Arm>>,
    _takeoff: Service<NamedService<srv::Takeoff>>,
    _land: Service<NamedService<srv::Land>>,
    _go_to: Service<NamedService<srv::GoTo>>,
    _start_trajectory: Service<NamedService<srv::StartTrajectory>>,
    _notify: Service<NamedService<srv::NotifySetpointsStop>>,
    _upload: Service<NamedService<srv::UploadTrajectory>>,
    _logging: (
        Service<NamedService<srv::AddLogging>>,
        Service<NamedService<srv::RemoveLogging>>,
    ),
}

impl Listeners {
    /// Listens below `name`.
    pub(super) fn create(
        node: &Node,
        name: &str,
        inbox: &RobotInbox,
        common: &Common,
    ) -> Result<Self> {
        let (profiles, compat) = (&common.profiles, common.compat);
        let topics = Topics {
            node,
            name,
            inbox,
            profiles,
        };
        let services = Services { node, name, inbox };
        Ok(Self {
            id: inbox.robot,
            _twists: [
                topics.setpoint("cmd_vel", |twist| (convert::cmd_vel(twist), 0))?,
                topics.setpoint("cmd_vel_legacy", |twist| {
                    (convert::cmd_vel_legacy(twist), 0)
                })?,
            ],
            _hover: topics.setpoint("cmd_hover", |Named(hover): &Named<own::Hover>| {
                (convert::cmd_hover(hover), convert::stamp(&hover.header))
            })?,
            _position: topics.setpoint(
                "cmd_position",
                move |Named(place): &Named<own::Position>| {
                    (
                        convert::cmd_position(place, compat),
                        convert::stamp(&place.header),
                    )
                },
            )?,
            _velocity_world: topics.setpoint(
                "cmd_velocity_world",
                move |Named(velocity): &Named<own::VelocityWorld>| {
                    let setpoint = convert::cmd_velocity_world(velocity, compat);
                    (setpoint, convert::stamp(&velocity.header))
                },
            )?,
            _full_state: topics.setpoint(
                "cmd_full_state",
                |Named(state): &Named<own::FullState>| {
                    (
                        convert::cmd_full_state(state),
                        convert::stamp(&state.header),
                    )
                },
            )?,
            _attitude: topics.setpoint("cmd_attitude", |attitude: &own::AttitudeSetpoint| {
                (
                    convert::cmd_attitude(attitude),
                    convert::stamp(&attitude.header),
                )
            })?,
            _raw: topics.raw()?,
            _emergency: services.serve("emergency", |_: &std_srvs::Empty_Request| {
                Request::Emergency
            })?,
            _arm: services.serve("arm", convert::arm)?,
            _takeoff: services.serve("takeoff", convert::takeoff)?,
            _land: services.serve("land", convert::land)?,
            _go_to: services.serve("go_to", convert::go_to)?,
            _start_trajectory: services.serve("start_trajectory", convert::start_trajectory)?,
            _notify: services.serve("notify_setpoints_stop", convert::notify_stop)?,
            _upload: services.upload()?,
            _logging: (services.add_logging(profiles)?, services.remove_logging()?),
        })
    }
}

/// Makes the subscriptions of one robot.
struct Topics<'a> {
    node: &'a Node,
    name: &'a str,
    inbox: &'a RobotInbox,
    profiles: &'a Profiles,
}

impl Topics<'_> {
    fn setpoint<T: Message>(
        &self,
        topic: &str,
        convert: impl Fn(&T) -> (Setpoint, i64) + Send + Sync + 'static,
    ) -> Result<Heard<T>, RclrsError> {
        let (inbox, topic) = (self.inbox.clone(), format!("{}/{topic}", self.name));
        let callback = move |message: T| {
            let (setpoint, made_at) = convert(&message);
            inbox.push(Input::Setpoint(setpoint, made_at));
        };
        self.profiles
            .subscription(self.node, &topic, self.profiles.setpoints, callback)
    }

    fn raw(&self) -> Result<Heard<own::CrtpPacket>, RclrsError> {
        let (inbox, topic) = (self.inbox.clone(), format!("{}/crtp/tx", self.name));
        let name: Arc<str> = topic.as_str().into();
        let callback = move |message: own::CrtpPacket| match convert::raw_packet(&message) {
            Ok(packet) => inbox.push(Input::Request(Request::Raw(packet), None)),
            Err(why) => tracing::warn!(topic = &*name, "packet refused: {why}"),
        };
        self.profiles
            .subscription(self.node, &topic, self.profiles.raw, callback)
    }
}

/// Makes the services of one robot. Most responses have no field for a failure, as in crazyswarm2, so that a
/// refusal is an error in the log.
struct Services<'a> {
    node: &'a Node,
    name: &'a str,
    inbox: &'a RobotInbox,
}

impl Services<'_> {
    fn serve<S>(
        &self,
        service: &str,
        convert: impl Fn(&S::Request) -> Request + Send + Sync + 'static,
    ) -> Result<Service<S>, RclrsError>
    where
        S: rosidl_runtime_rs::Service,
    {
        let (inbox, name) = (self.inbox.clone(), format!("{}/{service}", self.name));
        let label: Arc<str> = name.as_str().into();
        let callback = move |request: S::Request| {
            let (inbox, label, command) = (inbox.clone(), Arc::clone(&label), convert(&request));
            async move {
                let outcome = inbox
                    .ask(|reply| Input::Request(command, Some(reply)))
                    .await;
                succeeded(&label, outcome);
                S::Response::default()
            }
        };
        self.node
            .create_async_service::<S, _>(name.as_str(), callback)
    }

    fn upload(&self) -> Result<Service<NamedService<srv::UploadTrajectory>>, RclrsError> {
        let (inbox, name) = (
            self.inbox.clone(),
            format!("{}/upload_trajectory", self.name),
        );
        let label: Arc<str> = name.as_str().into();
        let callback = move |request: srv::UploadTrajectory_Request| {
            let (inbox, label) = (inbox.clone(), Arc::clone(&label));
            async move {
                let outcome = match convert::trajectory(&request) {
                    Ok(trajectory) => inbox.ask(|reply| Input::Upload(trajectory, reply)).await,
                    Err(why) => Err(why),
                };
                succeeded(&label, outcome);
                srv::UploadTrajectory_Response::default()
            }
        };
        self.node.create_async_service(name.as_str(), callback)
    }

    fn add_logging(
        &self,
        profiles: &Profiles,
    ) -> Result<Service<NamedService<srv::AddLogging>>, RclrsError> {
        let (inbox, name) = (self.inbox.clone(), format!("{}/add_logging", self.name));
        let (node, robot): (Node, Arc<str>) = (Node::clone(self.node), self.name.into());
        let (label, profiles): (Arc<str>, _) = (name.as_str().into(), profiles.clone());
        let callback = move |request: srv::AddLogging_Request| {
            let (inbox, label) = (inbox.clone(), Arc::clone(&label));
            let prepared = prepare(&node, &robot, &profiles, request);
            async move {
                let outcome = match prepared {
                    Ok(input) => inbox.ask(input).await,
                    Err(why) => Err(why),
                };
                srv::AddLogging_Response {
                    success: succeeded(&label, outcome),
                }
            }
        };
        self.node.create_async_service(name.as_str(), callback)
    }

    fn remove_logging(&self) -> Result<Service<NamedService<srv::RemoveLogging>>, RclrsError> {
        let (inbox, name) = (self.inbox.clone(), format!("{}/remove_logging", self.name));
        let label: Arc<str> = name.as_str().into();
        let callback = move |request: srv::RemoveLogging_Request| {
            let (inbox, label) = (inbox.clone(), Arc::clone(&label));
            async move {
                let topic = request.topic_name;
                let outcome = inbox.ask(|reply| Input::RemoveTopic(topic, reply)).await;
                srv::RemoveLogging_Response {
                    success: succeeded(&label, outcome),
                }
            }
        };
        self.node.create_async_service(name.as_str(), callback)
    }
}

/// Checks a topic and makes its publisher; what is left to ask the robot.
fn prepare(
    node: &Node,
    robot: &str,
    profiles: &Profiles,
    request: srv::AddLogging_Request,
) -> Result<impl FnOnce(super::input::Reply) -> Input + Send + use<>, String> {
    let (topic, hz) = (request.topic_name, f64::from(request.frequency));
    let log = fleet::late_topic(&topic, hz, &request.vars).map_err(|error| error.to_string())?;
    // A fixed topic has its publisher already.
    let custom = !log.1.is_empty();
    let publisher = custom
        .then(|| profiles.publisher(node, &format!("{robot}/{topic}"), profiles.telemetry))
        .transpose();
    let publisher = publisher.map_err(|error| error.to_string())?;
    Ok(move |reply| Input::AddTopic {
        topic,
        log,
        publisher,
        reply,
    })
}

/// Whether it went well; if not, the log says why.
fn succeeded(label: &str, outcome: super::input::Outcome) -> bool {
    outcome
        .inspect_err(|why| tracing::error!(service = label, "refused: {why}"))
        .is_ok()
}
