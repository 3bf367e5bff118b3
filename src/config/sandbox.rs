//! Gives each command hook the sandbox of its level, and reports what this machine cannot enforce.

use std::{path::Path, sync::Arc};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope as Border,
};

use serde::Serialize;

use super::settings::SandboxSettings;
use crate::model::{Diagnostic, FilesystemAccess, Handler, Hook, Sandbox, Scope, Severity};

/// The code of diagnostics about sandboxes.
const CODE: &str = "sandbox";

/// What the kernel can restrict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a feature of the kernel of its own")]
pub(crate) struct KernelSandbox {
    /// Reading and writing of files.
    pub(crate) files: bool,
    /// Truncation of files as well.
    pub(crate) truncation: bool,
    /// TCP. Sockets as a whole are refused by other means on every kernel.
    pub(crate) tcp: bool,
    /// Signals to processes and connections to abstract sockets outside.
    pub(crate) border: bool,
}

impl KernelSandbox {
    /// Asks the kernel.
    pub(crate) fn detect() -> Self {
        let has_files = |abi| {
            let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
            ruleset.handle_access(AccessFs::from_all(abi)).and_then(Ruleset::create).is_ok()
        };
        let ruleset = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        Self {
            files: has_files(ABI::V1),
            truncation: has_files(ABI::V3),
            tcp: ruleset().handle_access(AccessNet::from_all(ABI::V4)).and_then(Ruleset::create).is_ok(),
            border: ruleset()
                .scope(Border::Signal | Border::AbstractUnixSocket)
                .and_then(Ruleset::create)
                .is_ok(),
        }
    }

    /// What it can restrict and what it cannot, as a sentence has it.
    #[cfg(feature = "cli")]
    pub(crate) fn describe(self) -> (Vec<&'static str>, Vec<&'static str>) {
        let features = [
            (self.files, "files"),
            (self.truncation, "truncation"),
            (self.tcp, "TCP"),
            (self.border, "signals and abstract sockets"),
        ];
        let named =
            |wanted| features.iter().filter(|(has, _)| *has == wanted).map(|(_, name)| *name).collect();
        (named(true), named(false))
    }

    /// What of a sandbox cannot be enforced.
    fn missing(self, sandbox: &Sandbox) -> Option<&'static str> {
        match (sandbox.filesystem, self) {
            _ if sandbox.launcher.is_none() => Some("there is no launcher"),
            (FilesystemAccess::Any, _) | (_, Self { truncation: true, .. }) => None,
            (_, Self { files: true, .. }) => Some("this kernel cannot restrict the truncation of files"),
            _ => Some("this kernel cannot restrict files"),
        }
    }
}

/// Sets the sandbox of each command hook: that of its level and, for a hook of the workspace, what its own file says on
/// top of it.
pub(super) fn apply(hooks: &mut [Hook], settings: &SandboxSettings, root: &Path) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut kernel = None;
    for hook in hooks {
        let Handler::Command(command) = &mut hook.handler else { continue };
        let level = match hook.source.scope {
            Scope::Managed | Scope::Host => &settings.managed,
            Scope::User => &settings.user,
            Scope::Project | Scope::Local => &settings.project,
        };
        let level = level.sandbox(settings.launcher.as_ref());
        let own = command.sandbox.take();
        let sandbox = match &own {
            Some(own) => level.stricter(own, root),
            None => level.clone(),
        };
        if !sandbox.is_active() {
            continue;
        }
        let missing = kernel.get_or_insert_with(KernelSandbox::detect).missing(&sandbox);
        let require = sandbox.require;
        command.sandbox = Some(Arc::new(sandbox));
        let refused = own.iter().flat_map(|own| &own.write).find(|path| !level.may_write(path, root));
        if let Some(path) = refused {
            let message = format!("`{}` may not write to `{}`", hook.name, path.display());
            let help = "the settings restrict the hooks of workspaces; see `sandbox.project`";
            diagnostics.extend(diagnostic(hook, Severity::Warning, message, help));
        }
        if let Some(why) = missing {
            diagnostics.extend(unenforced(hook, why, require));
        }
    }
    diagnostics
}

