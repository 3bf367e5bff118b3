//! The policies of a hook file, and what they are compiled with.

use std::sync::Arc;

use super::super::Value;
use crate::model::{DialectName, Json};

/// What is compiled, and what it is compiled with.
pub(super) struct RegoSources<'d> {
    /// The policies: each with where the hook file names or has it.
    pub(super) policies: Vec<(Arc<str>, Arc<str>, Value<'d>)>,
    /// The JSON documents.
    pub(super) data: Vec<(Arc<str>, Json)>,
    pub(super) input: Option<DialectName>,
    pub(super) is_strict: bool,
}

impl RegoSources<'_> {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { policies: Vec::new(), data: Vec::new(), input: None, is_strict: true }
    }
}
