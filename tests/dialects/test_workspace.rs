//! A workspace of a test, with a home and a system directory beside it.

use std::{fs, path::PathBuf};

use hookyard::{
    Orchestrator,
    config::{HttpSettings, Settings},
    model::Diagnostic,
};
use tempfile::TempDir;

use crate::support::cases::{Files, write_files};

/// The folders `workspace`, `home` and `system` in a directory of their own.
pub(crate) struct TestWorkspace {
    directory: TempDir,
}

impl TestWorkspace {
    pub(crate) fn new() -> Self {
        let workspace = Self { directory: tempfile::tempdir().unwrap() };
        for folder in ["workspace", "home", "system"] {
            fs::create_dir(workspace.path(folder)).unwrap();
        }
        workspace
    }

    /// With the files of a case.
    pub(crate) fn of(files: &Files) -> Self {
        let workspace = Self::new();
        write_files(files, workspace.directory.path());
        workspace
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(below)
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            home: Some(self.path("home")),
            system_directory: Some(self.path("system")),
            trust: hookyard::config::TrustPolicy::Off,
            // Where http hooks of these tests ask, and nobody answers.
            http: HttpSettings { allow: vec!["127.0.0.1:9".parse().unwrap()] },
            ..Settings::default()
        }
    }

    pub(crate) async fn start(&self) -> Orchestrator {
        let builder = Orchestrator::builder()
            .trust(hookyard::config::TrustPolicy::Off)
            .workspace(self.path("workspace"));
        builder.settings(self.settings()).start().await.unwrap()
    }

    /// A text with `$DIR` for the directory.
    pub(crate) fn with_placeholder(&self, text: &str) -> String {
        text.replace(self.directory.path().canonicalize().unwrap().to_str().unwrap(), "$DIR")
    }
}

pub(crate) fn messages(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|d| format!("{}: {d}", format!("{:?}", d.severity).to_lowercase())).collect()
}
