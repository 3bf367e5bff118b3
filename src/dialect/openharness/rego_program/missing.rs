//! Policies in a build without the feature `rego`: they fail at each event, so that the policy of a guard decides.

use std::sync::Arc;

use super::super::{lookup::ReferenceLookup, rego_sources::RegoSources};
#[cfg(any(feature = "cli", feature = "daemon"))]
use crate::model::TracedExpression;
use crate::model::{Capability, Ended, Failure, Reply, RuleCall, RuleProgram};

/// What lists show of the policies, and what stands in for them.
#[expect(clippy::unnecessary_wraps, reason = "a build with the feature finds mistakes")]
pub(in crate::dialect::openharness) fn program(
    sources: &RegoSources<'_>,
    _: &[Capability],
    _: &dyn ReferenceLookup,
) -> Option<(String, Arc<dyn RuleProgram>)> {
    let policies = sources.policies.iter().map(|(name, ..)| &**name);
    let names: Vec<&str> = policies.chain(sources.data.iter().map(|(name, _)| &**name)).collect();
    Some((names.join(", "), Arc::new(MissingPrograms)))
}

#[derive(Debug)]
struct MissingPrograms;

impl RuleProgram for MissingPrograms {
    fn judge(&self, _: RuleCall<'_>) -> Result<Reply, Failure> {
        let message = "this build of hookyard runs no rego hooks; build it with the feature `rego`";
        Err(Failure::new(Ended::SpawnFailed, message))
    }

    #[cfg(any(feature = "cli", feature = "daemon"))]
    fn explain(&self, _: RuleCall<'_>) -> Vec<TracedExpression> {
        Vec::new()
    }
}
