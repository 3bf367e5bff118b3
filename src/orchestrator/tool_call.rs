//! One call of a tool, as the tool events of a run describe it.

use serde::Serialize;

use crate::model::{Event, Json, JsonError, Target, ToolCallId};

/// One call of a tool: its name, its input and, if the host has one, its id.
///
/// With an id, the events of the call can be distinguished and sent again safely: the same event of the same call with
/// the same input gets the first outcome again, and no hook runs twice.
///
/// ```
/// use hookyard::{ToolCall, model::ToolCallId};
///
/// # fn main() -> Result<(), hookyard::model::IdError> {
/// let input = serde_json::json!({ "command": "ls" });
/// let call = ToolCall::new("Bash", &input).with_id(ToolCallId::new("call-1")?);
/// # drop(call);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ToolCall<'a, I: ?Sized> {
    name: &'a str,
    input: &'a I,
    id: Option<ToolCallId>,
}

impl<'a, I: Serialize + ?Sized> ToolCall<'a, I> {
    /// A call of the tool `name` with this input.
    pub fn new(name: &'a str, input: &'a I) -> Self {
        Self { name, input, id: None }
    }

    /// Adds the id that the model or the host gave the call.
    #[must_use]
    pub fn with_id(mut self, id: ToolCallId) -> Self {
        self.id = Some(id);
        self
    }

    /// Writes the call into an event.
    ///
    /// Returns an error if the input has no JSON form.
    pub(super) fn describe(&self, event: &mut Event) -> Result<(), JsonError> {
        event.attributes.tool_name = Some(self.name.into());
        event.tool_call_id.clone_from(&self.id);
        event.targets.set(Target::ToolInput, Json::of(self.input)?);
        Ok(())
    }
}
