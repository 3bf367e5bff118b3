//! The hooks of an unpacked bundle: loaded as those of workspaces, and made a level above the user's.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    super::{
        DialectSelection, Settings, WorkspaceKind, WorkspaceSettings,
        load::load_alone,
        loaded_workspace::{LoadContext, LoadedWorkspace},
        settings::LevelSettings,
        trust::keep_sources_alone,
        workspace_options::{BrokenFilePolicy, RequiredHook, TrustPolicy},
    },
    condition::BundleCondition,
};
use crate::{
    bundle::{BundleManifest, BundleRejection, RejectionKind, VerifiedBundle},
    dialect::{NativeDialect, natives},
    model::{
        Approval, Diagnostic, DialectName, Handler, Hook, HookBundle, HookName, HookTrust, Scope, Severity,
        WorkspaceId,
    },
};

/// Where the hook files of a workspace are, in a bundle as everywhere.
const HOOK_FILES: &str = ".openharness/hooks/";

/// The most hooks of a bundle.
const MAX_HOOKS: usize = 2048;

/// What hooks are loaded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookPurpose {
    /// They are to run.
    InForce,
    /// They are only looked at, where the secrets and variables of the machines are not.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only commands look at bundles"))]
    Checked,
}

/// The hooks of a bundle, and what was found with them.
#[derive(Debug, Clone)]
pub(crate) struct BundleHooks {
    pub(crate) hooks: Vec<Hook>,
    pub(crate) required: Vec<RequiredHook>,
    /// Warnings, and errors about what is missing on this machine.
    pub(crate) diagnostics: Vec<Diagnostic>,
    copy: Arc<BundleCondition>,
}

fn refused(message: impl Into<String>) -> BundleRejection {
    BundleRejection::new(RejectionKind::Hooks, message)
}

/// Loads the hooks of a bundle whose files are unpacked in a directory. What the settings say about hooks does not count for
/// them: they run as the bundle says.
///
/// Returns an error if one of its hook files cannot be loaded here, or it has none.
pub(crate) fn load_bundle_hooks(
    bundle: &Arc<VerifiedBundle>,
    files: &Path,
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
    models: &dyn Fn(&str) -> bool,
    purpose: HookPurpose,
) -> Result<BundleHooks, BundleRejection> {
    let manifest = &bundle.manifest;
    refuse_settings_of_agents(manifest)?;
    let settings = settings_of_bundle(settings, purpose);
    let label = Arc::new(HookBundle::new(manifest.name.as_str(), manifest.version));
    let condition = Arc::new(BundleCondition::new(Arc::clone(bundle), files.to_owned()));
    let id = WorkspaceId::new(manifest.name.as_str()).map_err(|error| refused(error.to_string()))?;
    let mut found = BundleHooks {
        hooks: Vec::new(),
        required: Vec::new(),
        diagnostics: Vec::new(),
        copy: Arc::clone(&condition),
    };
    for root in workspaces(manifest, files) {
        let given = WorkspaceSettings {
            root,
            kind: Some(WorkspaceKind::Project),
            dialects: Some(DialectSelection::Only(vec![DialectName::OpenHarness])),
        };
        let context = LoadContext { models, ..LoadContext::new(environment) };
        let loaded = load_alone(&given, &id, &settings, &context);
        found.add(loaded, files, (&label, &condition), purpose)?;
    }
    if found.hooks.is_empty() || found.hooks.len() > MAX_HOOKS {
        return Err(refused(format!(
            "a bundle has 1 to {MAX_HOOKS} hooks; this one has {}",
            found.hooks.len()
        )));
    }
    found.require(&manifest.required)?;
    Ok(found)
}

/// The settings that hooks of a bundle are loaded with: nothing that a machine says about single hooks, and the sandbox of
/// the level that they become. Nobody is asked about them, as their signature answers for them.
fn settings_of_bundle(settings: &Settings, purpose: HookPurpose) -> Settings {
    let mut own = settings.clone();
    own.handlers = BTreeMap::new();
    own.levels = LevelSettings::default();
    own.required = Vec::new();
    own.workspaces = BTreeMap::new();
    own.workspace_roots = Vec::new();
    own.broken = BrokenFilePolicy::Keep;
    own.trust = match purpose {
        HookPurpose::InForce => TrustPolicy::Off,
        // Looks up nothing that hooks refer to.
        HookPurpose::Checked => TrustPolicy::Enforce,
    };
    own.sandbox.project = own.sandbox.managed.clone();
    own
}

