//! Logs a program's standard error at level debug, without secrets.

use crate::{
    model::{Failure, RawReply},
    registry::RegisteredHook,
    telemetry::EVENTS_TARGET,
};

/// How much of a program's standard error is logged, in bytes.
const MOST_LOGGED: usize = 4096;

/// Logs the standard error of a program at level debug.
pub(super) fn log_errors(registered: &RegisteredHook, raw: &Result<RawReply, Failure>) {
    let Ok(RawReply::Command { stderr, .. }) = raw else { return };
    if stderr.is_empty() || !tracing::enabled!(target: EVENTS_TARGET, tracing::Level::DEBUG) {
        return;
    }
    let text = String::from_utf8_lossy(stderr);
    // Redacted before it is cut: a part of a secret would not be recognised.
    let text = registered.redactor.text(&text);
    let shown = &text[..text.floor_char_boundary(MOST_LOGGED)];
    tracing::debug!(target: EVENTS_TARGET, hook = %registered.hook.name, stderr = shown.trim_end(), "standard error of a hook");
}
