//! The settings files in which agents keep their hooks, and the hooks in them. The files are other programs':
//! a mistake costs the entry it is in, with a warning that has a place, and what is not about hooks is nobody's
//! concern here.

mod context;
mod disable;
mod entry;
mod file;
mod format;
mod front_matter;
mod handler;
mod labels;
mod matcher;
mod plugins;
mod shared;
mod shell_line;
mod tool_rule;

pub use context::SettingsHook;
pub(super) use context::{TextPart, text_parts, warn_misspelt_keys};
pub use disable::KeyPosition;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use file::disabling_phrase;
pub(crate) use file::read_plugin_hooks;
pub(crate) use file::unread_hooks;
pub use file::{SettingsHooks, read_settings};
pub(super) use format::{
    BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, EventFilter, HookIdentity, MatcherSyntax,
    SettingsFormat, SettingsKeys, SharedSetting, Shell, StartDirectory, TimeUnit, UnreadByAgent,
};
pub(crate) use format::{SettingsFile, SettingsLocation, SharedKey};
pub(crate) use front_matter::{has_hooks_in_front_matter, read_agent_hooks, read_hooks_of};
pub(crate) use labels::TextKind;
pub(super) use matcher::{
    exact_list_or_regex, exact_names_or_regex, exact_or_regex, names_or_regexes, search_or_word, whole_regex,
};
pub(super) use plugins::{EXTENSIONS, PLUGINS, parse as plugin_json};
pub(crate) use plugins::{
    ExtensionFiles, Installation, ManifestHooks, Marketplace, PluginFiles, PluginFormat, extension_source,
    names, path_below, plugin_source, read_catalog, read_extension, read_manifest, read_marketplaces,
    read_registry,
};
pub use shared::SharedSettings;
