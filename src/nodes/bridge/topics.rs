//! One robot's ROS interface: what it subscribes to, publishes and serves, under its name.

use std::sync::Arc;

use anyhow::Result;
use bridge_core::command::{Request, Setpoint};
use rclrs::{
    IntoPrimitiveOptions as _, Node, Publisher, QoSProfile, RclrsError, Service, Subscription,
};
use ros_env::crazyflie_openlink::{msg as own, srv};
use ros_env::geometry_msgs::msg as geometry;
use ros_env::nav_msgs::msg::Odometry;
use ros_env::sensor_msgs::msg as sensor;
use ros_env::std_msgs::msg::String as Text;
use ros_env::std_srvs::srv as std_srvs;
use rosidl_runtime_rs::Message;

use crate::ros::topics::{Side, Topics as Opened};

use super::input::{Inbox, Input};
use super::messages as convert;

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
}

/// Publishers of one robot.
pub(super) struct Publishers {
    pub(super) pose: Publisher<geometry::PoseStamped>,
    pub(super) odom: Publisher<Odometry>,
    pub(super) imu: Publisher<sensor::Imu>,
    pub(super) battery: Publisher<sensor::BatteryState>,
    pub(super) status: Publisher<own::Status>,
    pub(super) scan: Publisher<sensor::LaserScan>,
    pub(super) console: Publisher<Text>,
    pub(super) raw: Publisher<own::CrtpPacket>,
}

impl Publishers {
    /// Advertises everything below `name`.
    pub(super) fn create(node: &Node, name: &str, profiles: &Profiles) -> Result<Self, RclrsError> {
        let (telemetry, topics) = (profiles.telemetry, &profiles.topics);
        Ok(Self {
            pose: publisher(node, topics, &format!("{name}/pose"), telemetry)?,
            odom: publisher(node, topics, &format!("{name}/odom"), telemetry)?,
            imu: publisher(node, topics, &format!("{name}/imu"), telemetry)?,
            battery: publisher(node, topics, &format!("{name}/battery"), telemetry)?,
            status: publisher(node, topics, &format!("{name}/status"), telemetry)?,
            scan: publisher(node, topics, &format!("{name}/scan"), telemetry)?,
            console: publisher(node, topics, &format!("{name}/console"), telemetry)?,
            raw: publisher(node, topics, &format!("{name}/crtp/rx"), profiles.raw)?,
        })
    }
}

fn publisher<T: Message>(
    node: &Node,
    topics: &Opened,
    topic: &str,
    qos: QoSProfile,
) -> Result<Publisher<T>, RclrsError> {
    node.create_publisher::<T>(topic.qos(topics.open(topic, Side::Publisher, qos)))
}

/// Keeps subscriptions and services alive; it is nothing but what it holds.
pub(super) struct Listeners {
    _twists: [Subscription<geometry::Twist>; 2],
    _hover: Subscription<own::Hover>,
    _position: Subscription<own::Position>,
    _velocity_world: Subscription<own::VelocityWorld>,
    _full_state: Subscription<own::FullState>,
    _attitude: Subscription<own::AttitudeSetpoint>,
    _raw: Subscription<own::CrtpPacket>,
    _emergency: Service<std_srvs::Empty>,
    _arm: Service<srv::Arm>,
    _takeoff: Service<srv::Takeoff>,
    _land: Service<srv::Land>,
    _go_to: Service<srv::GoTo>,
    _start_trajectory: Service<srv::StartTrajectory>,
    _notify: Service<srv::NotifySetpointsStop>,
}

impl Listeners {
    /// Listens below `name`.
    pub(super) fn create(
        node: &Node,
        name: &str,
        inbox: &Inbox,
        profiles: &Profiles,
    ) -> Result<Self> {
        let topics = Topics {
            node,
            name,
            inbox,
            profiles,
        };
        let services = Services { node, name, inbox };
        Ok(Self {
            _twists: [
                topics.setpoint("cmd_vel", convert::cmd_vel)?,
                topics.setpoint("cmd_vel_legacy", convert::cmd_vel_legacy)?,
            ],
            _hover: topics.setpoint("cmd_hover", convert::cmd_hover)?,
            _position: topics.setpoint("cmd_position", convert::cmd_position)?,
            _velocity_world: topics.setpoint("cmd_velocity_world", convert::cmd_velocity_world)?,
            _full_state: topics.setpoint("cmd_full_state", convert::cmd_full_state)?,
            _attitude: topics.setpoint("cmd_attitude", convert::cmd_attitude)?,
            _raw: topics.raw()?,
            _emergency: services.serve("emergency", |_: &std_srvs::Empty_Request| {
                Request::Emergency
            })?,
            _arm: services.serve("arm", |request: &srv::Arm_Request| {
                Request::Arm(request.arm)
            })?,
            _takeoff: services.serve("takeoff", |request| {
                Request::Takeoff(convert::takeoff(request))
            })?,
            _land: services.serve("land", |request| Request::Land(convert::land(request)))?,
            _go_to: services.serve("go_to", |request| Request::GoTo(convert::go_to(request)))?,
            _start_trajectory: services.serve("start_trajectory", |request| {
                Request::StartTrajectory(convert::start_trajectory(request))
            })?,
            _notify: services.serve(
                "notify_setpoints_stop",
                |request: &srv::NotifySetpointsStop_Request| Request::NotifySetpointsStop {
                    remain_valid: request.remain_valid_millisecs,
                },
            )?,
        })
    }
}

/// Makes the subscriptions of one robot.
struct Topics<'a> {
    node: &'a Node,
    name: &'a str,
    inbox: &'a Inbox,
    profiles: &'a Profiles,
}

impl Topics<'_> {
    fn setpoint<T: Message>(
        &self,
        topic: &str,
        convert: impl Fn(&T) -> Setpoint + Send + Sync + 'static,
    ) -> Result<Subscription<T>, RclrsError> {
        let (inbox, topic) = (self.inbox.clone(), format!("{}/{topic}", self.name));
        let callback = move |message: T| inbox.push(Input::Setpoint(convert(&message)));
        let qos = self.qos(&topic, self.profiles.setpoints);
        self.node
            .create_subscription::<T, _>(topic.as_str().qos(qos), callback)
    }

    fn qos(&self, topic: &str, base: QoSProfile) -> QoSProfile {
        self.profiles.topics.open(topic, Side::Subscription, base)
    }

    fn raw(&self) -> Result<Subscription<own::CrtpPacket>, RclrsError> {
        let (inbox, topic) = (self.inbox.clone(), format!("{}/crtp/tx", self.name));
        let name: Arc<str> = topic.as_str().into();
        let callback = move |message: own::CrtpPacket| match convert::raw_packet(&message) {
            Ok(packet) => inbox.push(Input::Request(Request::Raw(packet), None)),
            Err(why) => tracing::warn!(topic = &*name, "packet refused: {why}"),
        };
        let qos = self.qos(&topic, self.profiles.raw);
        self.node
            .create_subscription::<own::CrtpPacket, _>(topic.as_str().qos(qos), callback)
    }
}

/// Makes the services of one robot. Their responses have no field for a failure, as in crazyswarm2, so that a
/// refusal is an error in the log.
struct Services<'a> {
    node: &'a Node,
    name: &'a str,
    inbox: &'a Inbox,
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
                if let Err(why) = inbox.ask(command).await {
                    tracing::error!(service = &*label, "refused: {why}");
                }
                S::Response::default()
            }
        };
        self.node
            .create_async_service::<S, _>(name.as_str(), callback)
    }
}
