//! Requests that wait for their answer, and answers in words.
//!
//! The drone refuses with a bare number; the supervisor's state, asked for right after, says why.

use std::collections::BTreeMap;

use crtp::{Status, supervisor};
use crtp_client::{Reply, RequestError, RequestId};

use super::event::Ticket;

/// What a request came to, as the client has it.
type Answer = Result<Reply, RequestError>;

/// Requests under way.
#[derive(Debug, Default)]
pub(super) struct Answers {
    next: u64,
    waiting: BTreeMap<RequestId, Ticket>,
    /// Refused requests that wait for the supervisor's state, by the question for it.
    explained_by: BTreeMap<RequestId, RequestId>,
}

impl Answers {
    /// A ticket for something that is done at once.
    pub(super) fn ticket(&mut self) -> Ticket {
        self.next += 1;
        Ticket(self.next)
    }

    /// A ticket for a request of the client.
    pub(super) fn expect(&mut self, id: RequestId) -> Ticket {
        let ticket = self.ticket();
        self.waiting.insert(id, ticket);
        ticket
    }

    /// Whether the drone refused for a reason that its supervisor knows.
    pub(super) fn needs_reason(&self, id: RequestId, answer: &Answer) -> bool {
        self.waiting.contains_key(&id) && is_not_flyable(answer)
    }

    /// The answer to `info` will say why `id` was refused.
    pub(super) fn explain_with(&mut self, id: RequestId, info: RequestId) {
        self.explained_by.insert(info, id);
    }

    /// Who waits for a parameter that has been written or not.
    pub(super) fn take(&mut self, id: RequestId) -> Option<Ticket> {
        self.waiting.remove(&id)
    }

    /// The outcome that `answer` decides, if it decides one.
    pub(super) fn settle(
        &mut self,
        id: RequestId,
        answer: &Answer,
        supervisor: Option<supervisor::Info>,
    ) -> Option<(Ticket, Result<(), String>)> {
        if let Some(refused) = self.explained_by.remove(&id) {
            let ticket = self.waiting.remove(&refused)?;
            return Some((ticket, Err(refusal(supervisor))));
        }
        let ticket = self.waiting.remove(&id)?;
        let outcome = if is_not_flyable(answer) {
            Err(refusal(supervisor))
        } else {
            in_words(answer)
        };
        Some((ticket, outcome))
    }
}

fn is_not_flyable(answer: &Answer) -> bool {
    match answer {
        Ok(Reply::HighLevel(reply)) => reply.status == Status::BUSY,
        Ok(Reply::Supervisor(supervisor::CommandReply::Arm { success, .. })) => !success,
        Err(RequestError::Refused(status)) => *status == Status::BUSY,
        Ok(_) | Err(_) => false,
    }
}

fn refusal(supervisor: Option<supervisor::Info>) -> String {
    let reason = supervisor.and_then(supervisor::Info::refusal);
    reason
        .unwrap_or("the drone's supervisor does not allow it now")
        .to_owned()
}

fn in_words(answer: &Answer) -> Result<(), String> {
    match answer {
        Ok(Reply::HighLevel(reply)) if !reply.status.is_ok() => {
            Err(reply.status.reason().to_owned())
        }
        Ok(Reply::Supervisor(supervisor::CommandReply::Recover { success: false, .. })) => {
            Err("the drone did not recover".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
