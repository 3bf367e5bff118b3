//! Settings for all hooks of a dialect, from files and environment variables.

use std::{num::NonZeroUsize, path::Path, time::Duration};

use super::{
    super::{
        document::{Document, Value},
        openharness::ReferenceLookup,
    },
    context::SettingsHook,
    disable::{KeyPosition, switch},
    format::{SharedKey, SharedSetting, TimeUnit},
};
use crate::model::{Diagnostic, FailurePolicy, Json, Severity};

/// How a key with a mistake is handled.
const LEFT_OUT: &str = "it is ignored; the rest of the file is used";

/// A timeout below it was probably meant in seconds: most programs take longer to start.
const SHORTEST_MEANT: Duration = Duration::from_millis(100);

/// The values that apply to all hooks; missing ones are left to the next level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedSettings {
    enabled: Option<(bool, KeyPosition)>,
    timeout: Option<Duration>,
    on_timeout: Option<FailurePolicy>,
    on_error: Option<FailurePolicy>,
    max_parallel: Option<NonZeroUsize>,
}

impl SharedSettings {
    /// Sets one key. A mistake in it is reported, and the key counts as missing.
    pub(super) fn read(&mut self, setting: SharedSetting, value: &Value<'_>, longest: Duration) {
        let policies = FailurePolicy::ALL.map(|policy| (policy.as_str(), policy));
        match setting {
            SharedSetting::Enabled => self.enabled = switch(value),
            SharedSetting::Timeout(unit) => self.timeout = unit.read(value, longest, LEFT_OUT),
            SharedSetting::OnTimeout => self.on_timeout = value.choice(&policies),
            SharedSetting::OnError => self.on_error = value.choice(&policies),
            SharedSetting::MaxParallel => self.max_parallel = count(value),
        }
    }

    /// The values of hookyard's environment variables, and the mistakes in them. `file` is a settings file for
    /// whose hooks they count.
    pub(crate) fn from_variables(
        words: &[SharedKey],
        file: &Path,
        longest: Duration,
        resolver: &dyn ReferenceLookup,
    ) -> (Self, Vec<Diagnostic>) {
        let (mut found, mut diagnostics) = (Self::default(), Vec::new());
        for word in words {
            let variable = resolver.option(word.variable);
            let Some(text) = variable.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
                continue;
            };
            // A variable is read like the same word in a file, so it can be wrong in the same ways only.
            let written = format!("{{{:?}:{}}}", word.variable, scalar(text));
            match Document::parse_json(written.as_bytes(), file) {
                Ok(document) => {
                    if let Some(value) = document.root().and_then(|root| root.get(word.variable)) {
                        found.read(word.setting, &value, longest);
                    }
                    diagnostics.extend(document.into_diagnostics());
                }
                Err(diagnostic) => diagnostics.push(*diagnostic),
            }
        }
        let without_place = |diagnostic: Diagnostic| {
            let message = format!("in the environment, {}", diagnostic.message);
            Diagnostic {
                help: diagnostic.help,
                ..Diagnostic::of_file(Severity::Warning, "variable", file, message)
            }
        };
        (found, diagnostics.into_iter().map(without_place).collect())
    }

    /// The values of both; where both have one, the other's.
    pub(crate) fn overridden_by(self, other: &Self) -> Self {
        Self {
            enabled: other.enabled.or(self.enabled),
            timeout: other.timeout.or(self.timeout),
            on_timeout: other.on_timeout.or(self.on_timeout),
            on_error: other.on_error.or(self.on_error),
            max_parallel: other.max_parallel.or(self.max_parallel),
        }
    }

    /// The same, with the stricter of both failure policies: a lower level may do no more to hooks of a higher one.
    pub(crate) fn tightened_by(self, lower: &Self) -> Self {
        let on_timeout = stricter(self.on_timeout, lower.on_timeout);
        let on_error = stricter(self.on_error, lower.on_error);
        Self { on_timeout, on_error, ..self }
    }

    /// Whether it switches all hooks off, or on again, and where.
    pub(crate) fn all_disabled(&self) -> Option<(bool, KeyPosition)> {
        self.enabled.map(|(enabled, position)| (!enabled, position))
    }

    /// Has it hold for a hook, all but the switch.
    pub(crate) fn apply(&self, configured: &mut SettingsHook) {
        let hook = &mut configured.hook;
        if let (None, Some(timeout)) = (configured.own_timeout, self.timeout) {
            hook.timeout = timeout;
        }
        hook.on_timeout = self.on_timeout.unwrap_or(hook.on_timeout);
        hook.on_error = self.on_error.unwrap_or(hook.on_error);
        hook.execution.max_parallel = self.max_parallel.or(hook.execution.max_parallel);
    }
}

/// The policy that makes more of a failure.
fn stricter(one: Option<FailurePolicy>, other: Option<FailurePolicy>) -> Option<FailurePolicy> {
    one.into_iter().chain(other).max_by_key(|policy| policy.verdict())
}

fn count(value: &Value<'_>) -> Option<NonZeroUsize> {
    let number = value.integer()?;
    let count = usize::try_from(number).ok().and_then(NonZeroUsize::new);
    if count.is_none() {
        value.error("number", format!("`{}` must be more than 0", value.name()), LEFT_OUT);
    }
    count
}

impl TimeUnit {
    fn too_long_help(self) -> &'static str {
        match self {
            Self::Seconds => "it is in seconds; shorten it, or raise `max_timeout` in the settings",
            Self::Milliseconds => "it is in milliseconds; shorten it, or raise `max_timeout` in the settings",
            Self::SecondsOrMilliseconds => {
                "it is in seconds, and in milliseconds from 1000 on; shorten it, or raise `max_timeout` in the settings"
            }
        }
    }

    /// A timeout; one that is too long is cut, with a warning.
    pub(super) fn read(self, value: &Value<'_>, longest: Duration, help: &str) -> Option<Duration> {
        let number = value.number()?;
        let name = value.name();
        match self.duration(number) {
            Some(timeout) if timeout <= longest => {
                if self == Self::Milliseconds && timeout < SHORTEST_MEANT {
                    let message =
                        format!("`{name}` is in milliseconds: {number} ms is too short for most programs");
                    value.warn("timeout", message, format!("write `{}` for {number} s", number * 1e3));
                }
                Some(timeout)
            }
            None if number <= 0.0 || number.is_nan() => {
                value.error("timeout", format!("`{name}` must be more than 0"), help);
                None
            }
            None if number < 1.0 => {
                value.error("timeout", format!("`{name}` is less than a nanosecond"), help);
                None
            }
            Some(_) | None => {
                let seconds = longest.as_secs_f64();
                let message = format!("`{name}` is longer than the {seconds} s allowed, and is cut to that");
                value.warn("timeout", message, self.too_long_help());
                Some(longest)
            }
        }
    }
}

/// A text as the JSON value that it looks like.
fn scalar(text: &str) -> String {
    let found = Json::parse(text).ok().filter(|json| matches!(json.kind(), "a number" | "a boolean"));
    found.map_or_else(|| serde_json::Value::from(text).to_string(), |json| json.as_str().to_owned())
}
