//! Handlers: how a hook is run once. Owns processes and closures; refuses to know runs, plans or other hooks.

pub mod command;
pub(crate) mod native;

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{model::EventKind, registry::Registered};

/// One hook to be run once for one event.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) hook: Arc<Registered>,
    pub(crate) event: EventKind,
    /// The workspace's directory.
    pub(crate) root: PathBuf,
    /// What the hook is told.
    pub(crate) envelope: Bytes,
    /// The variables its dialect gives it.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// The longest it may take.
    pub(crate) timeout: Duration,
}
