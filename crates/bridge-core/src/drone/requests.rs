//! What a user may ask of one robot besides flight commands: topics, parameters, trajectories.

use std::time::{Duration, Instant};

use crtp::param::Meta;
use crtp::trajectory::Piece;
use crtp::{high_level, memory};

use super::event::{DroneEvent, ParamInfo, Ticket};
use super::{Drone, topics};
use crate::command::Trajectory;
use crate::fleet::ParamSetting;
use crate::policy;
use crate::units::CommandError;

impl Drone {
    /// Writes a firmware parameter, by `group.name`. The outcome comes as [`DroneEvent::Reply`], the value as
    /// [`DroneEvent::Param`] or [`DroneEvent::ParamRefused`].
    ///
    /// # Errors
    /// [`CommandError`] naming the parameter and what it takes; nothing is sent then.
    pub fn write_param(
        &mut self,
        now: Instant,
        name: &str,
        setting: ParamSetting,
    ) -> Result<Ticket, CommandError> {
        let number = topics::number(setting);
        let id = self.client.write_param(now, name, number)?;
        Ok(self.answers.expect(id))
    }

    /// The last known value of a firmware parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<crtp::Value> {
        self.client.param(name)
    }

    /// Adds a topic with the period and variables of [`crate::fleet::late_topic`]. Whether its log runs comes as
    /// [`DroneEvent::Reply`]; it lasts over reconnections.
    ///
    /// # Errors
    /// [`CommandError`] if the topic is there already or can never be logged on this drone.
    pub fn add_topic(
        &mut self,
        now: Instant,
        topic: &str,
        log: (Duration, Vec<String>),
    ) -> Result<Ticket, CommandError> {
        if !self.client.is_connected() {
            return Err(CommandError::NotConnected);
        }
        if self.logs.has(topic) {
            return Err(CommandError::TopicExists(topic.to_owned()));
        }
        let ticket = self.answers.ticket();
        self.logs
            .insert(now, &mut self.client, topic, log, ticket)?;
        Ok(ticket)
    }

    /// Takes a topic away and stops its log.
    ///
    /// # Errors
    /// [`CommandError::NoTopic`].
    pub fn remove_topic(&mut self, now: Instant, topic: &str) -> Result<(), CommandError> {
        let removed = self.logs.remove(topic);
        let (handle, asked) = removed.ok_or_else(|| CommandError::NoTopic(topic.to_owned()))?;
        if let Some(handle) = handle {
            self.client.remove_log(now, handle);
        }
        if let Some(ticket) = asked {
            let outcome = Err(format!("topic {topic} was removed"));
            self.report(DroneEvent::Reply { ticket, outcome });
        }
        Ok(())
    }

    /// Writes a trajectory into the drone's memory and gives it its name. The outcome comes as
    /// [`DroneEvent::Reply`].
    ///
    /// # Errors
    /// [`CommandError`]; nothing is sent then.
    pub fn upload_trajectory(
        &mut self,
        now: Instant,
        trajectory: &Trajectory,
    ) -> Result<Ticket, CommandError> {
        if !self.client.is_connected() {
            return Err(CommandError::NotConnected);
        }
        let memories = self.client.memories().iter();
        let place = memories
            .copied()
            .find(|memory| memory.kind == memory::Kind::TRAJECTORY)
            .ok_or(CommandError::NoTrajectoryMemory)?;
        let define = definition(trajectory, place.size)?;
        let mut bytes = Vec::with_capacity(trajectory.pieces.len() * Piece::SIZE);
        for piece in &trajectory.pieces {
            piece.append_to(&mut bytes)?;
        }
        let id = self
            .client
            .write_memory(now, place.id, define.offset, bytes, Some(define))?;
        Ok(self.answers.expect(id))
    }

    /// An emergency stop must leave even if nothing is known about the drone yet.
    pub(super) fn stop_unconnected(&mut self, now: Instant) -> Result<Ticket, CommandError> {
        if let Ok(packet) = policy::emergency() {
            self.queue(now, packet, None);
        }
        Err(CommandError::Unconfirmed)
    }

    pub(super) fn report_params(&mut self) {
        let Some(table) = self.client.param_table() else {
            return;
        };
        let infos = table.entries().iter().filter_map(|entry| {
            let meta = Meta::from_byte(entry.kind)?;
            Some(ParamInfo {
                name: entry.name.clone(),
                kind: meta.kind,
                read_only: meta.read_only,
            })
        });
        let infos = infos.collect();
        self.report(DroneEvent::Params(infos));
    }
}

fn definition(
    trajectory: &Trajectory,
    memory_size: u32,
) -> Result<high_level::DefineTrajectory, CommandError> {
    let (id, offset, pieces) = (
        trajectory.id,
        trajectory.piece_offset,
        trajectory.pieces.len(),
    );
    let room = memory_size / Piece::SIZE as u32;
    let fits = u64::from(offset) + pieces as u64 <= u64::from(room);
    let count = u8::try_from(pieces).ok().filter(|count| fits && *count > 0);
    let pieces_now = count.ok_or(CommandError::TrajectorySize {
        id,
        pieces,
        offset,
        room,
    })?;
    Ok(high_level::DefineTrajectory {
        trajectory_id: id,
        location: 1,
        kind: 0,
        offset: offset * Piece::SIZE as u32,
        pieces: pieces_now,
    })
}
