//! What hook files are checked against.

use super::Settings;
use crate::dialect::{HookRules, UnixSockets, UnsafeVariables};

/// What hook files are checked against under these settings.
pub(super) fn hook_rules(settings: &Settings) -> HookRules {
    HookRules {
        default_timeout: settings.default_timeout,
        max_timeout: settings.max_timeout,
        unsafe_variables: if settings.allow_unsafe_environment {
            UnsafeVariables::Allowed
        } else {
            UnsafeVariables::Refused
        },
        unix_sockets: if settings.allow_unix_sockets { UnixSockets::Allowed } else { UnixSockets::Refused },
    }
}
