//! The page for browsers, and how its readers sign in, with their part of the route table.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode, Uri,
        header::{
            ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
            IF_NONE_MATCH, REFERRER_POLICY, SET_COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
        },
        request::Parts,
    },
    response::{IntoResponse, Response},
    routing::on,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    extract::PathParameter,
    operation::{
        BodySchema::One,
        Operation, Parameter, RequestLimit,
        ResponseContent::{Empty, Json as JsonContent, Text},
        Route, RouteMethod, SuccessResponse, ok,
    },
    shared::{BODY_ERRORS, NO_PAGE, NO_PAGE_FILE, NO_SESSION, SIGN_IN_ERRORS},
};
use crate::daemon::{
    auth::AccessRight,
    error::ApiError,
    page::{self, PageFile, PageLink, PageSessions, SignInError},
    request_body,
    schema::{Component, object, string, unsigned},
    state::{DaemonState, RequestContext},
};

/// The largest body of a sign-in, in bytes.
const MAX_BODY_BYTES: usize = 4096;

/// The longest code that is looked at, in bytes.
const MAX_CODE_BYTES: usize = 256;

const PAGE_FILE: Parameter = Parameter::path("id", "The name of the file", || json!({ "type": "string" }));

/// A link that signs in once.
#[derive(Debug, Serialize)]
struct PageLinkView {
    /// The path with its fragment, which browsers do not send.
    path: String,
    /// The TCP address of the daemon.
    address: String,
    right: &'static str,
    lifetime_ms: u64,
}

pub(super) static PAGE_LINK_VIEW: Component = Component::built("PageLinkView", || {
    object(
        "A link that signs in to the page once.",
        [
            ("path", string("The path and the fragment of the link. The secret is in the fragment.")),
            ("address", string("The TCP address of the daemon.")),
            ("right", string("`read` or `control`.")),
            ("lifetime_ms", unsigned("How long the link can be used, in milliseconds.")),
        ],
        &[],
    )
});

/// The secret of a link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignInRequest {
    code: String,
}

pub(super) static SIGN_IN_REQUEST: Component = Component::built("SignInRequest", || {
    let mut code = string("The secret of the link.");
    code["maxLength"] = MAX_CODE_BYTES.into();
    let mut schema = object("The secret of a link.", [("code", code)], &[]);
    schema["additionalProperties"] = false.into();
    schema
});

/// A session of the page.
#[derive(Debug, Serialize)]
struct PageSessionView {
    right: &'static str,
    lifetime_ms: u64,
    /// The token that each request of the page has in a header; only at the sign-in.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

pub(super) static PAGE_SESSION_VIEW: Component = Component::built("PageSessionView", || {
    object(
        "A session of the page.",
        [
            ("right", string("`read` or `control`.")),
            ("lifetime_ms", unsigned("How long it lasts at most, in milliseconds.")),
            ("token", string("What each request has in the header `x-hookyard-page`; only at the sign-in.")),
        ],
        &["token"],
    )
});

const THE_LINK: &[SuccessResponse] = &[ok("The link", JsonContent(One(&PAGE_LINK_VIEW)))];

const THE_SESSION: &[SuccessResponse] = &[ok("The session", JsonContent(One(&PAGE_SESSION_VIEW)))];

const UNCHANGED: SuccessResponse =
    SuccessResponse { status: 304, description: "The client has it, as `If-None-Match` says", body: Empty };

/// What all page operations share.
const fn operation(
    method: RouteMethod,
    (id, summary): (&'static str, &'static str),
    right: AccessRight,
    success: &'static [SuccessResponse],
    handler: fn(axum::routing::MethodFilter) -> axum::routing::MethodRouter<RequestContext>,
) -> Operation {
    Operation {
        method,
        id,
        tag: "page",
        right,
        summary,
        description: "",
        parameters: &[],
        request: None,
        success,
        errors: &[],
        handler,
    }
}

pub(super) const INDEX: Route = Route {
    path: "/",
    limit: RequestLimit::Exempt,
    operations: &[operation(
        RouteMethod::Get,
        ("getPage", "Show the page for browsers, which signs in with the link of `hookyard ui`."),
        AccessRight::Page,
        &[ok("The page", Text("text/html")), UNCHANGED],
        |method| on(method, show_page),
    )],
};

pub(super) const FILES: Route = Route {
    path: "/page/{id}",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        parameters: &[PAGE_FILE],
        errors: &[NO_PAGE_FILE],
        ..operation(
            RouteMethod::Get,
            ("getPageFile", "Get a file of the page."),
            AccessRight::Page,
            &[ok("The file", Text("*/*")), UNCHANGED],
            |method| on(method, show_file),
        )
    }],
};

