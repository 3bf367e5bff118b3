//! What a route declares about itself: the row types of the route table.

use axum::{
    http::Method,
    routing::{MethodFilter, MethodRouter},
};
use serde_json::Value;

use crate::daemon::{auth::AccessRight, schema::Component, state::RequestContext};

/// A path and what it answers.
#[derive(Debug)]
pub(in crate::daemon) struct Route {
    /// The path as the router and the `OpenAPI` document write it.
    pub(in crate::daemon) path: &'static str,
    pub(in crate::daemon) limit: RequestLimit,
    pub(super) operations: &'static [Operation],
}

impl Route {
    /// The right that a request with this method needs. A method that the route does not have reveals nothing, so it
    /// needs no more than an event.
    pub(in crate::daemon) fn right(&self, method: &Method) -> AccessRight {
        let operation = self.operations.iter().find(|operation| operation.method.answers(method));
        operation.map_or(AccessRight::Events, |operation| operation.right)
    }

    /// Whether it takes events of hosts.
    pub(in crate::daemon) fn takes_events(&self) -> bool {
        self.operations.iter().any(|operation| operation.tag == EVENTS)
    }

    /// The id of the operation with this method, if it changes the daemon.
    pub(in crate::daemon) fn change(&self, method: &Method) -> Option<&'static str> {
        let operation = self.operations.iter().find(|operation| operation.method.answers(method))?;
        let reads = matches!(operation.method, RouteMethod::Get);
        let changes = operation.right == AccessRight::Control && !reads && operation.tag != DECISIONS;
        changes.then_some(operation.id)
    }
}

/// The tag of operations that take events of hosts.
const EVENTS: &str = "events";

/// The tag of operations that look at decisions and change nothing, whatever they take.
const DECISIONS: &str = "decisions";

/// A response that is text.
pub(super) const PLAIN_TEXT: ResponseContent = ResponseContent::Text("text/plain");

/// A response of the usual status.
pub(super) const fn ok(description: &'static str, body: ResponseContent) -> SuccessResponse {
    SuccessResponse { status: 200, description, body }
}

/// Whether requests of a route count against the limit of requests of their listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::daemon) enum RequestLimit {
    /// They are answered even at the limit: they show or end what fills the daemon, or have a limit of their own.
    Exempt,
    /// They take one of the permits until they are answered.
    Counted,
}

/// One method of a route.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) method: RouteMethod,
    /// The `operationId`.
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    /// The right that it needs.
    pub(super) right: AccessRight,
    pub(super) summary: &'static str,
    /// More than the summary; may be empty.
    pub(super) description: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// The JSON body it takes.
    pub(super) request: Option<BodySchema>,
    pub(super) success: &'static [SuccessResponse],
    /// The errors beside those that every operation can answer, in groups that several operations share.
    pub(super) errors: &'static [&'static [ErrorResponse]],
    /// Binds the handler to the method.
    pub(super) handler: fn(MethodFilter) -> MethodRouter<RequestContext>,
}

/// The methods in use.
#[derive(Debug, Clone, Copy)]
pub(super) enum RouteMethod {
    Delete,
    Get,
    Post,
    Put,
}

impl RouteMethod {
    /// The key of an operation in the `OpenAPI` document.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
        }
    }

    /// Whether the router takes a request with this method to the operation.
    fn answers(self, method: &Method) -> bool {
        match self {
            Self::Delete => method == Method::DELETE,
            // The router answers HEAD with the handler of GET.
            Self::Get => method == Method::GET || method == Method::HEAD,
            Self::Post => method == Method::POST,
            Self::Put => method == Method::PUT,
        }
    }

    pub(super) fn filter(self) -> MethodFilter {
        match self {
            Self::Delete => MethodFilter::DELETE,
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
        }
    }
}

/// A parameter in the path or the query.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) location: ParameterLocation,
    pub(super) description: &'static str,
    pub(super) schema: fn() -> Value,
}

/// Where a parameter is sent. Those in the path are required, those in the query are optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterLocation {
    Path,
    Query,
}

impl Parameter {
    pub(super) const fn path(name: &'static str, description: &'static str, schema: fn() -> Value) -> Self {
        Self { name, location: ParameterLocation::Path, description, schema }
    }

    pub(super) const fn query(name: &'static str, description: &'static str, schema: fn() -> Value) -> Self {
        Self { name, location: ParameterLocation::Query, description, schema }
    }
}

/// The form of a JSON body.
#[derive(Debug, Clone, Copy)]
pub(super) enum BodySchema {
    /// An object with a form that is described elsewhere.
    AnyObject,
    /// A list of such objects.
    AnyObjects,
    One(&'static Component),
    List(&'static Component),
}

/// An answer of status 2xx.
#[derive(Debug)]
pub(super) struct SuccessResponse {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) body: ResponseContent,
}

/// The body of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum ResponseContent {
    Empty,
    Json(BodySchema),
    /// Text of this media type.
    Text(&'static str),
}

/// An answer of status 4xx or 5xx: its status, and what it means. Its body is an `ErrorBody`.
pub(super) type ErrorResponse = (u16, &'static str);
