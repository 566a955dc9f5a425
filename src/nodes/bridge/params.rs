//! Firmware parameters as ROS parameters: `NAME.params.GROUP.PARAM` for one robot, `all.params.GROUP.PARAM` for all.
//!
//! A thread of its own declares them and follows the drones' values, so that the links' thread never waits for a
//! parameter. A value that ROS sets is checked by name, type and range at once, and goes to the drone; if the drone
//! refuses it, the value that the drone has comes back.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use bridge_core::drone::ParamInfo;
use bridge_core::fleet::ParamSetting;
use crtp::Value;
use rclrs::{Node, OptionalParameter, ParameterValue};

use super::input::{Command, Inbox, Input};

/// Updates that may wait: 50 drones with 300 parameters each, all at once.
const QUEUE: usize = 16_384;

thread_local! {
    /// The value being set comes from the drone: it needs no check, and does not go back to it.
    static FROM_DRONE: Cell<bool> = const { Cell::new(false) };
}

/// News of the drones' parameters.
pub(super) enum Update {
    /// Which parameters a robot has.
    Table(String, u64, Vec<ParamInfo>),
    /// A parameter has this value.
    Value(String, String, Value),
    /// The robot is no more.
    Gone(String),
}

/// The way to the mirror.
#[derive(Clone)]
pub(super) struct Mirror(SyncSender<Update>);

type Declared = OptionalParameter<ParameterValue>;

struct Keeper {
    node: Node,
    inbox: Inbox,
    robots: BTreeMap<String, BTreeMap<String, Declared>>,
    all: BTreeMap<String, Declared>,
}

impl Mirror {
    /// Starts the mirror; it ends when the last of its ends is dropped.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub(super) fn start(node: &Node, inbox: &Inbox) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE);
        let keeper = Keeper {
            node: Node::clone(node),
            inbox: inbox.clone(),
            robots: BTreeMap::new(),
            all: BTreeMap::new(),
        };
        let name = "params".to_owned();
        std::thread::Builder::new()
            .name(name)
            .spawn(move || keeper.run(&receiver))?;
        Ok(Self(sender))
    }

    /// Tells the mirror; a full queue loses the update and says so.
    pub(super) fn tell(&self, update: Update) {
        if let Err(TrySendError::Full(_)) = self.0.try_send(update) {
            tracing::warn!("a parameter's news is lost: too many wait");
        }
    }
}

impl Keeper {
    fn run(mut self, updates: &Receiver<Update>) {
        FROM_DRONE.set(true);
        while let Ok(update) = updates.recv() {
            match update {
                Update::Table(robot, id, infos) => self.declare(&robot, id, infos),
                Update::Value(robot, name, value) => self.set(&robot, &name, value),
                Update::Gone(robot) => drop(self.robots.remove(&robot)),
            }
        }
    }

    /// Declares what is not declared yet; a drone whose firmware has changed starts from nothing.
    fn declare(&mut self, robot: &str, id: u64, infos: Vec<ParamInfo>) {
        let known = self.robots.get(robot).map(|known| known.keys());
        let same = known.is_some_and(|known| known.eq(sorted(&infos)));
        if same {
            return;
        }
        self.robots.remove(robot);
        let mut declared = BTreeMap::new();
        for info in infos {
            let name = info.name.clone();
            self.declare_for_all(&info);
            let inbox = self.inbox.clone();
            let key = format!("{robot}.params.{name}");
            let to_robot = move |name: &str, setting| {
                let input = Input::Param(name.to_owned(), setting);
                inbox.push(Command::One(id, input));
            };
            if let Some(parameter) = parameter(&self.node, key, info, to_robot) {
                declared.insert(name, parameter);
            }
        }
        self.robots.insert(robot.to_owned(), declared);
    }

