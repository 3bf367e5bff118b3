//! The shape of an agent's keys, between the two fences of its file. Refuses to know of the role below them.

use schemars::JsonSchema;

use super::shape;

/// An agent that hooks give tasks to. These keys stand between two lines `---`; below them stands its role.
#[derive(JsonSchema)]
#[schemars(title = "Keys of an agent's file", deny_unknown_fields)]
pub(super) struct AgentSchema {
    /// The model that is asked, by its name under `models` in the settings.
    model_ref: String,
    /// What it may look around with, inside the workspace and read-only. Default: nothing.
    #[schemars(extend("default" = []))]
    tools: Option<Vec<shape::Tool>>,
    /// How often the model is asked for one task, 1 to 50. Default: 8.
    #[schemars(range(min = 1, max = 50), extend("default" = 8))]
    max_turns: Option<i64>,
    /// What the agent is for, for people.
    description: Option<String>,
}
