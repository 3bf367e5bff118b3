//! The level of the signed bundle: its hooks, or the block in the place of a bundle that cannot be used.

use std::path::Path;

use super::{broken_hooks::block_of_bundle, settings::StalePolicy, workspace_options::RequiredHook};
use crate::model::{Diagnostic, FailurePolicy, Hook, HookBundle, Severity};

/// The hooks that apply in every workspace because a signed bundle has them. Nothing below switches them off.
#[derive(Debug, Clone, Default)]
pub(crate) struct ManagedLevel {
    pub(crate) hooks: Vec<Hook>,
    /// Those that must be in force.
    pub(crate) required: Vec<RequiredHook>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl ManagedLevel {
    /// The block in the place of a bundle that cannot be used: there is nothing to keep, so that `keep` blocks as well.
    pub(crate) fn unusable(place: &Path, policy: StalePolicy, why: &str) -> Self {
        let policy = match policy {
            StalePolicy::Ask => FailurePolicy::Ask,
            StalePolicy::Keep | StalePolicy::Deny => FailurePolicy::Deny,
        };
        let mut level = Self::default();
        level.add_block(place, policy, Severity::Error, why, HookBundle::none());
        level
    }

    /// Has every event that can be stopped denied or asked about as well.
    pub(super) fn add_block(
        &mut self,
        place: &Path,
        policy: FailurePolicy,
        severity: Severity,
        why: &str,
        bundle: HookBundle,
    ) {
        let message = match policy {
            FailurePolicy::Ignore => why.to_owned(),
            FailurePolicy::Ask => format!("{why}; every event that can be stopped is asked about"),
            FailurePolicy::Deny => format!("{why}; every event that can be stopped is blocked"),
        };
        self.diagnostics.push(Diagnostic::of_file(severity, Diagnostic::BUNDLE, place, message));
        if policy != FailurePolicy::Ignore {
            self.hooks.extend(block_of_bundle(place, policy, why, bundle));
        }
    }
}

/// The level of the bundle that the settings name. This build cannot check a signature.
#[cfg(not(feature = "daemon"))]
pub(crate) fn managed_level(
    settings: &super::Settings,
    _: &dyn Fn(&str) -> Option<String>,
    _: &dyn Fn(&str) -> bool,
) -> Option<ManagedLevel> {
    let why = "the settings name a signed bundle, and this build of hookyard lacks the feature `daemon`, which checks it";
    let policy = settings.bundle.on_stale;
    settings.bundle.is_configured().then(|| ManagedLevel::unusable(Path::new("bundle"), policy, why))
}
