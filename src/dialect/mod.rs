//! The dialects of hosts and hooks. Only this folder knows native field names, and nothing in it does I/O.
//!
//! `canonical` and `openharness` use hookyard's own names. Every other dialect is a [`NativeDialect`]: a table of its
//! events and the functions in which it differs, in a folder of its own.

mod agent_variables;
mod canonical;
mod catalog;
mod claude;
mod clawd;
mod codebuddy;
mod codex;
mod convert;
mod copilot;
mod cursor;
mod document;
mod droid;
mod event_reader;
mod event_table;
mod gemini;
mod native;
mod native_dialect;
mod openharness;
mod output;
mod partial_event;
mod patch_merge;
mod qwen;
mod response;
mod settings;
mod suggest;

#[cfg(feature = "daemon")]
pub(crate) use agent_variables::host_variables;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use agent_variables::project_variable;
pub use canonical::Canonical;
pub(crate) use catalog::prompt_of;
pub(crate) use catalog::read_partial;
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use catalog::unasked_response;
pub use catalog::{named, natives, unreadable_event_response};
pub use convert::{Conversion, ConversionRemark, ConvertedFile, HookConfigFile, convert};
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use document::without_comments;
pub(crate) use document::{Document, Mapping, Mistake, Span, Value};
pub(crate) use gemini::is_extension_enabled;
pub use native::NativeDialect;
pub(crate) use openharness::expand;
#[cfg_attr(
    not(feature = "cli"),
    expect(unused_imports, reason = "only the command line checks workers")
)]
pub(crate) use openharness::warn_of_mode;
pub use openharness::{
    HookRules, OpenHarness, ReferenceLookup, ResolvedPath, UnixSockets, UnsafeVariables, read_hook,
};
pub(crate) use output::error_message;
#[cfg(feature = "daemon")]
pub(crate) use partial_event::{partial_value, raw_field};
pub use response::http_body;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use settings::disabling_phrase;
pub(crate) use settings::{
    ExtensionFiles, Installation, ManifestHooks, Marketplace, PluginFiles, PluginFormat, TextKind,
    extension_source, has_hooks_in_front_matter, names, path_below, plugin_source, read_agent_hooks,
    read_catalog, read_extension, read_hooks_of, read_manifest, read_marketplaces, read_plugin_hooks,
    read_registry,
};
pub use settings::{KeyPosition, SettingsHook, SettingsHooks, SharedSettings, read_settings};
pub(crate) use settings::{SettingsFile, SettingsLocation, unread_hooks};
pub(crate) use suggest::{nearest, shorten};