pub(super) const LINK: Route = Route {
    path: "/v1/page/link",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        errors: &[NO_PAGE],
        ..operation(
            RouteMethod::Post,
            ("makePageLink", "Make a link that signs in to the page once, to read."),
            AccessRight::Read,
            THE_LINK,
            |method| on(method, make_link),
        )
    }],
};

pub(super) const CONTROL_LINK: Route = Route {
    path: "/v1/page/control-link",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        errors: &[NO_PAGE],
        ..operation(
            RouteMethod::Post,
            ("makePageControlLink", "Make a link that signs in to the page once, to read and to control."),
            AccessRight::Control,
            THE_LINK,
            |method| on(method, make_control_link),
        )
    }],
};

pub(super) const SESSION: Route = Route {
    path: "/v1/page/session",
    limit: RequestLimit::Exempt,
    operations: &[
        Operation {
            request: Some(One(&SIGN_IN_REQUEST)),
            errors: &[SIGN_IN_ERRORS, BODY_ERRORS],
            description: "Only the page itself can: the request needs its `Origin`. The answer sets a cookie.",
            ..operation(
                RouteMethod::Post,
                ("signInToPage", "Sign in to the page with the secret of a link."),
                AccessRight::Page,
                THE_SESSION,
                |method| on(method, sign_in),
            )
        },
        Operation {
            errors: &[NO_SESSION],
            ..operation(
                RouteMethod::Get,
                ("getPageSession", "Show the session of the page that asks."),
                AccessRight::Read,
                THE_SESSION,
                |method| on(method, show_session),
            )
        },
        Operation {
            errors: &[NO_SESSION],
            ..operation(
                RouteMethod::Delete,
                ("signOutOfPage", "End the session of the page that asks."),
                AccessRight::Read,
                &[SuccessResponse { status: 204, description: "The session has ended", body: Empty }],
                |method| on(method, sign_out),
            )
        },
    ],
};

async fn show_page(headers: HeaderMap) -> Result<Response, ApiError> {
    file("index.html", &headers)
}

async fn show_file(PathParameter(name): PathParameter, headers: HeaderMap) -> Result<Response, ApiError> {
    file(&name, &headers)
}

fn file(name: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let found = page::page_file(name).ok_or_else(|| {
        ApiError::not_found("no_file", format!("the page has no file {name:?}"), "load the page again")
    })?;
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == found.tag.as_bytes());
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { body_of(found, headers) };
    let answered = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&found.tag) {
        answered.insert(ETAG, tag);
    }
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, page::CONTENT_SECURITY_POLICY),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (VARY, HeaderValue::from_static("accept-encoding")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ] {
        answered.insert(name, value);
    }
    Ok(response)
}

fn body_of(file: &'static PageFile, headers: &HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|accepted| accepted.to_str().ok());
    let takes_gzip = accepted.is_some_and(|accepted| accepted.contains("gzip"));
    let media_type = [(CONTENT_TYPE, file.media_type)];
    if takes_gzip {
        (media_type, [(CONTENT_ENCODING, "gzip")], file.packed.clone()).into_response()
    } else {
        (media_type, file.bytes).into_response()
    }
}

