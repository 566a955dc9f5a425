//! Parameters of one drone: values read and written by name, checked against the table before anything is
//! sent. What was written is kept and written again after a reconnection.

use std::collections::BTreeMap;

use crtp::param::{Meta, MiscReply, Read, ReadReply, Write};
use crtp::{Kind, Packet, Port, Value};

use crate::core::{Core, Outcome, Purpose};
use crate::event::{Event, RequestError, RequestId};
use crate::table::Table;

/// Most requests that may wait.
const MAX_WAITING: usize = 1024;

/// A number to be written; it becomes the parameter's own type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Fits float parameters, too.
    Integer(i64),
    /// Fits integer parameters if it is whole.
    Float(f64),
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

/// Why a parameter was not even asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// There is no table yet.
    #[error("parameter {name}: not connected")]
    NotConnected {
        /// `group.name`.
        name: String,
    },
    /// The drone does not have it.
    #[error("parameter {name}: the drone has no such parameter")]
    Unknown {
        /// `group.name`.
        name: String,
    },
    /// The drone does not even answer writes to it.
    #[error("parameter {name}: read-only")]
    ReadOnly {
        /// `group.name`.
        name: String,
    },
    /// Its type is unknown here.
    #[error("parameter {name}: of unknown type {kind:#04x}")]
    Kind {
        /// `group.name`.
        name: String,
        /// The type byte.
        kind: u8,
    },
    /// The number does not fit an integer type.
    #[error("parameter {name}: must be a whole number from {min} to {max} ({}), got {value}", kind.name())]
    Range {
        /// `group.name`.
        name: String,
        /// Its type.
        kind: Kind,
        /// The number.
        value: f64,
        /// Smallest.
        min: i128,
        /// Largest.
        max: i128,
    },
    /// The number does not fit a float type.
    #[error("parameter {name}: must be a finite {}, got {value}", kind.name())]
    NotFinite {
        /// `group.name`.
        name: String,
        /// Its type.
        kind: Kind,
        /// The number.
        value: f64,
    },
    /// Too many requests wait already.
    #[error("parameter {name}: too many requests are waiting")]
    Busy {
        /// `group.name`.
        name: String,
    },
}

/// What is being done to a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParamStep {
    /// For the owner, or one of all.
    Read { id: u16, request: Option<RequestId> },
    /// For the owner, or a restored value.
    Write {
        id: u16,
        value: Value,
        request: Option<RequestId>,
    },
}

impl ParamStep {
    /// Answers to writes have no status. An echo of another value is of an earlier write; a short answer, or
    /// one byte where the value has more, is an error.
    pub(crate) fn accepts(&self, packet: &Packet) -> bool {
        let Self::Write { value, .. } = self else {
            return true;
        };
        let (echo, written) = (packet.data().get(2..).unwrap_or(&[]), value.to_bytes());
        echo == written.as_slice() || echo.is_empty() || (echo.len() == 1 && written.len() > 1)
    }
}

/// Parameters of one drone.
#[derive(Default)]
pub(crate) struct Params {
    values: BTreeMap<u16, Value>,
    written: BTreeMap<String, Value>,
}

impl Params {
    pub(crate) fn value(&self, id: u16) -> Option<Value> {
        self.values.get(&id).copied()
    }

    pub(crate) fn read(
        &self,
        core: &mut Core<'_>,
        table: &Table,
        name: &str,
        request: RequestId,
    ) -> Result<(), ParamError> {
        let (id, _) = find(table, name)?;
        check_room(core, name)?;
        ask_read(core, id, Some(request));
        Ok(())
    }

    pub(crate) fn write(
        &self,
        core: &mut Core<'_>,
        table: &Table,
        name: &str,
        number: Number,
        request: RequestId,
    ) -> Result<(), ParamError> {
        let (id, meta) = find(table, name)?;
        let value = value_of(name, meta, number)?;
        check_room(core, name)?;
        ask_write(core, id, value, Some(request));
        Ok(())
    }

    /// Writes again what was written, and reads all if that is wanted.
    pub(crate) fn on_connected(&mut self, core: &mut Core<'_>, table: &Table) {
        self.values.clear();
        for (name, &value) in &self.written {
            match find(table, name) {
                Ok((id, meta)) if meta.kind == value.kind() => ask_write(core, id, value, None),
                Ok(_) => core.notice(format!(
                    "parameter {name}: its type has changed, its value {value} is not restored"
                )),
                Err(error) => core.notice(error.to_string()),
            }
        }
        if core.config.read_all_params {
            self.read_next(core, table, 0);
        }
    }

    /// Reads one after the other, so that the owner's requests come in between.
    fn read_next(&self, core: &mut Core<'_>, table: &Table, id: u16) {
        if usize::from(id) < table.len() {
            ask_read(core, id, None);
        } else {
            core.event(Event::ParamsComplete);
        }
    }

    pub(crate) fn on_outcome(
        &mut self,
        core: &mut Core<'_>,
        table: &Table,
        step: ParamStep,
        outcome: Outcome<'_>,
    ) {
        match step {
            ParamStep::Read { id, request } => {
                let outcome = read_outcome(table, id, outcome);
                self.on_read(core, table, id, request, outcome);
            }
            ParamStep::Write { id, value, request } => {
                let name = name_of(table, id);
                let outcome = write_outcome(value, outcome);
                if outcome.is_ok() {
                    self.values.insert(id, value);
                    self.written.insert(name.clone(), value);
                }
                core.event(Event::ParamWritten {
                    request,
                    name,
                    outcome,
                });
            }
        }
    }

