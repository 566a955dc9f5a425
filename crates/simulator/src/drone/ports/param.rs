//! Port 2: table, read, write and everything else about parameters, and what a changed value does.

use crtp::{Channel, Packet, Port, Status, Value};

use crate::drone::Drone;
use crate::drone::parameters::{Parameter, text};
use crate::record::Hazard;

/// Extended type of a persistent parameter.
const PERSISTENT: u8 = 1;

impl Drone {
    pub(super) fn param(&mut self, packet: &Packet) {
        match packet.channel() {
            Channel::C0 => match self.param_table.answer(packet.data()) {
                Some(answer) => self.send(answer),
                None => self.traffic.ignored += 1,
            },
            Channel::C1 => self.param_read(packet),
            Channel::C2 => self.param_write(packet),
            _ => self.param_misc(packet),
        }
    }

    fn param_read(&mut self, packet: &Packet) {
        let &[low, high, ..] = packet.data() else {
            self.hazard(Hazard::WrongLength, packet);
            return;
        };
        match self.parameters.get(u16::from_le_bytes([low, high])) {
            Some(parameter) => {
                let value = parameter.value;
                self.answer_with(packet, &[low, high, 0], Some(value));
            }
            None => self.answer(packet, &[low, high, Status::NOT_FOUND.0]),
        }
    }

    /// Echoed without a status; a read-only parameter is not answered at all.
    fn param_write(&mut self, packet: &Packet) {
        let &[low, high, ref bytes @ ..] = packet.data() else {
            self.hazard(Hazard::WrongLength, packet);
            return;
        };
        let id = u16::from_le_bytes([low, high]);
        let Some(parameter) = self.parameters.get_mut(id) else {
            self.answer(packet, &[low, high, Status::NOT_FOUND.0]);
            return;
        };
        if parameter.is_read_only() {
            return;
        }
        let Some((value, _)) = Value::take(parameter.value.kind(), bytes) else {
            self.hazard(Hazard::WrongLength, packet);
            return;
        };
        parameter.value = value;
        self.send(*packet);
        self.parameter_changed(id);
    }

    fn param_misc(&mut self, packet: &Packet) {
        match *packet.data() {
            [0, ref rest @ ..] => self.param_by_name(packet, rest),
            [command @ 2..=8, low, high, ..] => self.param_by_id(packet, [command, low, high]),
            [] | [2..=8, ..] => self.hazard(Hazard::WrongLength, packet),
            _ => self.traffic.ignored += 1,
        }
    }

    fn param_by_name(&mut self, packet: &Packet, mut rest: &[u8]) {
        let names = rest;
        let (Some(group), Some(name), [kind, value @ ..]) =
            (text(&mut rest), text(&mut rest), rest)
        else {
            self.hazard(Hazard::WrongLength, packet);
            return;
        };
        let (status, id) = self.parameters.set_by_name(group, name, *kind, value);
        let length = group.len() + name.len() + 2;
        let mut data = [0; crtp::MAX_DATA];
        data[1..=length].copy_from_slice(&names[..length]);
        data[length + 1] = status.0;
        self.answer(packet, &data[..length + 2]);
        if let Some(id) = id {
            self.parameter_changed(id);
        }
    }

    fn param_by_id(&mut self, packet: &Packet, head: [u8; 3]) {
        let [command, low, high] = head;
        let Some(parameter) = self.parameters.get_mut(u16::from_le_bytes([low, high])) else {
            self.answer(packet, &[command, low, high, Status::NOT_FOUND.0]);
            return;
        };
        match persistent_answer(command, parameter) {
            Answer::Bytes(bytes) => {
                let mut data = head.to_vec();
                data.extend(bytes);
                self.answer(packet, &data);
            }
            Answer::Value(status, value) => {
                let mut data = head.to_vec();
                data.extend(status.map(|status| status.0));
                self.answer_with(packet, &data, value);
            }
        }
    }

    fn answer_with(&mut self, packet: &Packet, head: &[u8], value: Option<Value>) {
        let mut data = head.to_vec();
        if let Some(value) = value {
            data.extend(value.to_bytes());
        }
        self.answer(packet, &data);
    }

    /// What a new value does on board.
    fn parameter_changed(&mut self, id: u16) {
        let Some(parameter) = self.parameters.get(id) else {
            return;
        };
        let on = parameter.value.to_f64() != 0.0;
        match (parameter.name.group.as_str(), parameter.name.name.as_str()) {
            ("stabilizer", "stop") if on => self.flight.supervisor.stop(),
            ("hlCommander", "groupmask") => {
                let mask = parameter.value.to_f64() as u8;
                self.flight.commander.planner.set_group_mask(mask);
            }
            ("kalman", "resetEstimation") if on => self.reset_by_itself(id),
            ("system", "taskDump") if on => {
                self.say("SYSLOAD: Task dump\nSYSLOAD: a simulated drone has no tasks\n");
                self.reset_by_itself(id);
            }
            ("supervisor", "infdmp") if on => {
                let state = self.flight.supervisor.state();
                self.say(&format!("SUP: state {state:?}\n"));
                self.reset_by_itself(id);
            }
            _ => {}
        }
    }

    /// Triggers go back to 0 once they have acted, and the client is told.
    fn reset_by_itself(&mut self, id: u16) {
        if let Some(parameter) = self.parameters.get_mut(id) {
            parameter.value = Value::U8(0);
        }
        self.announce(id, Value::U8(0));
    }

    /// Value-updated, unsolicited.
    pub(in crate::drone) fn announce(&mut self, id: u16, value: Value) {
        let [low, high] = id.to_le_bytes();
        let mut data = vec![1, low, high];
        data.extend(value.to_bytes());
        self.reply(Port::PARAM, Channel::C3, &data);
    }
}

enum Answer {
    Bytes(Vec<u8>),
    Value(Option<Status>, Option<Value>),
}

/// Everything that is asked by id; what changes is what is stored.
fn persistent_answer(command: u8, parameter: &mut Parameter) -> Answer {
    let persistent = parameter.is_persistent();
    match command {
        2 if persistent => Answer::Bytes(vec![PERSISTENT]),
        7 if persistent => Answer::Bytes(vec![0, PERSISTENT]),
        3 if persistent => {
            parameter.store();
            Answer::Bytes(vec![Status::OK.0])
        }
        5 if persistent => {
            parameter.clear();
            Answer::Bytes(vec![Status::OK.0])
        }
        4 => state(parameter),
        6 => match parameter.default_value() {
            Some(value) => Answer::Value(None, Some(value)),
            None => Answer::Value(Some(Status::NOT_FOUND), None),
        },
        8 => match parameter.default_value() {
            Some(value) => Answer::Value(Some(Status::OK), Some(value)),
            None => Answer::Value(Some(Status::NOT_FOUND), None),
        },
        _ => Answer::Bytes(vec![Status::NOT_FOUND.0]),
    }
}

/// Whether a value is stored, the default, and the stored value.
fn state(parameter: &Parameter) -> Answer {
    let Some(default) = parameter.default_value() else {
        return Answer::Bytes(vec![Status::NOT_FOUND.0]);
    };
    let mut bytes = vec![u8::from(parameter.stored().is_some())];
    bytes.extend(default.to_bytes());
    bytes.extend(
        parameter
            .stored()
            .into_iter()
            .flat_map(|value| value.to_bytes()),
    );
    Answer::Bytes(bytes)
}