type LinkAnswer = Result<Json<PageLinkView>, ApiError>;

async fn make_link(State(state): State<Arc<DaemonState>>, headers: HeaderMap) -> LinkAnswer {
    link(&state, &headers, AccessRight::Read)
}

async fn make_control_link(State(state): State<Arc<DaemonState>>, headers: HeaderMap) -> LinkAnswer {
    link(&state, &headers, AccessRight::Control)
}

fn link(state: &DaemonState, headers: &HeaderMap, right: AccessRight) -> LinkAnswer {
    // A session that could make itself another one would have no end.
    if PageSessions::are_meant(headers) {
        let (message, hint) = ("a page that is signed in makes no links", "run `hookyard ui` in a terminal");
        return Err(ApiError::new(StatusCode::FORBIDDEN, "from_page", message, hint));
    }
    let address = state.addresses.tcp.ok_or_else(|| {
        let message = "the daemon has no address for browsers";
        let hint = "set `listen.tcp`, such as `127.0.0.1:8787`, and start the daemon anew";
        ApiError::new(StatusCode::CONFLICT, "no_page", message, hint)
    })?;
    let PageLink { code, lifetime } = state.tokens.sessions.link(right)?;
    Ok(Json(PageLinkView {
        path: format!("/#sign-in={code}"),
        address: address.to_string(),
        right: right.as_str(),
        lifetime_ms: whole_ms(lifetime),
    }))
}

async fn sign_in(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    request: Request,
) -> Result<Response, ApiError> {
    let (Parts { uri, headers, .. }, body) = request.into_parts();
    let SignInRequest { code } = read_code(&headers, body, &share).await?;
    let signed_in = state.tokens.sessions.sign_in(&code, &uri, &headers)?;
    let view = PageSessionView {
        right: signed_in.right.as_str(),
        lifetime_ms: whole_ms(signed_in.lifetime),
        token: Some(signed_in.token),
    };
    let cookie = HeaderValue::from_str(&signed_in.set_cookie).map_err(|_| SignInError::NoOrigin)?;
    tracing::info!(right = view.right, "somebody has signed in to the page");
    Ok(([(SET_COOKIE, cookie), (CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(view))
        .into_response())
}

async fn read_code(
    headers: &HeaderMap,
    body: Body,
    share: &crate::daemon::listener_share::ListenerShare,
) -> Result<SignInRequest, ApiError> {
    request_body::read_as(headers, body, share.body_bounds(MAX_BODY_BYTES)).await
}

async fn show_session(
    State(state): State<Arc<DaemonState>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Json<PageSessionView>, ApiError> {
    let granted = state.tokens.sessions.granted(&uri, &headers).ok_or_else(no_session)?;
    let (right, lifetime) = granted;
    Ok(Json(PageSessionView { right: right.as_str(), lifetime_ms: whole_ms(lifetime), token: None }))
}

async fn sign_out(
    State(state): State<Arc<DaemonState>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    if state.tokens.sessions.sign_out(&uri, &headers) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_session())
    }
}

fn no_session() -> ApiError {
    let hint = "only the page has a session; sign in with the link that `hookyard ui` prints";
    ApiError::not_found("no_session", "the request has no session", hint)
}

fn whole_ms(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl From<SignInError> for ApiError {
    fn from(error: SignInError) -> Self {
        let message = error.to_string();
        match error {
            SignInError::BadLink => {
                Self::new(StatusCode::FORBIDDEN, "bad_link", message, "run `hookyard ui` for another link")
            }
            SignInError::NoOrigin => {
                Self::bad_request("no_origin", message, "open the link of `hookyard ui` in a browser")
            }
            SignInError::OtherOrigin => Self::new(
                StatusCode::FORBIDDEN,
                "forbidden",
                message,
                "open the link of `hookyard ui` itself",
            ),
            SignInError::NoRandom => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "no_random",
                message,
                "look at the daemon's log and at the machine",
            ),
        }
    }
}
