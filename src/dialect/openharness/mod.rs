//! The OpenHarness dialect: its events and answers, its envelopes and replies, its hook files.

mod agent_file;
mod dialect;
mod envelope;
mod handlers;
mod hook_context;
mod hook_file;
mod kinds;
mod lookup;
mod mode;
mod models;
mod raw;
mod rego_handler;
#[cfg(feature = "rego")]
mod rego_input;
mod rego_program;
mod rego_sources;
mod reply;
mod requests;
mod response;
mod rule_handler;
mod sandbox;
mod variables;

pub use dialect::OpenHarness;
pub(super) use dialect::{has_kind, is_matched};
pub(super) use handlers::{argument, has_shell_syntax, names_program, shell_line, variable};
pub use hook_file::read_hook;
pub use lookup::{HookRules, ReferenceLookup, ResolvedPath, UnixSockets, UnsafeVariables};
pub(super) use lookup::{bounded_entries, check_program, check_scripts};
pub(crate) use mode::warn_of_mode;
pub(super) use requests::{http_address, http_header};
pub(crate) use variables::expand;
