//! Schema of an OpenHarness hook file.

use schemars::JsonSchema;

use super::{handler::HandlerSchema, shape};

/// A hook in the OpenHarness dialect: its events, handler and policies.
#[derive(JsonSchema)]
#[schemars(title = "OpenHarness hook file", deny_unknown_fields)]
pub(super) struct HookFileSchema {
    /// The hook's name, unique in the workspace: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    name: shape::HookName,
    /// The events that the hook runs for, at least one. Events that begin with `run_` are only observed; at all
    /// others the hook may change or stop what happens.
    #[schemars(length(min = 1))]
    events: Vec<shape::AnyEvent>,
    /// A regular expression (syntax of JavaScript or of the Rust crate `regex`, not a glob). It is searched anywhere in the tool's
    /// name, the `model_ref` of model events or the `trigger_type` of run events. Default: every event matches.
    matcher: Option<shape::Pattern>,
    /// What runs.
    handler: HandlerSchema,
    /// What the hook may change, in addition to its verdict. Changes without the capability are ignored, and a capability
    /// without effect on any of the events is a warning.
    #[schemars(extend("default" = []))]
    capabilities: Option<Vec<shape::HookCapability>>,
    /// Hooks with a lower number run earlier; equal ones in the order of their file names. Default: 0.
    #[schemars(range(min = -2_147_483_648, max = 2_147_483_647), extend("default" = 0))]
    priority: Option<i32>,
    /// `false` disables the hook; it is still listed. Default: true.
    #[schemars(extend("default" = true))]
    enabled: Option<bool>,
    /// What a failure of the hook counts as. `ignore`: no opinion; `deny`: a block; `ask`: a question to a person.
    /// Guards use `deny`. Default: ignore.
    #[schemars(extend("default" = "ignore"))]
    on_error: Option<shape::Policy>,
    /// The same for a timeout. Default: ignore.
    #[schemars(extend("default" = "ignore"))]
    on_timeout: Option<shape::Policy>,
}
