//! The `OpenAPI` 3.1 document, made from the route table.

use serde_json::{Map, Value, json};

use super::operation::{
    BodySchema, ErrorResponse, Operation, Parameter, ParameterLocation, ResponseContent, Route,
};
use crate::daemon::{
    auth::AccessRight,
    error::ERROR_BODY,
    schema::{Component, ComponentSchema},
};

/// The errors that every operation can answer.
const COMMON_ERRORS: &[ErrorResponse] = &[
    (401, "The token is missing or wrong"),
    (
        403,
        "The listener or the token does not grant the right, the request comes from a web page, or its `Host` is not this machine",
    ),
    (429, "Too many requests of this peer had no valid token"),
    (503, "The daemon is overloaded, starting or shutting down"),
];

/// The document for these routes, whose bodies refer to these components.
pub(super) fn document(routes: &[Route], components: &[&Component]) -> Value {
    let mut schemas = Map::new();
    for component in components {
        add_component(&mut schemas, component);
    }
    let paths: Map<String, Value> =
        routes.iter().map(|route| (route.path.to_owned(), path_item(route))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "hookyard",
            "description": "Runs hooks for AI-agent hosts. Send events, get verdicts.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of `listen.token_file`: events and reads over TCP.",
                },
                "controlToken": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of `listen.control_token_file`: everything over TCP.",
                },
            },
        },
    })
}

fn path_item(route: &Route) -> Value {
    let operations = route.operations.iter();
    operations.map(|operation| (operation.method.as_str().to_owned(), describe(operation))).collect()
}

fn describe(operation: &Operation) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": responses(operation),
        "security": security(operation.right),
        "x-required-right": operation.right.as_str(),
    });
    if !operation.description.is_empty() {
        described["description"] = operation.description.into();
    }
    if !operation.parameters.is_empty() {
        described["parameters"] = operation.parameters.iter().map(parameter).collect();
    }
    if let Some(body) = operation.request {
        described["requestBody"] = json!({ "required": true, "content": json_content(body) });
    }
    described
}

/// What grants a right. Nothing is needed on the event socket except for control, and on the control socket.
fn security(right: AccessRight) -> Value {
    match right {
        AccessRight::Page | AccessRight::Health => json!([]),
        AccessRight::Metrics | AccessRight::Events | AccessRight::Read => {
            json!([{}, { "token": [] }, { "controlToken": [] }])
        }
        AccessRight::Control => json!([{}, { "controlToken": [] }]),
    }
}

fn parameter(parameter: &Parameter) -> Value {
    let location = match parameter.location {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
    };
    json!({
        "name": parameter.name,
        "in": location,
        "required": parameter.location == ParameterLocation::Path,
        "description": parameter.description,
        "schema": (parameter.schema)(),
    })
}

fn responses(operation: &Operation) -> Map<String, Value> {
    let mut responses = Map::new();
    for (status, description) in COMMON_ERRORS.iter().chain(operation.errors.iter().copied().flatten()) {
        let content = json_content(BodySchema::One(&ERROR_BODY));
        let response = json!({ "description": description, "content": content });
        responses.insert(status.to_string(), response);
    }
    for success in operation.success {
        let mut response = json!({ "description": success.description });
        match success.body {
            ResponseContent::Empty => {}
            ResponseContent::Json(body) => response["content"] = json_content(body),
            ResponseContent::Text(media_type) => {
                response["content"][media_type] = json!({ "schema": { "type": "string" } });
            }
        }
        responses.insert(success.status.to_string(), response);
    }
    responses
}

fn json_content(body: BodySchema) -> Value {
    let schema = match body {
        BodySchema::AnyObject => json!({ "type": "object" }),
        BodySchema::AnyObjects => json!({ "type": "array", "items": { "type": "object" } }),
        BodySchema::One(component) => component.reference(),
        BodySchema::List(component) => json!({ "type": "array", "items": component.reference() }),
    };
    json!({ "application/json": { "schema": schema } })
}

/// Adds a component. The definitions of a schema file become components named after the file's, as `OutcomeNote`.
fn add_component(schemas: &mut Map<String, Value>, component: &Component) {
    let name = component.name;
    let text = match component.schema {
        ComponentSchema::Built(schema) => {
            schemas.insert(name.to_owned(), schema());
            return;
        }
        ComponentSchema::File(text) => text,
    };
    let text = text.replace("#/$defs/", &format!("#/components/schemas/{name}"));
    // The files ship with the source, and a test reads the finished document.
    let Ok(Value::Object(mut schema)) = serde_json::from_str(&text) else { return };
    schema.remove("$schema");
    if let Some(Value::Object(definitions)) = schema.remove("$defs") {
        schemas.extend(definitions.into_iter().map(|(inner, schema)| (format!("{name}{inner}"), schema)));
    }
    schemas.insert(name.to_owned(), Value::Object(schema));
}
