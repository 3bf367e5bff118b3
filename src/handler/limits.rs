//! Limits of handlers that come from the settings.

/// How much output of a command is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandLimits {
    /// Bytes of standard output, or of one line of a worker; more makes the reply invalid.
    pub(crate) stdout: usize,
    /// Bytes of standard error; of more, head and tail are kept.
    pub(crate) stderr: usize,
}

/// Limits of an HTTP client.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "_http-client"), expect(dead_code, reason = "no HTTP client is compiled in"))]
pub(crate) struct HttpLimits {
    /// Bytes of a response body, decoded; more makes the reply invalid.
    pub(crate) body: usize,
    /// How many idle connections to one server are kept.
    pub(crate) max_idle: usize,
}
