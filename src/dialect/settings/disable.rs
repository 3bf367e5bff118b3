//! The switches of settings files that disable hooks.

use super::{super::document::Mapping, format::DisableSyntax};

/// Keys beside the events that are no events.
const BESIDE: [&str; 3] = ["enabled", "disabled", "notifications"];

impl DisableSyntax {
    /// The word with which a file switches all hooks off.
    pub(in crate::dialect) fn word(self) -> &'static str {
        match self {
            Self::All(flag) => flag,
            Self::AllOrSome(_) => "enabled: false",
        }
    }

    /// Whether a key beside the events is no event.
    pub(super) fn stands_beside_events(self, key: &str) -> bool {
        matches!(self, Self::AllOrSome(_)) && BESIDE.contains(&key)
    }

    /// Whether a file switches all hooks off, or on again; and the names and commands of those that it switches off.
    pub(super) fn read(self, root: &Mapping<'_>, hooks: Option<&Mapping<'_>>) -> (Option<bool>, Vec<String>) {
        let section = match self {
            Self::All(flag) => return (root.get(flag).and_then(|value| value.flag()), Vec::new()),
            Self::AllOrSome(section) => root.get(section).and_then(|value| value.mapping()),
        };
        let (mut all_disabled, mut off) = (None, Vec::new());
        for place in [section.as_ref(), hooks].into_iter().flatten() {
            if let Some(enabled) = place.get("enabled").and_then(|value| value.flag()) {
                all_disabled.get_or_insert(!enabled);
            }
            let names = place.get("disabled").and_then(|value| value.list()).unwrap_or_default();
            off.extend(names.iter().filter_map(|name| Some(name.text()?.to_owned())));
        }
        (all_disabled, off)
    }
}
