//! The part of the status about the signed bundle.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    config::{BundleStanding, KeptFault, Settings},
    daemon::{
        bundle::BundleKeeper,
        schema::{Component, object, optional_string, string, unsigned_as},
    },
};

/// The signed bundle of hooks of this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BundleStatus {
    /// `current`, `expired`, `unconfirmed`, `changed`, `missing` or `unusable`.
    pub standing: String,
    /// What `bundle.on_stale` says: `keep`, `ask` or `deny`.
    pub on_stale: String,
    /// Its name; none if there is no bundle that can be used.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<u64>,
    /// The number of its hooks.
    pub hooks: usize,
    /// The public key that has signed it.
    pub signed_by: Option<String>,
    /// Since when it is in force, in seconds since 1970.
    pub since: Option<u64>,
    /// When it expires.
    pub expires: Option<String>,
    /// How long ago its server has confirmed it, in milliseconds.
    pub age_ms: Option<u64>,
    /// The server that is asked for newer ones, if one is.
    pub server: Option<String>,
    /// What came of asking it last: `unchanged`, `taken`, `rejected` or `failed`.
    pub last_poll: Option<String>,
    /// When it was asked last, in seconds since 1970.
    pub last_poll_at: Option<u64>,
    /// How often files of its copy on this disk were found changed since the daemon started.
    #[serde(default)]
    pub copy_changes: u64,
    /// What was changed last.
    #[serde(default)]
    pub last_copy_change: Option<String>,
    /// What is wrong: with the bundle, or with what its server has.
    pub error: Option<String>,
}

pub(super) static BUNDLE_STATUS: Component = Component::built("BundleStatus", || {
    let number = |text: &str| {
        let mut schema = unsigned_as("int64", text);
        schema["type"] = json!(["integer", "null"]);
        schema
    };
    object(
        "The signed bundle of hooks of this machine.",
        [
            ("standing", string("`current`, `expired`, `unconfirmed`, `changed`, `missing` or `unusable`.")),
            ("on_stale", string("What `bundle.on_stale` says: `keep`, `ask` or `deny`.")),
            ("name", optional_string("Its name; none if there is no bundle that can be used.")),
            ("version", number("Its version.")),
            ("hooks", unsigned_as("int64", "The number of its hooks.")),
            ("signed_by", optional_string("The public key that has signed it.")),
            ("since", number("Since when it is in force, in seconds since 1970.")),
            ("expires", optional_string("When it expires.")),
            ("age_ms", number("How long ago its server has confirmed it, in milliseconds.")),
            ("server", optional_string("The server that is asked for newer ones, if one is.")),
            (
                "last_poll",
                optional_string("What came of asking it last: `unchanged`, `taken`, `rejected` or `failed`."),
            ),
            ("last_poll_at", number("When it was asked last, in seconds since 1970.")),
            (
                "copy_changes",
                unsigned_as(
                    "int64",
                    "How often files of its copy on this disk were found changed since the daemon started.",
                ),
            ),
            ("last_copy_change", optional_string("What was changed last.")),
            ("error", optional_string("What is wrong: with the bundle, or with what its server has.")),
        ],
        &[],
    )
});

/// Its place in the status.
pub(super) fn nullable_bundle_status() -> Value {
    let bundle = BUNDLE_STATUS.described("The signed bundle, if one is configured.");
    json!({ "oneOf": [bundle, { "type": "null" }] })
}

impl BundleStatus {
    pub(super) fn of(keeper: &BundleKeeper, settings: &Settings) -> Option<Self> {
        let found = keeper.in_force()?;
        let moment = keeper.moment(&found);
        let last = keeper.last_poll();
        let changes = keeper.copy_changes();
        let mut status = Self {
            standing: String::new(),
            on_stale: settings.bundle.on_stale.as_str().to_owned(),
            name: None,
            version: None,
            hooks: 0,
            signed_by: None,
            since: None,
            expires: None,
            age_ms: None,
            server: keeper.server_name(),
            last_poll: last.as_ref().map(|last| last.result.as_str().to_owned()),
            last_poll_at: last.as_ref().map(|last| seconds(last.at)),
            copy_changes: changes.count,
            last_copy_change: changes.last,
            error: last.and_then(|last| last.why),
        };
        match &found.found {
            Ok((kept, hooks)) => {
                let statement = &kept.signed.statement;
                let standing = found.standing(settings, moment);
                standing.map_or("", BundleStanding::as_str).clone_into(&mut status.standing);
                status.name = Some(statement.name.to_string());
                status.version = Some(statement.version);
                status.hooks = hooks.hooks.len();
                status.signed_by = Some(kept.signed_by.to_string());
                status.since = Some(kept.since.seconds());
                status.expires = statement.expires.map(|moment| moment.to_string());
                if let Some(fault) = changes.fault {
                    "changed".clone_into(&mut status.standing);
                    status.error =
                        Some(format!("its files were changed and cannot be unpacked again: {fault}"));
                }
                let age = moment.now.since(moment.confirmed).as_millis();
                status.age_ms = settings.bundle.url.as_ref().map(|_| u64::try_from(age).unwrap_or(u64::MAX));
            }
            Err(fault) => {
                let standing = if *fault == KeptFault::Missing { "missing" } else { "unusable" };
                standing.clone_into(&mut status.standing);
                let why = fault.message(settings);
                status.error = Some(match status.error {
                    Some(poll) => format!("{why}; last answer: {poll}"),
                    None => why,
                });
            }
        }
        Some(status)
    }
}

impl BundleStatus {
    /// What happens to events where there is no bundle that can be used.
    #[cfg(feature = "cli")]
    pub(crate) fn effect(&self) -> &'static str {
        if self.on_stale == "ask" { "asked about" } else { "blocked" }
    }

    /// Whether it is as it should be.
    #[cfg(feature = "cli")]
    pub(crate) fn is_well(&self) -> bool {
        self.standing == "current" && self.error.is_none()
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
