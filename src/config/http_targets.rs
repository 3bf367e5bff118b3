//! Http hooks that ask a server which the settings do not let hooks of workspaces ask.

use super::Settings;
use crate::model::{
    Diagnostic, Handler, Hook, HttpHandler, HttpTarget, Scope, Severity, is_certainly_private,
    literal_address,
};

/// An error about each enabled hook of the workspace that would be refused its server. It stays loaded and fails at
/// each event, so that the policy of a guard decides. What a name stands for is only known when it is resolved.
pub(super) fn refused_targets(hooks: &[Hook], settings: &Settings) -> Vec<Diagnostic> {
    let mut refused = Vec::new();
    for hook in hooks.iter().filter(|hook| hook.enabled) {
        let Handler::Http(http) = &hook.handler else { continue };
        let is_of_workspace = matches!(hook.source.scope, Scope::Project | Scope::Local);
        if is_of_workspace && is_refused(http, &settings.http.allow) {
            refused.extend(refusal(hook, http));
        }
    }
    refused
}

fn is_refused(http: &HttpHandler, allow: &[HttpTarget]) -> bool {
    let url = http.address.url();
    let is_allowed = |target: &HttpTarget| {
        target.is_server_of(url) || literal_address(url).is_some_and(|address| target.has_address(address))
    };
    http.address.socket().is_none() && is_certainly_private(url) && !allow.iter().any(is_allowed)
}

fn refusal(hook: &Hook, http: &HttpHandler) -> Option<Diagnostic> {
    let server = http.address.server();
    let message = format!(
        "`{}` may not connect to {server}: it is not a public server, and `http.allow` does not list it",
        hook.name
    );
    let help = format!("to allow it, add `{server}` to `http.allow` in the settings");
    let file = hook.source.file.as_deref()?;
    let diagnostic = Diagnostic::of_file(Severity::Error, Diagnostic::HTTP_TARGET, file, message).help(help);
    Some(Diagnostic { line: hook.source.line, column: 1, ..diagnostic })
}
