//! The rules of the settings that hook files are checked against.

use std::time::Duration;

/// What hook files are checked against.
#[derive(Debug, Clone, Copy)]
pub struct HookRules {
    /// The timeout of a hook that has none.
    pub default_timeout: Duration,
    /// The longest timeout a hook may have.
    pub max_timeout: Duration,
    /// Whether hooks may set variables that make programs run other code.
    pub unsafe_variables: UnsafeVariables,
    /// Whether hooks may ask servers at Unix sockets.
    pub unix_sockets: UnixSockets,
}

/// Whether hooks may set variables that make programs run code of someone else's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnsafeVariables {
    /// They may not.
    #[default]
    Refused,
    /// They may.
    Allowed,
}

/// Whether hooks may ask servers at Unix sockets. What listens there often trusts whoever can connect, and may
/// be able to do more than any hook should, as the sockets of container engines are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnixSockets {
    /// They may not.
    #[default]
    Refused,
    /// They may.
    Allowed,
}
