//! An orchestrator in this process: events are read from JSON and dispatched, as by a program that embeds hookyard.

use super::{
    super::{
        answer::{AnswerResult, BenchAnswer},
        events::BenchEvent,
    },
    gone::TargetGone,
};
use crate::{DispatchError, Orchestrator, model::WorkspaceId};

/// An orchestrator of this process, and a workspace of it.
#[derive(Debug, Clone)]
pub(in super::super) struct InProcessTarget {
    orchestrator: Orchestrator,
    workspace: WorkspaceId,
}

impl InProcessTarget {
    pub(in super::super) fn new(orchestrator: Orchestrator, workspace: WorkspaceId) -> Self {
        Self { orchestrator, workspace }
    }

    pub(super) fn name(&self) -> String {
        format!("in process, workspace {}", self.workspace)
    }

    pub(super) async fn send(&self, event: &BenchEvent) -> Result<BenchAnswer, TargetGone> {
        let read = self.orchestrator.read(event.dialect, &event.json);
        let Ok(event) = read else {
            return Ok(BenchAnswer::of(AnswerResult::Refused("invalid_event".to_owned())));
        };
        match self.orchestrator.dispatch_in(&self.workspace, event).await {
            Ok(outcome) => Ok(BenchAnswer::of_outcome(&outcome)),
            Err(DispatchError::Overloaded(_)) => Ok(BenchAnswer::of(AnswerResult::Shed)),
            Err(error @ DispatchError::ShuttingDown) => Err(TargetGone(error.to_string())),
            Err(error) => Ok(BenchAnswer::of(AnswerResult::Refused(word(&error).to_owned()))),
        }
    }
}

/// The word for an error, as a daemon has it.
fn word(error: &DispatchError) -> &'static str {
    match error {
        DispatchError::UnknownWorkspace(_) | DispatchError::NoWorkspace => "no_workspace",
        DispatchError::RunLost => "run_lost",
        DispatchError::NotStored(_) | DispatchError::LargerThanOutbox { .. } => "not_stored",
        DispatchError::Interrupted | DispatchError::ShuttingDown => "interrupted",
        DispatchError::Event(_) => "invalid_event",
        DispatchError::Overloaded(_) => "shed",
        DispatchError::ClusterUnsure => "cluster_unsure",
        DispatchError::HaltNotStored => "halt_not_stored",
        DispatchError::RunMoved => "moved",
    }
}
