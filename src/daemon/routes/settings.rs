//! Shows the settings that the daemon runs with and where each came from, with its part of the route table.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use axum::{Json, extract::State, routing::on};
use serde::Serialize;
use serde_json::{Value, json};

use super::operation::{BodySchema::One, Operation, RequestLimit, ResponseContent, Route, RouteMethod, ok};
use crate::{
    config::SetKey,
    daemon::{
        auth::AccessRight,
        schema::{Component, boolean, object},
        state::DaemonState,
    },
};

/// Every key with its description and its default.
static KEYS: LazyLock<Vec<DeclaredKey>> = LazyLock::new(|| {
    let text = include_str!("../../../config/schema/hookyard-settings.schema.json");
    let mut keys = Vec::new();
    // The schema is written from the declaration of the settings.
    declared("", &serde_json::from_str(text).unwrap_or_default(), &mut keys);
    keys
});

/// A key as the schema of the settings has it.
struct DeclaredKey {
    key: String,
    about: String,
    default: Value,
}

/// A key with its value, and where that came from.
#[derive(Debug, Serialize)]
struct SettingView<'s> {
    key: &'s str,
    about: &'s str,
    value: &'s Value,
    default: &'s Value,
    /// The file, the variable or the flag; none for a default.
    source: Option<&'s str>,
    line: Option<usize>,
}

pub(super) static SETTINGS_VIEW: Component = Component::built("SettingsView", || {
    let settings = json!({
        "type": "array",
        "items": { "type": "object" },
        "description": "Every key: `key`, `about`, `value` without secrets, `default`, and the file, variable or flag that set it (`source`, with the `line` of a file); null where the default holds.",
    });
    object(
        "The settings of the daemon.",
        [
            ("known", boolean("Whether it is known what was set: not in a program that embeds hookyard.")),
            ("settings", settings),
        ],
        &[],
    )
});

pub(super) const SETTINGS: Route = Route {
    path: "/v1/settings",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Get,
        id: "getSettings",
        tag: "operation",
        right: AccessRight::Control,
        summary: "Show the settings that the daemon runs with, and where each came from.",
        description: "Without secrets. It names files and servers, so it needs the right to control.",
        parameters: &[],
        request: None,
        success: &[ok("The settings", ResponseContent::Json(One(&SETTINGS_VIEW)))],
        errors: &[],
        handler: |method| on(method, show),
    }],
};

/// Takes in the keys of a section.
fn declared(path: &str, section: &Value, keys: &mut Vec<DeclaredKey>) {
    for (name, schema) in section["properties"].as_object().into_iter().flatten() {
        let key = format!("{path}{name}");
        if schema["properties"].is_object() {
            declared(&format!("{key}."), schema, keys);
            continue;
        }
        let about = schema["description"].as_str().unwrap_or_default().to_owned();
        keys.push(DeclaredKey { key, about, default: schema["default"].clone() });
    }
}

async fn show(State(state): State<Arc<DaemonState>>) -> Json<Value> {
    let told = state.set_keys.get();
    let set: BTreeMap<&str, &SetKey> = told.into_iter().flatten().map(|set| (&*set.key, set)).collect();
    let settings = KEYS.iter().map(|declared| {
        let set = set.get(&*declared.key);
        SettingView {
            key: &declared.key,
            about: &declared.about,
            value: set.map_or(&declared.default, |set| &set.value),
            default: &declared.default,
            source: set.map(|set| &*set.source),
            line: set.and_then(|set| set.line),
        }
    });
    Json(json!({ "known": told.is_some(), "settings": settings.collect::<Vec<_>>() }))
}