fn unenforced(hook: &Hook, why: &str, require: bool) -> Option<Diagnostic> {
    let help = "name a `hookyard` in the setting `sandbox.launcher`, or use Linux 6.2 or later with Landlock";
    if require {
        let message = format!("`{}` will end `spawn_failed`: {why}, and its sandbox is required", hook.name);
        return diagnostic(hook, Severity::Error, message, help);
    }
    diagnostic(
        hook,
        Severity::Warning,
        format!("the sandbox of `{}` is not enforced: {why}", hook.name),
        help,
    )
}

fn diagnostic(hook: &Hook, severity: Severity, message: String, help: &str) -> Option<Diagnostic> {
    let file = hook.source.file.as_ref()?;
    let diagnostic = Diagnostic::of_file(severity, CODE, file, message).help(help);
    Some(Diagnostic { line: hook.source.line, column: 1, ..diagnostic })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::{Settings, load_workspace};

    #[test]
    fn what_is_missing_is_named() {
        let none = KernelSandbox { files: false, truncation: false, tcp: false, border: false };
        let old = KernelSandbox { files: true, ..none };
        let new = KernelSandbox { truncation: true, ..old };
        let launcher = Some("/usr/bin/hookyard".into());
        let sandbox = Sandbox { filesystem: FilesystemAccess::ReadOnly, launcher, ..Sandbox::default() };
        assert_eq!(none.missing(&sandbox), Some("this kernel cannot restrict files"));
        assert_eq!(old.missing(&sandbox), Some("this kernel cannot restrict the truncation of files"));
        assert_eq!(new.missing(&sandbox), None);
        let unrestricted = Sandbox { filesystem: FilesystemAccess::Any, ..sandbox.clone() };
        assert_eq!(none.missing(&unrestricted), None);
        assert_eq!(new.missing(&Sandbox { launcher: None, ..sandbox }), Some("there is no launcher"));
    }

    #[test]
    fn each_level_has_its_own_sandbox_and_local_files_of_a_workspace_are_the_projects() {
        let directory = tempfile::tempdir().unwrap();
        let place = |path: &str| directory.path().join(path);
        let hooks = |name: &str| {
            format!(
                r#"{{"hooks": {{"PreToolUse": [{{"hooks": [{{"type": "command", "command": "{name}"}}]}}]}}}}"#
            )
        };
        let files = [
            ("home/.claude/settings.json", "true"),
            ("shop/.claude/settings.json", "false"),
            ("shop/.claude/settings.local.json", ":"),
            ("etc/claude-code/managed-settings.json", "pwd"),
        ];
        for (path, command) in files {
            fs::create_dir_all(place(path).parent().unwrap()).unwrap();
            fs::write(place(path), hooks(command)).unwrap();
        }
        let (home, system_directory) = (Some(place("home")), Some(place("etc")));
        let mut settings = Settings { home, system_directory, ..Settings::default() };
        settings.sandbox.user.filesystem = FilesystemAccess::Workspace;
        settings.sandbox.project.filesystem = FilesystemAccess::ReadOnly;
        let loaded = load_workspace(&place("shop"), None, &settings, &|_| None);
        let mut found: Vec<_> = loaded
            .hooks
            .iter()
            .map(|hook| {
                let Handler::Command(command) = &hook.handler else { panic!("{hook:?}") };
                (hook.source.scope, command.sandbox.as_ref().map(|sandbox| sandbox.filesystem))
            })
            .collect();
        found.sort();
        let expected = [
            (Scope::Managed, None),
            (Scope::User, Some(FilesystemAccess::Workspace)),
            (Scope::Project, Some(FilesystemAccess::ReadOnly)),
            (Scope::Local, Some(FilesystemAccess::ReadOnly)),
        ];
        assert_eq!(found, expected);
    }
}
