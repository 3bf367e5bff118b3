//! Hooks that run in the workspace: whether the files that they run are still those that were agreed to, right before
//! each start.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use super::{
    super::{
        digests::{FileVersion, RECENT},
        files::DefinitionFiles,
    },
    inspect::Inspector,
    record::TrustRecord,
    shell_words::trust_command,
};
use crate::model::{Hook, StartCondition, Workspace};

/// The files and directories that were looked at for a hook, each as it was before it was read.
#[derive(Debug)]
struct ReadFiles {
    versions: BTreeMap<PathBuf, FileVersion>,
    /// Whether all of them had been left alone for a while, so that each change shows in their times.
    is_settled: bool,
}

/// The agreement to a hook that runs in the workspace, and what it takes to check it again.
#[derive(Debug)]
pub(super) struct InPlaceAgreement {
    workspace: Workspace,
    definitions: DefinitionFiles,
    hook: Hook,
    record: TrustRecord,
    digest: String,
    read: Mutex<Arc<ReadFiles>>,
}

impl ReadFiles {
    fn of(versions: BTreeMap<PathBuf, FileVersion>, began: Duration) -> Self {
        let settled_before = began.saturating_sub(RECENT);
        let is_settled = versions.values().all(|version| version.changed() < settled_before);
        Self { versions, is_settled }
    }

    /// Whether nothing has changed since. Looks up the times of each file and directory, and reads none.
    fn are_unchanged(&self) -> bool {
        self.is_settled
            && self.versions.iter().all(|(path, version)| FileVersion::at(path).as_ref() == Some(version))
    }
}

impl InPlaceAgreement {
    /// The agreement to a hook, if the hook is what was agreed to. The files are read again, not as the inspector knows
    /// them.
    ///
    /// Returns what is different.
    pub(super) fn confirm(
        Inspector { workspace, definitions, .. }: &Inspector<'_>,
        hook: &Hook,
        record: &TrustRecord,
    ) -> Result<Self, String> {
        let file = hook.source.file.as_deref();
        let definitions = definitions.iter().filter(|(path, _)| Some(path.as_path()) == file);
        let definitions: DefinitionFiles =
            definitions.map(|(path, bytes)| (path.clone(), Arc::clone(bytes))).collect();
        let read = read_files(workspace, &definitions, hook, record)?;
        Ok(Self {
            workspace: Workspace::clone(workspace),
            definitions,
            hook: hook.clone(),
            record: record.clone(),
            digest: record.digest(),
            read: Mutex::new(Arc::new(read)),
        })
    }
}

impl StartCondition for InPlaceAgreement {
    fn agreement(&self) -> &str {
        &self.digest
    }

    fn check(&self) -> Result<(), String> {
        let known = Arc::clone(&self.read.lock());
        if known.are_unchanged() {
            return Ok(());
        }
        let read =
            read_files(&self.workspace, &self.definitions, &self.hook, &self.record).map_err(|why| {
                format!("{why}; run {} to see the difference", trust_command(&self.workspace.root, ""))
            })?;
        *self.read.lock() = Arc::new(read);
        Ok(())
    }
}

/// Reads all that a hook runs, as it would be read when it is loaded.
fn read_files(
    workspace: &Workspace,
    definitions: &DefinitionFiles,
    hook: &Hook,
    record: &TrustRecord,
) -> Result<ReadFiles, String> {
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if workspace.root.canonicalize().ok().as_ref() != Some(&workspace.root) {
        return Err("the directory of the workspace is gone, or a link is in its place".to_owned());
    }
    let inspector = Inspector::new(workspace, definitions);
    let now = inspector.inspect(hook, true)?;
    record.confirm(&now)?;
    Ok(ReadFiles::of(inspector.trees.into_versions(), began))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::time::Instant;

    use super::{
        super::super::{LoadedWorkspace, Settings, TrustPolicy, load_workspace},
        *,
    };

    const SCRIPT: &str = ".openharness/scripts/guard.sh";

    #[test]
    fn a_change_shows_in_the_times_of_files_that_had_been_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for (path, text) in [
            (
                ".openharness/hooks/guard.yaml",
                "name: guard\nevents: [before_tool_dispatch]\nhandler: {type: command, command: sh .openharness/scripts/guard.sh}\n",
            ),
            (SCRIPT, "exit 2\n"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let settings = Settings { trust: TrustPolicy::Off, ..Settings::default() };
        let LoadedWorkspace { workspace, hooks, definitions, .. } =
            load_workspace(root, None, &settings, &|_| None);
        let inspector = Inspector::new(&workspace, &definitions);
        let record = inspector.inspect(&hooks[0], true).unwrap();
        let agreement = InPlaceAgreement::confirm(&inspector, &hooks[0], &record).unwrap();
        let read = agreement.read.lock().clone();
        let read_paths: Vec<_> =
            read.versions.keys().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap()).collect();
        assert_eq!(read_paths, [".openharness", ".openharness/hooks", ".openharness/scripts", SCRIPT]);
        assert!(!read.is_settled && !read.are_unchanged(), "the files are new");
        let limit = Instant::now() + Duration::from_mins(1);
        while !agreement.read.lock().is_settled {
            assert!(Instant::now() < limit, "they are never settled");
            agreement.check().unwrap();
        }
        assert!(agreement.read.lock().are_unchanged());

        let before = root.join(SCRIPT).metadata().unwrap().modified().unwrap();
        fs::write(root.join(SCRIPT), "exit 0\n").unwrap();
        fs::File::options().write(true).open(root.join(SCRIPT)).unwrap().set_modified(before).unwrap();
        let why = agreement.check().unwrap_err();
        assert!(why.contains("changed since it was trusted: .openharness/scripts/guard.sh;"), "{why}");
        fs::write(root.join(SCRIPT), "exit 2\n").unwrap();
        agreement.check().unwrap();
        fs::write(root.join(".openharness/scripts/more.sh"), "").unwrap();
        assert!(agreement.check().unwrap_err().contains("scripts/more.sh"));
    }
}
