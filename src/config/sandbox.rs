//! Gives each command hook the sandbox of its level, and reports what this machine cannot enforce.

use std::{path::Path, sync::Arc};

use super::settings::SandboxSettings;
use crate::{
    model::{Diagnostic, FilesystemAccess, Handler, Hook, NetworkAccess, Sandbox, Scope, Severity},
    platform::{KernelSandbox, kernel_sandbox},
};

/// The code of diagnostics about sandboxes.
const CODE: &str = "sandbox";

/// What is missing where hooks cannot be kept from making sockets.
const NO_SOCKET_REFUSAL: &str = "this system cannot refuse sockets";

impl KernelSandbox {
    /// What it can restrict and what it cannot, as a sentence has it.
    #[cfg(feature = "cli")]
    pub(crate) fn describe(self) -> (Vec<&'static str>, Vec<&'static str>) {
        let features = [
            (self.files, "files"),
            (self.truncation, "truncation"),
            (self.tcp, "TCP"),
            (self.border, "signals and abstract sockets"),
        ];
        // Every Linux refuses them.
        let sockets = (!self.sockets).then_some((false, "sockets"));
        let features = features.into_iter().chain(sockets).collect::<Vec<_>>();
        let named =
            |wanted| features.iter().filter(|(has, _)| *has == wanted).map(|(_, name)| *name).collect();
        (named(true), named(false))
    }

    /// What of a sandbox cannot be enforced.
    fn missing(self, sandbox: &Sandbox) -> Option<&'static str> {
        match (sandbox.filesystem, self) {
            _ if sandbox.launcher.is_none() => Some("there is no launcher"),
            (_, Self { sockets: false, .. }) if sandbox.network == NetworkAccess::None => {
                Some(NO_SOCKET_REFUSAL)
            }
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
        let missing = kernel.get_or_insert_with(kernel_sandbox).missing(&sandbox);
        // A launcher that cannot refuse sockets starts no hook that is to have none.
        let require = sandbox.require || missing == Some(NO_SOCKET_REFUSAL);
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
        let none =
            KernelSandbox { files: false, truncation: false, tcp: false, border: false, sockets: true };
        let old = KernelSandbox { files: true, ..none };
        let new = KernelSandbox { truncation: true, ..old };
        let launcher = Some("/usr/bin/hookyard".into());
        let sandbox = Sandbox { filesystem: FilesystemAccess::ReadOnly, launcher, ..Sandbox::default() };
        assert_eq!(none.missing(&sandbox), Some("this kernel cannot restrict files"));
        assert_eq!(old.missing(&sandbox), Some("this kernel cannot restrict the truncation of files"));
        assert_eq!(new.missing(&sandbox), None);
        let offline = Sandbox { network: NetworkAccess::None, ..sandbox.clone() };
        assert_eq!(new.missing(&offline), None);
        let other = KernelSandbox { sockets: false, ..none };
        assert_eq!(other.missing(&offline), Some(NO_SOCKET_REFUSAL));
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
