//! One target among its kinds, and the doors through which senders reach it.

use std::time::Duration;

#[cfg(test)]
use super::super::tests::ScriptedTarget;
use super::{
    super::{
        answer::{AnswerResult, BenchAnswer},
        events::BenchEvent,
    },
    connection::{DaemonConnection, DaemonTarget},
    gone::TargetGone,
    in_process::InProcessTarget,
    lines::{LinesSender, LinesTarget},
    usage::TargetUsage,
};
use crate::model::Verdict;

/// What events are sent to.
#[derive(Debug)]
pub(in super::super) enum BenchTarget {
    /// Nothing: it answers at once. What it takes is the generator's own.
    Null,
    InProcess(InProcessTarget),
    Daemon(DaemonTarget),
    Lines(LinesTarget),
    #[cfg(test)]
    Scripted(ScriptedTarget),
}

/// Through which one sender sends its events.
#[derive(Debug)]
pub(in super::super) enum Door {
    Null,
    InProcess(InProcessTarget),
    Daemon(DaemonConnection),
    Lines(LinesSender),
    #[cfg(test)]
    Scripted(ScriptedTarget),
}

impl BenchTarget {
    /// A door for one sender.
    ///
    /// Returns an error if the target cannot be reached.
    pub(in super::super) async fn open(&self) -> Result<Door, TargetGone> {
        Ok(match self {
            Self::Null => Door::Null,
            Self::InProcess(target) => Door::InProcess(target.clone()),
            Self::Daemon(target) => Door::Daemon(target.connect().await?),
            Self::Lines(target) => Door::Lines(target.open().await?),
            #[cfg(test)]
            Self::Scripted(target) => Door::Scripted(target.clone()),
        })
    }

    /// What it has used of the machine so far.
    pub(in super::super) async fn usage(&self) -> TargetUsage {
        match self {
            Self::Null | Self::InProcess(_) => TargetUsage::of_this_process(),
            Self::Daemon(target) => target.usage().await,
            Self::Lines(target) => target.usage().await,
            #[cfg(test)]
            Self::Scripted(_) => TargetUsage::default(),
        }
    }

    /// The same kind of target with nothing behind it, which shows what the generator itself takes.
    pub(in super::super) fn null(&self) -> Self {
        match self {
            Self::Daemon(target) => Self::Daemon(target.null()),
            Self::Lines(target) => Self::Lines(target.null()),
            _ => Self::Null,
        }
    }

    /// How it is shown in reports.
    pub(in super::super) fn name(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::InProcess(target) => target.name(),
            Self::Daemon(target) => target.name(),
            Self::Lines(target) => target.name(),
            #[cfg(test)]
            Self::Scripted(_) => "script".to_owned(),
        }
    }
}

impl Door {
    /// Sends an event and waits for its answer, at most so long.
    ///
    /// Returns an error if no more events can be sent.
    pub(in super::super) async fn send(
        &mut self,
        event: &BenchEvent,
        longest: Duration,
    ) -> Result<BenchAnswer, TargetGone> {
        if let Ok(answer) = tokio::time::timeout(longest, self.exchange(event)).await {
            return answer;
        }
        self.hang_up();
        Ok(BenchAnswer::of(AnswerResult::TimedOut))
    }

    async fn exchange(&mut self, event: &BenchEvent) -> Result<BenchAnswer, TargetGone> {
        match self {
            Self::Null => Ok(BenchAnswer::of(AnswerResult::Outcome(Some(Verdict::Proceed)))),
            Self::InProcess(target) => target.send(event).await,
            Self::Daemon(connection) => connection.send(event).await,
            Self::Lines(door) => door.send(event).await,
            #[cfg(test)]
            Self::Scripted(target) => target.send(event).await,
        }
    }

    /// An answer that comes late must not be taken for that of the next event.
    fn hang_up(&mut self) {
        match self {
            Self::Daemon(connection) => connection.hang_up(),
            Self::Lines(door) => door.give_up(),
            _ => {}
        }
    }
}
