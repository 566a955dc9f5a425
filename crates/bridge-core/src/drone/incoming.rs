//! What the client of a robot has to say, told on in the robot's own words.

use std::time::Instant;

use super::{Drone, DroneEvent, topics};

impl Drone {
    pub(super) fn handle_client_event(&mut self, now: Instant, event: crtp_client::Event) {
        use crtp_client::Event;
        match event {
            Event::Connected { version, .. } => self.handle_connected(now, version),
            Event::Disconnected { reason, .. } => self.handle_disconnected(now, reason.to_string()),
            Event::LogStarted {
                handle,
                missing,
                blocks,
                ..
            } => self.handle_log_started(now, handle, &missing, blocks),
            Event::LogFailed { handle, error } => self.disable(handle, error.to_string()),
            Event::Console(line) => self.report(DroneEvent::Console(line)),
            Event::Reply { request, outcome } => self.handle_reply(now, request, outcome),
            Event::Latency(round_trip) => {
                self.health.round_trip = Some(round_trip);
                self.link_health.handle_answer(now, round_trip);
            }
            Event::ParamWritten {
                request,
                name,
                outcome,
            } => self.handle_param_written(request, name, outcome),
            Event::ParamValue { name, value } => self.report(DroneEvent::Param { name, value }),
            Event::Notice(text) => self.report(DroneEvent::Notice(text)),
            Event::ParamsComplete | Event::ParamRead { .. } | Event::App(_) => {}
        }
    }

    fn handle_connected(&mut self, now: Instant, version: crtp::ProtocolVersion) {
        self.link_health.handle_connected();
        self.report(DroneEvent::Connected(version));
        self.report_params();
        for error in self.logs.start(now, &mut self.client) {
            self.report(DroneEvent::TopicDisabled {
                topic: error.0,
                why: error.1,
            });
        }
        for (name, setting) in std::mem::take(&mut self.params) {
            if let Err(error) = self.client.write_param(now, &name, topics::number(setting)) {
                self.report(DroneEvent::Notice(error.to_string()));
            }
        }
    }

    fn handle_disconnected(&mut self, now: Instant, why: String) {
        self.link_health.handle_disconnected(now);
        for (topic, ticket) in self.logs.take_asked() {
            let outcome = Err(format!("topic {topic}: the connection ended"));
            self.report(DroneEvent::Reply { ticket, outcome });
        }
        self.report(DroneEvent::Disconnected(why));
    }

    /// A topic is worth nothing without one of its variables.
    fn handle_log_started(
        &mut self,
        now: Instant,
        handle: crtp_client::LogHandle,
        missing: &[String],
        blocks: usize,
    ) {
        if !missing.is_empty() {
            self.client.remove_log(now, handle);
            let why = format!("the drone has no log variable {}", missing.join(", "));
            return self.disable(handle, why);
        }
        let Some(settled) = self.logs.settle(handle, true) else {
            return;
        };
        if blocks > 1 && settled.custom {
            let (topic, most) = (settled.topic, crtp_client::MAX_BLOCK);
            self.report(DroneEvent::Notice(format!(
                "topic {topic}: more than {most} bytes, split over {blocks} log blocks"
            )));
        }
        if let Some(ticket) = settled.asked {
            let outcome = Ok(());
            self.report(DroneEvent::Reply { ticket, outcome });
        }
    }

    fn disable(&mut self, handle: crtp_client::LogHandle, why: String) {
        let Some(settled) = self.logs.settle(handle, false) else {
            return;
        };
        match settled.asked {
            Some(ticket) => {
                let outcome = Err(format!("topic {}: {why}", settled.topic));
                self.report(DroneEvent::Reply { ticket, outcome });
            }
            None => self.report(DroneEvent::TopicDisabled {
                topic: settled.topic,
                why,
            }),
        }
    }

    fn handle_param_written(
        &mut self,
        request: Option<crtp_client::RequestId>,
        name: String,
        outcome: Result<crtp::Value, crtp_client::RequestError>,
    ) {
        let ticket = request.and_then(|id| self.answers.take(id));
        let outcome = match outcome {
            Ok(value) => {
                self.report(DroneEvent::Param { name, value });
                Ok(())
            }
            Err(error) => {
                let why = format!("parameter {name}: {error}");
                let value = self.client.param(&name);
                let event = DroneEvent::ParamRefused {
                    name,
                    value,
                    why: why.clone(),
                };
                self.report(event);
                Err(why)
            }
        };
        if let Some(ticket) = ticket {
            self.report(DroneEvent::Reply { ticket, outcome });
        }
    }

    fn handle_reply(
        &mut self,
        now: Instant,
        id: crtp_client::RequestId,
        outcome: Result<crtp_client::Reply, crtp_client::RequestError>,
    ) {
        if let Ok(crtp_client::Reply::SupervisorInfo(info)) = &outcome {
            self.note_supervisor(*info);
        }
        if self.answers.needs_reason(id, &outcome) {
            let info = self
                .client
                .request(now, crtp_client::Request::SupervisorInfo);
            if let Ok(info) = info {
                return self.answers.explain_with(id, info);
            }
        }
        if let Some((ticket, outcome)) = self.answers.settle(id, &outcome, self.supervisor) {
            self.report(DroneEvent::Reply { ticket, outcome });
        }
    }
}