    fn declare_for_all(&mut self, info: &ParamInfo) {
        if self.all.contains_key(&info.name) {
            return;
        }
        let inbox = self.inbox.clone();
        let to_all = move |name: &str, setting| {
            inbox.push(Command::EachParam(name.to_owned(), setting));
        };
        let key = format!("all.params.{}", info.name);
        if let Some(parameter) = parameter(&self.node, key, info.clone(), to_all) {
            self.all.insert(info.name.clone(), parameter);
        }
    }

    fn set(&self, robot: &str, name: &str, value: Value) {
        let declared = self.robots.get(robot).and_then(|known| known.get(name));
        let Some(parameter) = declared else { return };
        if let Err(error) = parameter.set(to_ros(value)) {
            tracing::warn!(robot, "parameter {name}: {error}");
        }
    }
}

fn sorted(infos: &[ParamInfo]) -> impl Iterator<Item = &String> {
    let mut names: Vec<&String> = infos.iter().map(|info| &info.name).collect();
    names.sort();
    names.into_iter()
}

fn parameter(
    node: &Node,
    key: String,
    info: ParamInfo,
    write: impl Fn(&str, ParamSetting) + Send + Sync + 'static,
) -> Option<Declared> {
    let (name, description) = (info.name.clone(), describe(&info));
    let check = move |value: &ParameterValue| {
        if FROM_DRONE.get() {
            return Ok(());
        }
        from_ros(&info, value).and_then(|setting| info.check(setting))
    };
    let builder = node.declare_parameter::<ParameterValue>(key.clone());
    let builder = builder.validate(check).description(description);
    let parameter = builder
        .optional()
        .inspect_err(|error| tracing::warn!("cannot declare parameter {key}: {error}"))
        .ok()?;
    parameter.on_change(move |value| {
        let setting = value.and_then(setting);
        if let Some(setting) = setting.filter(|_| !FROM_DRONE.get()) {
            write(&name, setting);
        }
    });
    Some(parameter)
}

fn describe(info: &ParamInfo) -> String {
    let access = if info.read_only { ", read-only" } else { "" };
    format!("firmware parameter, {}{access}", info.kind.name())
}

/// The number in a ROS value, or why there is none, naming the parameter.
fn from_ros(info: &ParamInfo, value: &ParameterValue) -> Result<ParamSetting, String> {
    setting(value).ok_or_else(|| {
        format!(
            "parameter {} is {}, allowed: a number ({})",
            info.name,
            shown(value),
            info.kind.name()
        )
    })
}

fn shown(value: &ParameterValue) -> String {
    match value {
        ParameterValue::String(text) => format!("{text:?}, a text"),
        other => format!("{other:?}"),
    }
}

fn setting(value: &ParameterValue) -> Option<ParamSetting> {
    match value {
        ParameterValue::Bool(flag) => Some(ParamSetting::Flag(*flag)),
        ParameterValue::Integer(whole) => Some(ParamSetting::Whole(*whole)),
        ParameterValue::Double(float) => Some(ParamSetting::Float(*float)),
        _ => None,
    }
}

fn to_ros(value: Value) -> ParameterValue {
    match value.to_i64() {
        Some(whole) => ParameterValue::Integer(whole),
        None => ParameterValue::Double(value.to_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(kind: crtp::Kind) -> ParamInfo {
        let name = "group.name".to_owned();
        ParamInfo {
            name,
            kind,
            read_only: false,
        }
    }

    #[test]
    fn whole_numbers_are_good_for_floats_and_texts_for_nothing() {
        let info = info(crtp::Kind::F32);
        let whole = from_ros(&info, &ParameterValue::Integer(50)).unwrap();
        assert_eq!(info.check(whole), Ok(()));
        let text = ParameterValue::String("50".into());
        let why = from_ros(&info, &text).unwrap_err();
        assert!(why.contains("group.name is \"50\", a text"), "{why}");
    }

    #[test]
    fn values_keep_their_kind() {
        assert_eq!(to_ros(Value::U8(7)), ParameterValue::Integer(7));
        assert_eq!(to_ros(Value::F32(0.5)), ParameterValue::Double(0.5));
    }
}