    fn on_read(
        &mut self,
        core: &mut Core<'_>,
        table: &Table,
        id: u16,
        request: Option<RequestId>,
        outcome: Result<Value, RequestError>,
    ) {
        if let Ok(value) = outcome {
            self.values.insert(id, value);
        }
        let name = name_of(table, id);
        match (request, outcome) {
            (Some(request), outcome) => {
                core.event(Event::ParamRead {
                    request,
                    name,
                    outcome,
                });
                return;
            }
            (None, Ok(value)) => core.event(Event::ParamValue { name, value }),
            (None, Err(error)) => core.notice(format!("parameter {name}: {error}")),
        }
        self.read_next(core, table, id + 1);
    }

    /// The drone has changed a value by itself.
    pub(crate) fn on_updated(&mut self, core: &mut Core<'_>, table: &Table, packet: &Packet) {
        let Ok(MiscReply::Updated { id, value }) = MiscReply::parse(packet) else {
            core.stats.malformed += 1;
            return;
        };
        match meta_of(table, id).and_then(|meta| Value::take(meta.kind, &value)) {
            Some((value, [])) => {
                self.values.insert(id, value);
                let name = name_of(table, id);
                core.event(Event::ParamValue { name, value });
            }
            _ => core.stats.malformed += 1,
        }
    }
}

/// The connection ended before an answer came.
pub(crate) fn fail(core: &mut Core<'_>, table: Option<&Table>, step: ParamStep) {
    let name = |id| table.map_or_else(String::new, |table| name_of(table, id));
    let error = RequestError::NotConnected;
    match step {
        ParamStep::Read {
            id,
            request: Some(request),
        } => core.event(Event::ParamRead {
            request,
            name: name(id),
            outcome: Err(error),
        }),
        ParamStep::Write {
            id,
            request: Some(request),
            ..
        } => core.event(Event::ParamWritten {
            request: Some(request),
            name: name(id),
            outcome: Err(error),
        }),
        ParamStep::Read { request: None, .. } | ParamStep::Write { request: None, .. } => {}
    }
}

fn meta_of(table: &Table, id: u16) -> Option<Meta> {
    Meta::from_byte(table.get(id)?.kind)
}

fn name_of(table: &Table, id: u16) -> String {
    table.get(id).map_or_else(String::new, |e| e.name.clone())
}

fn find(table: &Table, name: &str) -> Result<(u16, Meta), ParamError> {
    let name = || name.to_owned();
    let Some((id, entry)) = table.find(&name()) else {
        return Err(ParamError::Unknown { name: name() });
    };
    match Meta::from_byte(entry.kind) {
        Some(meta) => Ok((id, meta)),
        None => Err(ParamError::Kind {
            name: name(),
            kind: entry.kind,
        }),
    }
}

fn value_of(name: &str, meta: Meta, number: Number) -> Result<Value, ParamError> {
    let name = name.to_owned();
    if meta.read_only {
        return Err(ParamError::ReadOnly { name });
    }
    let kind = meta.kind;
    let (made, value) = match number {
        Number::Integer(value) => (Value::from_integer(kind, value), value as f64),
        Number::Float(value) => (Value::from_float(kind, value), value),
    };
    made.ok_or_else(|| match kind.range() {
        Some((min, max)) => ParamError::Range {
            name,
            kind,
            value,
            min,
            max,
        },
        None => ParamError::NotFinite { name, kind, value },
    })
}

fn check_room(core: &Core<'_>, name: &str) -> Result<(), ParamError> {
    if core.lanes.backlog(Port::PARAM) < MAX_WAITING {
        return Ok(());
    }
    Err(ParamError::Busy {
        name: name.to_owned(),
    })
}

fn ask_read(core: &mut Core<'_>, id: u16, request: Option<RequestId>) {
    let purpose = Purpose::Param(ParamStep::Read { id, request });
    core.ask(Read { id }.encode(), 2, purpose);
}

fn ask_write(core: &mut Core<'_>, id: u16, value: Value, request: Option<RequestId>) {
    let purpose = Purpose::Param(ParamStep::Write { id, value, request });
    core.ask(Write { id, value }.encode(), 2, purpose);
}

fn read_outcome(table: &Table, id: u16, outcome: Outcome<'_>) -> Result<Value, RequestError> {
    let Outcome::Answer(packet) = outcome else {
        return Err(RequestError::TimedOut);
    };
    let size = meta_of(table, id).map_or(0, |meta| meta.kind.size());
    let truncated = RequestError::Truncated {
        got: packet.data().len(),
        expected: 3 + size,
    };
    let Ok(reply) = ReadReply::parse(packet) else {
        return Err(truncated);
    };
    let bytes = reply.value.map_err(RequestError::Refused)?;
    match meta_of(table, id).and_then(|meta| Value::take(meta.kind, &bytes)) {
        Some((value, [])) => Ok(value),
        _ => Err(truncated),
    }
}

fn write_outcome(value: Value, outcome: Outcome<'_>) -> Result<Value, RequestError> {
    let Outcome::Answer(packet) = outcome else {
        return Err(RequestError::TimedOut);
    };
    match packet.data().get(2..) {
        Some(echo) if echo == value.to_bytes().as_slice() => Ok(value),
        Some(&[status]) => Err(RequestError::Refused(crtp::Status(status))),
        _ => Err(RequestError::Truncated {
            got: packet.data().len(),
            expected: 2 + value.kind().size(),
        }),
    }
}
