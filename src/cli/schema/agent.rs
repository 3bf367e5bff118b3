//! Schema of the front matter of an agent's file.

use schemars::JsonSchema;

use super::shape;

/// An agent for hooks of type `agent`. These keys are the front matter, between two lines `---`; its role follows.
#[derive(JsonSchema)]
#[schemars(title = "Keys of an agent's file", deny_unknown_fields)]
pub(super) struct AgentSchema {
    /// The model, by its name under `models` in the settings.
    model_ref: String,
    /// Tools to read the workspace with. Default: none.
    #[schemars(extend("default" = []))]
    tools: Option<Vec<shape::Tool>>,
    /// Maximum number of model calls per task, 1 to 50. Default: 8.
    #[schemars(range(min = 1, max = 50), extend("default" = 8))]
    max_turns: Option<i64>,
    /// What the agent is for. For people only.
    description: Option<String>,
}
