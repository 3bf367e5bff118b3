//! What a person is shown before agreeing to the hooks of a workspace, and the agreement.

use std::path::Path;

use super::{
    super::{
        LoadContext, LoadedWorkspace, Settings, TrustPolicy, WorkspaceSettings, digests::sha256,
        load::read_workspace,
    },
    copy_writer,
    inspect::Inspector,
    record::{TreeFile, TrustRecord},
    store::{Environment, TrustError, TrustStore, is_replaced, store_for},
};
use crate::model::{DialectName, Scope, TrustState};

/// The hooks of a workspace, with what was agreed to about them before.
pub(crate) struct TrustReview {
    store: TrustStore,
    pub(crate) hooks: Vec<ReviewedHook>,
}

/// A hook of a workspace as it is now and as it was agreed to.
#[derive(Debug)]
pub(crate) struct ReviewedHook {
    pub(crate) name: String,
    pub(crate) before: Option<TrustRecord>,
    /// As it is now; `None` if it is gone. An error says why nobody can agree to it.
    pub(crate) now: Option<Result<TrustRecord, String>>,
}

impl ReviewedHook {
    /// What agreeing to it would mean, in one line.
    fn summary(&self) -> String {
        let former = self.before.as_ref().map(TrustRecord::digest).unwrap_or_default();
        match &self.now {
            Some(Ok(now)) => format!("{} {}", self.name, now.digest()),
            Some(Err(_)) => format!("{} unreadable {former}", self.name),
            None => format!("{} gone {former}", self.name),
        }
    }

    /// What is known about the trust in it.
    pub(crate) fn state(&self) -> TrustState {
        match (&self.before, &self.now) {
            (None, _) => TrustState::Untrusted,
            (Some(_), None) => TrustState::Missing,
            (Some(before), Some(Ok(now))) if before.confirm(now).is_ok() => TrustState::Trusted,
            (Some(_), Some(_)) => TrustState::Modified,
        }
    }
}

impl TrustReview {
    /// Reads the hooks of a workspace and the records of trust. Hooks named in `in_place` are to run in the workspace;
    /// others as they did before.
    pub(crate) fn of(
        root: &Path,
        settings: &Settings,
        environment: Environment<'_>,
        in_place: bool,
    ) -> Result<Self, TrustError> {
        let store = store_for(root, settings, environment)?;
        let records = store.read()?;
        // As the files have them, with nothing looked up: nobody has agreed to anything.
        let as_written = Settings { trust: TrustPolicy::Enforce, ..settings.clone() };
        let context = LoadContext::new(environment);
        let LoadedWorkspace { workspace, hooks: found, definitions, .. } =
            read_workspace(&WorkspaceSettings::new(root), None, &as_written, &context, &mut []);
        let inspector = Inspector::new(&workspace, &definitions);
        let own = inspector.root().map_err(|why| TrustError::new(root, why, "rename the directory"))?;
        let of_workspace =
            found.iter().filter(|hook| matches!(hook.source.scope, Scope::Project | Scope::Local));
        let mut hooks: Vec<ReviewedHook> = of_workspace
            .map(|hook| {
                let before = records.iter().find(|record| record.is_about(&own, hook.name.as_str())).cloned();
                let in_place = in_place || before.as_ref().is_some_and(|record| record.in_place);
                let now = inspector.inspect(hook, in_place);
                ReviewedHook { name: hook.name.to_string(), before, now: Some(now) }
            })
            .collect();
        let gone = records.iter().filter(|record| record.root == own);
        for record in gone.filter(|record| !found.iter().any(|hook| hook.name.as_str() == record.hook)) {
            // A file that is there and has no such hook may only be broken: its record stays.
            let is_there = !is_replaced(root) && root.join(&record.file).symlink_metadata().is_ok();
            let is_hook_file = record.dialect == DialectName::OpenHarness.as_str();
            let broken =
                || Err(format!("`{}` has errors, or another hook; see `hookyard check`", record.file));
            let now = (is_there && is_hook_file).then(broken);
            hooks.push(ReviewedHook { name: record.hook.clone(), before: Some(record.clone()), now });
        }
        hooks.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { store, hooks })
    }

    /// The digest of everything that is agreed to, which includes that hooks are gone.
    pub(crate) fn digest(&self) -> String {
        let lines: Vec<String> = self.hooks.iter().map(ReviewedHook::summary).collect();
        sha256(lines.join("\n").as_bytes())
    }

    fn current(&self) -> impl Iterator<Item = &TrustRecord> {
        self.hooks.iter().filter_map(|hook| hook.now.as_ref()?.as_ref().ok())
    }

    /// Whether everything is agreed to as it is.
    pub(crate) fn is_agreed(&self) -> bool {
        self.hooks.iter().all(|hook| hook.state() == TrustState::Trusted)
    }

    /// Agrees to all hooks as they were read, and forgets those that are gone.
    pub(crate) fn agree(&self, root: &Path) -> Result<(), TrustError> {
        for record in self.current() {
            copy_writer::make(&self.store, record)?;
        }
        let own = root.to_str().unwrap_or_default();
        self.store.update(|records| {
            let unreadable = |name: &str| {
                self.hooks.iter().any(|hook| hook.name == name && matches!(hook.now, Some(Err(_))))
            };
            records.retain(|record| record.root != own || unreadable(&record.hook));
            records.extend(self.current().cloned());
        })
    }

    /// Agrees to some of the hooks as they were read, and leaves the others as they are.
    #[cfg(feature = "daemon")]
    pub(crate) fn agree_to(&self, root: &Path, agreed: &[&ReviewedHook]) -> Result<(), TrustError> {
        let now: Vec<&TrustRecord> =
            agreed.iter().filter_map(|hook| hook.now.as_ref()?.as_ref().ok()).collect();
        for record in &now {
            copy_writer::make(&self.store, record)?;
        }
        let own = root.to_str().unwrap_or_default();
        self.store.update(|records| {
            records
                .retain(|record| record.root != own || !now.iter().any(|agreed| agreed.hook == record.hook));
            records.extend(now.iter().map(|record| (*record).clone()));
        })
    }

    /// The text of a file as it was agreed to.
    pub(crate) fn former_text(&self, record: &TrustRecord, path: &str) -> Option<String> {
        copy_writer::text(&self.store, record, path)
    }

    /// The text of a file as it would be agreed to; none if it has changed meanwhile.
    pub(crate) fn current_text(record: &TrustRecord, file: &TreeFile) -> Option<String> {
        let bytes = copy_writer::current(record, file).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Forgets the trust in the hooks of a workspace, or in one of them. Returns the names of those that were trusted.
pub(crate) fn revoke_trust(
    root: &Path,
    name: Option<&str>,
    settings: &Settings,
    environment: Environment<'_>,
) -> Result<Vec<String>, TrustError> {
    let store = store_for(root, settings, environment)?;
    let own = root.to_str().unwrap_or_default();
    let mut revoked = Vec::new();
    let mut left = Vec::new();
    store.update(|records| {
        let is_meant =
            |record: &TrustRecord| record.root == own && name.is_none_or(|name| record.hook == name);
        revoked.extend(records.iter().filter(|record| is_meant(record)).map(|record| record.hook.clone()));
        records.retain(|record| !is_meant(record));
        left.clone_from(records);
    })?;
    copy_writer::remove_unused(&store, &left);
    Ok(revoked)
}
