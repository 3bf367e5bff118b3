//! The description of all routes, as `OpenAPI` 3.1. Owns what is the same for each of them; refuses to repeat the
//! schemas of events and outcomes, which are those that ship for editors.

use std::sync::OnceLock;

use axum::{
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::{events, health, hooks, reload, runs, status, stream, workspaces};
use crate::{daemon::error::ErrorBody, model::DialectName};

const EVENT: &str = include_str!("../../../config/schema/canonical-event.schema.json");
const OUTCOME: &str = include_str!("../../../config/schema/canonical-outcome.schema.json");

/// What can be an id, as the schema of events has it.
const ID: &str = "^[^\\x00-\\x1f\\x7f-\\x9f]{1,256}$";

/// What every route may answer, whatever it is asked.
const ANYWHERE: [(&str, &str); 3] = [
    ("401", "The token is missing or wrong"),
    ("403", "The request comes from a web page, or not from this machine"),
    ("503", "There is too much to do, or hookyard is shutting down"),
];

#[derive(OpenApi)]
#[openapi(
    info(
        title = "hookyard",
        description = "Runs hooks for AI-agent hosts. Send events, get verdicts.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        events::canonical,
        events::native,
        hooks::list,
        runs::list,
        runs::show,
        runs::cancel,
        workspaces::list,
        workspaces::register,
        workspaces::show,
        workspaces::remove,
        reload::reload,
        status::show,
        stream::follow,
        show,
        health::metrics,
        health::alive,
        health::ready,
    ),
    components(schemas(ErrorBody, events::ProcessAnswer))
)]
struct Description;

/// This description.
#[utoipa::path(
    get, path = "/v1/openapi.json", tag = "operation", operation_id = "getDescription",
    responses((status = 200, description = "The routes, as OpenAPI 3.1", body = Object))
)]
pub(in crate::daemon) async fn show() -> Response {
    static TEXT: OnceLock<String> = OnceLock::new();
    ([(CONTENT_TYPE, "application/json")], TEXT.get_or_init(|| description().to_string()).as_str())
        .into_response()
}

fn description() -> Value {
    let mut description = serde_json::to_value(Description::openapi()).unwrap_or_default();
    if let Some(schemas) = description["components"]["schemas"].as_object_mut() {
        add_schema(schemas, "Event", EVENT);
        add_schema(schemas, "Outcome", OUTCOME);
    }
    let operations = description["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for operation in operations.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            say_what_fits(parameter);
        }
        for (status, words) in ANYWHERE {
            operation["responses"][status] = json!({
                "description": words,
                "content": { "application/json": { "schema": { "$ref": "#/components/schemas/ErrorBody" } } }
            });
        }
    }
    let dialects: Vec<_> = DialectName::ALL.iter().filter(|name| **name != DialectName::Canonical).collect();
    description["components"]["schemas"]["Registration"]["properties"]["dialects"]["items"]["enum"] =
        dialects.iter().map(|name| name.as_str()).collect();
    let of_events = &mut description["paths"]["/v1/events"]["post"];
    of_events["requestBody"]["content"]["application/json"]["schema"] =
        json!({ "$ref": "#/components/schemas/Event" });
    of_events["responses"]["200"]["content"]["application/json"]["schema"] =
        json!({ "$ref": "#/components/schemas/Outcome" });
    description
}

/// Narrows the schema of a parameter to what is taken, which its type alone does not say.
fn say_what_fits(parameter: &mut Value) {
    match parameter["name"].as_str() {
        Some("id" | "workspace_id") => {
            parameter["schema"] = json!({ "type": "string", "pattern": ID });
        }
        Some("dialect") => {
            let names: Vec<_> = DialectName::ALL.iter().map(|name| name.as_str()).collect();
            parameter["schema"] = json!({ "type": "string", "enum": names });
        }
        _ => {}
    }
}

/// Adds a schema that stands alone, with what it defines beside it.
fn add_schema(schemas: &mut Map<String, Value>, name: &str, text: &str) {
    let moved = text.replace("#/$defs/", &format!("#/components/schemas/{name}"));
    let Ok(Value::Object(mut schema)) = serde_json::from_str(&moved) else { return };
    schema.remove("$schema");
    if let Some(Value::Object(definitions)) = schema.remove("$defs") {
        schemas.extend(definitions.into_iter().map(|(inner, schema)| (format!("{name}{inner}"), schema)));
    }
    schemas.insert(name.to_owned(), Value::Object(schema));
}