/// The directories with hook files.
fn workspaces(manifest: &BundleManifest, files: &Path) -> BTreeSet<PathBuf> {
    let mut roots = BTreeSet::new();
    for path in manifest.files.keys() {
        let path = path.as_str();
        if let Some(at) = path.find(HOOK_FILES)
            && (at == 0 || path[..at].ends_with('/'))
        {
            roots.insert(files.join(path[..at].trim_end_matches('/')));
        }
    }
    roots
}

/// Hooks of agents' settings would be left out without a word.
fn refuse_settings_of_agents(manifest: &BundleManifest) -> Result<(), BundleRejection> {
    let files: Vec<_> = natives().flat_map(NativeDialect::files).collect();
    for path in manifest.files.keys() {
        let place = Path::new(path.as_str());
        if files.iter().any(|file| file.is_of_workspace() && file.location.has(place)) {
            return Err(refused(format!(
                "`{path}` is a settings file of an agent, which bundles do not have; rewrite its hooks with `hookyard \
                 convert --to openharness`"
            )));
        }
    }
    Ok(())
}

/// Whether a mistake leaves a hook out. What is missing on this machine is for the policy of the hook to judge.
fn is_fatal(found: &Diagnostic) -> bool {
    let of_machine = [
        "sandbox",
        Diagnostic::BROKEN_GUARD,
        Diagnostic::HTTP_TARGET,
        Diagnostic::TRUST,
        Diagnostic::TRUST_RECORD,
    ];
    found.severity == Severity::Error && !of_machine.contains(&found.code)
}

impl BundleHooks {
    /// Checks that the unpacked files are still what was signed.
    ///
    /// Returns what is different.
    pub(crate) fn check_copy(&self) -> Result<(), String> {
        self.copy.compare()
    }

    fn add(
        &mut self,
        loaded: LoadedWorkspace,
        files: &Path,
        (label, condition): (&Arc<HookBundle>, &Arc<BundleCondition>),
        purpose: HookPurpose,
    ) -> Result<(), BundleRejection> {
        if let Some(fatal) = loaded.diagnostics.iter().find(|found| is_fatal(found)) {
            let place = fatal.file.strip_prefix(files).unwrap_or(&fatal.file).display();
            return Err(refused(format!("{place}:{}: {}", fatal.line, fatal.message)));
        }
        self.diagnostics.extend(
            loaded
                .diagnostics
                .into_iter()
                .filter(|found| found.code != Diagnostic::HTTP_TARGET && found.code != Diagnostic::TRUST),
        );
        for mut hook in loaded.hooks {
            if let Some(known) = self.hooks.iter().find(|known| known.name == hook.name) {
                let files =
                    [known, &hook].map(|hook| hook.source.file.clone().unwrap_or_else(|| files.into()));
                let [one, other] = files.map(|file| file.display().to_string());
                return Err(refused(format!(
                    "two of its hooks are called `{}`: {one} and {other}",
                    hook.name
                )));
            }
            if purpose == HookPurpose::InForce
                && let Some(refusal) = hook.trust.refusal()
            {
                return Err(refused(format!("`{}` cannot run: {refusal}", hook.name)));
            }
            hook.trust = HookTrust::Approved(Approval::of_bundle(Arc::clone(condition) as _));
            hook.source.scope = Scope::Managed;
            hook.source.bundle = Some(Arc::clone(label));
            keep_sources_alone(&mut hook);
            if let Handler::Command(command) = &mut hook.handler
                && let Some(sandbox) = &mut command.sandbox
            {
                // The copy lies outside the workspace that it runs for.
                Arc::make_mut(sandbox).read.push(files.to_owned());
            }
            self.hooks.push(hook);
        }
        Ok(())
    }

    /// Has the hooks required that the bundle says so of.
    fn require(&mut self, names: &[String]) -> Result<(), BundleRejection> {
        for name in names {
            let hook = self.hooks.iter().find(|hook| hook.name.as_str() == name);
            match (hook, HookName::new(name)) {
                (Some(hook), Ok(name)) if hook.enabled => self.required.push(RequiredHook::new(name)),
                (Some(_), _) => return Err(refused(format!("the required hook `{name}` is disabled"))),
                (None, _) => return Err(refused(format!("it requires `{name}`, which it does not have"))),
            }
        }
        Ok(())
    }
}
