//! What the owner of a client can ask for: logs, parameters, commands, memories.

use std::time::Instant;

use crtp::high_level;

use super::{Client, State};
use crate::core::Core;
use crate::event::{RequestError, RequestId};
use crate::log::{LogConfig, LogError, LogHandle};
use crate::param::{Number, ParamError};
use crate::request::{Request, no_such_memory};

impl Client {
    /// Wants a log: it is started now, or as soon as there is a connection, and again after each reconnection.
    ///
    /// # Errors
    /// [`LogError`] if it can never be started, or not on the drone that is connected; it is not wanted then.
    pub fn add_log(&mut self, now: Instant, config: LogConfig) -> Result<LogHandle, LogError> {
        let table = match &self.state {
            State::Connected(connected) => Some(&connected.found.log),
            State::Idle | State::Waiting { .. } | State::Connecting(_) => None,
        };
        let handle = self.logs.add(&mut core!(self, now), config, table)?;
        self.flush(now);
        Ok(handle)
    }

    /// No longer wants a log. Does nothing if it is gone already.
    pub fn remove_log(&mut self, now: Instant, handle: LogHandle) {
        self.logs.remove(&mut core!(self, now), handle);
        self.flush(now);
    }

    /// Asks for a parameter's value; answered by [`crate::Event::ParamRead`].
    ///
    /// # Errors
    /// [`ParamError`] naming the parameter.
    pub fn read_param(&mut self, now: Instant, name: &str) -> Result<RequestId, ParamError> {
        let State::Connected(connected) = &self.state else {
            return Err(not_connected(name));
        };
        let request = self.requests.new_id();
        let table = &connected.found.param;
        self.params
            .read(&mut core!(self, now), table, name, request)?;
        self.flush(now);
        Ok(request)
    }

    /// Writes a parameter; answered by [`crate::Event::ParamWritten`]. The value is restored after reconnections.
    ///
    /// # Errors
    /// [`ParamError`] naming the parameter and what it takes; nothing is sent then.
    pub fn write_param(
        &mut self,
        now: Instant,
        name: &str,
        number: impl Into<Number>,
    ) -> Result<RequestId, ParamError> {
        let State::Connected(connected) = &self.state else {
            return Err(not_connected(name));
        };
        let request = self.requests.new_id();
        let (table, number) = (&connected.found.param, number.into());
        self.params
            .write(&mut core!(self, now), table, name, number, request)?;
        self.flush(now);
        Ok(request)
    }

    /// Sends a command; answered by [`crate::Event::Reply`].
    ///
    /// # Errors
    /// [`RequestError`] if the drone's version has no such command or a value is no number.
    pub fn request(&mut self, now: Instant, request: Request) -> Result<RequestId, RequestError> {
        let version = self.version().ok_or(RequestError::NotConnected)?;
        let id = self.requests.ask(&mut core!(self, now), version, request)?;
        self.flush(now);
        Ok(id)
    }

    /// Reads bytes of a memory; answered by [`crate::Event::Reply`].
    ///
    /// # Errors
    /// [`RequestError`] if not connected or if the drone has no such memory.
    pub fn read_memory(
        &mut self,
        now: Instant,
        memory: u8,
        address: u32,
        length: usize,
    ) -> Result<RequestId, RequestError> {
        self.check_memory(memory)?;
        let core = &mut core!(self, now);
        let id = self.requests.read_memory(core, memory, address, length);
        self.flush(now);
        Ok(id)
    }

    /// Writes bytes of a memory and, if a command is given, sends that when they are written; answered by one
    /// [`crate::Event::Reply`]. A trajectory is uploaded by writing it and then defining it.
    ///
    /// # Errors
    /// [`RequestError`] if not connected or if the drone has no such memory.
    pub fn write_memory(
        &mut self,
        now: Instant,
        memory: u8,
        address: u32,
        data: Vec<u8>,
        define: Option<high_level::DefineTrajectory>,
    ) -> Result<RequestId, RequestError> {
        self.check_memory(memory)?;
        let define = define.map(high_level::Command::DefineTrajectory);
        let core = &mut core!(self, now);
        let id = self
            .requests
            .write_memory(core, memory, address, data, define);
        self.flush(now);
        Ok(id)
    }

    fn check_memory(&self, memory: u8) -> Result<(), RequestError> {
        let found = self.found().ok_or(RequestError::NotConnected)?;
        if found.memories.iter().any(|details| details.id == memory) {
            Ok(())
        } else {
            Err(no_such_memory())
        }
    }
}

fn not_connected(name: &str) -> ParamError {
    ParamError::NotConnected {
        name: name.to_owned(),
    }
}
