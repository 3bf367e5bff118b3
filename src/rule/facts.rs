//! What rules know of an event.

use std::{
    borrow::Cow,
    cell::RefCell,
    sync::{Arc, OnceLock},
};

use super::{
    budget::Budget,
    json_tree::{JsonNode, JsonRef},
    shell::{self, ShellCommand},
    value::RuleString,
    variables::EventText,
};
use crate::model::{Draft, KnownLinks, Target, Workspace};

/// How many shell texts of one event are remembered.
const MOST_TEXTS: usize = 16;

/// The commands of a shell text, each to be shared.
#[derive(Debug)]
pub(super) struct SharedCommands {
    pub(super) commands: Vec<Arc<ShellCommand>>,
    pub(super) understood: bool,
}

/// What rules have read of an event, for all hooks that judge it: each part is taken apart once.
pub(super) struct EventReading {
    revision: u32,
    parts: [OnceLock<JsonNode>; Target::ALL.len()],
    shell: RefCell<Vec<(Box<str>, Arc<SharedCommands>)>>,
}

impl EventReading {
    /// Nothing yet of a draft.
    pub(super) fn new(draft: &Draft) -> Self {
        let parts = std::array::from_fn(|_| OnceLock::new());
        Self { revision: draft.revision(), parts, shell: RefCell::default() }
    }

    /// Whether it is of a draft as it is now.
    pub(super) fn is_of(&self, draft: &Draft) -> bool {
        self.revision == draft.revision()
    }
}

/// What rules know of an event.
pub(super) struct EventFacts<'a> {
    pub(super) draft: &'a Draft,
    pub(super) workspace: &'a Workspace,
    pub(super) links: Option<&'a KnownLinks>,
    pub(super) reading: &'a EventReading,
}

impl<'a> EventFacts<'a> {
    /// A short text of the event.
    pub(super) fn text(&self, which: EventText) -> Option<RuleString<'a>> {
        let event = self.draft.event();
        let attributes = &event.attributes;
        let attribute = match which {
            EventText::Kind => return Some(event.kind.as_str().into()),
            EventText::HostEvent => event.host_event.as_ref().map(|host| &host.name),
            EventText::Id => return event.id.as_ref().map(|id| id.as_str().into()),
            EventText::Cwd => event.cwd.as_ref(),
            EventText::SessionId => return Some(event.session_id.as_str().into()),
            EventText::RunId => return Some(event.run_id.as_str().into()),
            EventText::ToolCallId => return event.tool_call_id.as_ref().map(|id| id.as_str().into()),
            EventText::AgentDialect => return Some(event.dialect.as_str().into()),
            EventText::WorkspaceId => return Some(self.workspace.id.as_str().into()),
            EventText::WorkspaceRoot => {
                return Some(match self.workspace.root.to_string_lossy() {
                    Cow::Borrowed(root) => root.into(),
                    Cow::Owned(root) => root.into(),
                });
            }
            EventText::Source => attributes.source.as_ref(),
            EventText::Reason => attributes.reason.as_ref(),
            EventText::Trigger => attributes.trigger.as_ref(),
            EventText::TriggerType => attributes.trigger_type.as_ref(),
            EventText::RunStatus => attributes.run_status.as_ref(),
            EventText::NotificationType => attributes.notification_type.as_ref(),
            EventText::Message => attributes.message.as_ref(),
            EventText::AgentName => attributes.agent_name.as_ref(),
            EventText::EffectiveAgentName => attributes.effective_agent_name.as_ref(),
            EventText::AgentType => attributes.agent_type.as_ref(),
            EventText::ModelRef => attributes.model_ref.as_ref(),
            EventText::ToolName => attributes.tool_name.as_ref(),
        };
        attribute.map(|text| RuleString::Borrowed(text))
    }

    /// A part of the payload, with the patches so far.
    pub(super) fn part(&self, target: Target, budget: &'a Budget) -> Option<JsonRef<'a>> {
        let text = self.draft.target(target)?.as_str();
        let tree = self.reading.parts[target as usize].get_or_init(|| JsonNode::of(text));
        Some(JsonRef::new(text, tree, budget))
    }

    /// Whether the event has a part of the payload.
    pub(super) fn has(&self, target: Target) -> bool {
        self.draft.target(target).is_some()
    }

    /// Minutes since 1970, when the event arrived.
    pub(super) fn minutes(&self) -> Option<i64> {
        let arrival = self.draft.event().arrival?;
        i64::try_from(arrival.milliseconds() / 60_000).ok()
    }

    /// The commands of a shell text, which is taken apart once for all rules.
    pub(super) fn shell(&self, text: &str) -> Arc<SharedCommands> {
        let mut known = self.reading.shell.borrow_mut();
        if let Some((_, commands)) = known.iter().find(|(known, _)| **known == *text) {
            return Arc::clone(commands);
        }
        let found = shell::commands(text);
        let commands = found.commands.into_iter().map(Arc::new).collect();
        let commands = Arc::new(SharedCommands { commands, understood: found.understood });
        if known.len() < MOST_TEXTS {
            known.push((text.into(), Arc::clone(&commands)));
        }
        commands
    }
}
