//! Settings for all hooks of a file when hooks are converted: policies, timeouts and switches. Where a file has one
//! policy for all hooks, the strictest is used.

use std::time::Duration;

use serde_json::Value;

use super::{
    super::{
        native::NativeDialect,
        settings::{DisableSyntax, SharedSetting},
    },
    portable_hook::{ConversionLosses, PortableHook},
};
use crate::model::FailurePolicy;

/// Keys beside the events that disable hooks.
const SWITCHES: [&str; 2] = ["enabled", "disabled"];

/// The defaults of a file for all its hooks.
#[derive(Debug, Default)]
pub(super) struct FileDefaults {
    pub(super) on_error: FailurePolicy,
    pub(super) on_timeout: FailurePolicy,
    /// The default timeout.
    pub(super) timeout: Option<Duration>,
    pub(super) all_off: bool,
    /// The names and commands of disabled hooks.
    pub(super) off: Vec<String>,
}

impl FileDefaults {
    pub(super) fn read(
        native: &NativeDialect,
        file: &Value,
        hooks: &Value,
        place: &str,
        losses: &mut ConversionLosses,
    ) -> Self {
        let mut common = Self::default();
        for word in native.settings.shared {
            let value = &hooks[word.key];
            match word.setting {
                SharedSetting::OnError => common.on_error = policy(value),
                SharedSetting::OnTimeout => common.on_timeout = policy(value),
                SharedSetting::Timeout(unit) => {
                    common.timeout = value.as_f64().and_then(|number| unit.duration(number));
                }
                SharedSetting::Enabled => common.all_off = *value == false,
                SharedSetting::MaxParallel if !value.is_null() => {
                    losses.partial(place, format!("`{}`: nothing bounds how many run at once", word.key));
                }
                SharedSetting::MaxParallel => {}
            }
        }
        match native.settings.disable {
            DisableSyntax::All(key) | DisableSyntax::Own(key) => common.all_off |= file[key] == true,
            DisableSyntax::BesideEvents(key) => common.all_off |= hooks[key] == true,
            DisableSyntax::Never => {}
            DisableSyntax::AllOrSome(section) => {
                let place = &file[section];
                common.all_off |= place["enabled"] == false;
                let names = place["disabled"].as_array().into_iter().flatten();
                common.off.extend(names.filter_map(Value::as_str).map(str::to_owned));
            }
        }
        common
    }

    /// Whether a key among the events is not an event.
    pub(super) fn is_default_key(native: &NativeDialect, key: &str) -> bool {
        SWITCHES.contains(&key)
            || native.settings.keys.beside_events.contains(&key)
            || native.settings.shared.iter().any(|word| word.key == key)
    }
}

/// How failures count, if a file has it.
pub(super) fn policy(value: &Value) -> FailurePolicy {
    value.as_str().and_then(FailurePolicy::from_name).unwrap_or_default()
}

/// The policies of some hooks, in a dialect that has them for all hooks or not at all. Reports which
/// hooks get a stricter policy than their own, or none.
pub(super) fn policies(
    native: &NativeDialect,
    hooks: &[&PortableHook],
    losses: &mut ConversionLosses,
) -> Vec<(&'static str, &'static str)> {
    let find =
        |is_it: fn(&SharedSetting) -> bool| native.settings.shared.iter().find(|word| is_it(&word.setting));
    let own_error: fn(&PortableHook) -> FailurePolicy = |hook| hook.on_error;
    let kinds = [
        ("on_error", find(|setting| matches!(setting, SharedSetting::OnError)), own_error, "fails"),
        (
            "on_timeout",
            find(|setting| matches!(setting, SharedSetting::OnTimeout)),
            |hook| hook.on_timeout,
            "is too late",
        ),
    ];
    let mut words = Vec::new();
    for (key, word, own, what) in kinds {
        let strictest =
            hooks.iter().map(|hook| own(hook)).max_by_key(|policy| policy.verdict()).unwrap_or_default();
        for hook in hooks {
            match word {
                None if own(hook) != FailurePolicy::Ignore => {
                    let policy = own(hook).as_str();
                    losses.partial(
                        &hook.name,
                        format!("`{key}: {policy}`: where the hook {what}, the event passes"),
                    );
                }
                Some(word) if own(hook) != strictest => {
                    let (key, policy) = (word.key, strictest.as_str());
                    losses.partial(
                        &hook.name,
                        format!("`{key}: {policy}` is for all hooks, and so for this one too"),
                    );
                }
                _ => {}
            }
        }
        words.extend(
            word.filter(|_| strictest != FailurePolicy::Ignore).map(|word| (word.key, strictest.as_str())),
        );
    }
    words
}
