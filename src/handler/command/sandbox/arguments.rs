//! The command line of the launcher: how a program and its sandbox are passed on, and how they are read again.

use std::{
    ffi::{OsStr, OsString},
    num::NonZeroUsize,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{super::process::Program, paths};
use crate::{
    handler::command::{environment::OF_A_HOOK, ledger},
    model::{FilesystemAccess, NetworkAccess, Sandbox},
};

/// The first argument of a launcher.
pub(super) const COMMAND: &str = "__sandbox";

/// The second one: the version of the arguments.
const VERSION: &str = "1";

/// What the names of the hook's variables begin with on their way through the launcher. Variables such as `LD_PRELOAD`
/// must not have an effect before the restrictions.
const VARIABLE: &[u8] = b"HOOKYARD_PASS_";

/// A program and its sandbox, as the launcher gets them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LaunchRequest {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) sandbox: Sandbox,
    /// The workspace. No symbolic link in it is followed.
    pub(super) root: PathBuf,
}

/// The launcher with a program to run in its sandbox. `temp` is a directory of its own.
pub(in crate::handler::command) fn launched(
    program: Program,
    sandbox: &Sandbox,
    launcher: &Path,
    root: &Path,
    temp: Option<&Path>,
) -> Program {
    let mut args: Vec<OsString> = vec![COMMAND.into(), VERSION.into()];
    let mut option = |name: &str, value: &OsStr| args.extend([name.into(), value.to_owned()]);
    option("--root", root.as_os_str());
    option("--files", sandbox.filesystem.as_str().as_ref());
    option("--network", sandbox.network.as_str().as_ref());
    if sandbox.filesystem != FilesystemAccess::Any {
        let in_path = paths::readable_in_path(&program.environment, root);
        sandbox.read.iter().chain(&in_path).for_each(|path| option("--read", path.as_os_str()));
        let write = sandbox.write.iter().map(PathBuf::as_path).chain(temp);
        write.for_each(|path| option("--write", path.as_os_str()));
    }
    let limits = &sandbox.limits;
    let numbers = [
        ("--cpu", limits.cpu.map(|time| time.as_secs().max(1))),
        ("--memory", limits.memory.map(|bytes| bytes as u64)),
        ("--open-files", limits.files.map(|number| number.get() as u64)),
        ("--processes", limits.processes.map(|number| number.get() as u64)),
        ("--file-size", limits.file_size.map(|bytes| bytes as u64)),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            option(name, number.to_string().as_ref());
        }
    }
    option("--require", if sandbox.require { "yes" } else { "no" }.as_ref());
    args.extend(["--".into(), program.path.into_os_string()]);
    args.extend(program.args);
    let environment = program.environment.into_iter().flat_map(passed_on).collect();
    Program { path: launcher.to_owned(), args, cwd: program.cwd, environment, approval: program.approval }
}

/// A variable of the hook under its name for the launcher. The marks of a hook stay as well, so that a launcher counts
/// as part of its hook.
fn passed_on((name, value): (OsString, OsString)) -> Vec<(OsString, OsString)> {
    if name == ledger::PROCESS_MARK {
        // The process gets one of its own when it is started.
        return vec![(name, value)];
    }
    let is_mark = name == OF_A_HOOK || name == ledger::MARK;
    let renamed = OsString::from_vec([VARIABLE, name.as_bytes()].concat());
    let mut variables = vec![(renamed, value.clone())];
    if is_mark {
        variables.push((name, value));
    }
    variables
}

/// The variable of the hook that the launcher got as `name`; `None` for its own.
pub(super) fn original_name(name: &OsStr) -> Option<&OsStr> {
    if name == ledger::PROCESS_MARK {
        return Some(name);
    }
    name.as_bytes().strip_prefix(VARIABLE).map(OsStr::from_bytes)
}

impl LaunchRequest {
    /// Reads the arguments of a launcher, without the program's own name and [`COMMAND`].
    ///
    /// Returns what is wrong with them.
    pub(super) fn read(arguments: &[OsString]) -> Result<Self, String> {
        let mut arguments = arguments.iter();
        if arguments.next().is_none_or(|version| version != VERSION) {
            return Err("the launcher is of another version; restart hookyard".to_owned());
        }
        let mut sandbox = Sandbox::default();
        let mut root = PathBuf::from("/");
        loop {
            let Some(name) = arguments.next() else { return Err("the program is missing".to_owned()) };
            if name == "--" {
                break;
            }
            let Some(value) = arguments.next() else {
                return Err(format!("{} has no value", name.display()));
            };
            let number = || value.to_str().and_then(|text| text.parse::<usize>().ok());
            let count = || number().and_then(NonZeroUsize::new);
            match name.to_str().unwrap_or_default() {
                "--root" => root = value.into(),
                "--read" => sandbox.read.push(value.into()),
                "--write" => sandbox.write.push(value.into()),
                "--files" => {
                    sandbox.filesystem = word(value, &FilesystemAccess::ALL, FilesystemAccess::as_str)?;
                }
                "--network" => sandbox.network = word(value, &NetworkAccess::ALL, NetworkAccess::as_str)?,
                "--cpu" => sandbox.limits.cpu = Some(Duration::from_secs(known(number(), name)? as u64)),
                "--memory" => sandbox.limits.memory = Some(known(number(), name)?),
                "--open-files" => sandbox.limits.files = Some(known(count(), name)?),
                "--processes" => sandbox.limits.processes = Some(known(count(), name)?),
                "--file-size" => sandbox.limits.file_size = Some(known(number(), name)?),
                "--require" => sandbox.require = value == "yes",
                _ => return Err(format!("{} is unknown", name.display())),
            }
        }
        let program = arguments.next().ok_or("the program is missing")?.into();
        Ok(Self { program, args: arguments.cloned().collect(), sandbox, root })
    }
}

fn word<T: Copy>(value: &OsStr, all: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    let found = all.iter().copied().find(|one| value == name(*one));
    found.ok_or_else(|| format!("{} is unknown", value.display()))
}

fn known<T>(value: Option<T>, name: &OsStr) -> Result<T, String> {
    value.ok_or_else(|| format!("{} is no number", name.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Approval, ResourceLimits};

    #[test]
    fn a_launcher_reads_what_it_was_given() {
        let sandbox = Sandbox {
            filesystem: FilesystemAccess::ReadOnly,
            read: vec![OsString::from_vec(b"/odd \xff--".to_vec()).into()],
            write: vec!["/srv/shop/build".into()],
            network: NetworkAccess::None,
            limits: ResourceLimits {
                cpu: Some(Duration::from_secs(5)),
                memory: Some(1 << 30),
                files: NonZeroUsize::new(64),
                processes: NonZeroUsize::new(32),
                file_size: Some(4096),
            },
            require: true,
            launcher: None,
        };
        let program = Program {
            path: "/bin/echo".into(),
            args: vec!["--".into(), "--root".into()],
            cwd: "/srv/shop".into(),
            environment: vec![("LD_PRELOAD".into(), "evil.so".into())],
            approval: Approval::of_host(),
        };
        let launched =
            launched(program, &sandbox, Path::new("/usr/bin/hookyard"), Path::new("/srv/shop"), None);
        assert_eq!(launched.environment, [("HOOKYARD_PASS_LD_PRELOAD".into(), "evil.so".into())]);
        assert_eq!(original_name("HOOKYARD_PASS_LD_PRELOAD".as_ref()), Some("LD_PRELOAD".as_ref()));
        assert_eq!(original_name("LD_PRELOAD".as_ref()), None);
        assert_eq!(launched.args[0], COMMAND);
        let request = LaunchRequest::read(&launched.args[1..]).unwrap();
        assert_eq!((request.program, request.root), ("/bin/echo".into(), "/srv/shop".into()));
        assert_eq!(request.args, ["--", "--root"]);
        assert_eq!(request.sandbox, sandbox);
    }

    #[test]
    fn a_launcher_refuses_what_it_does_not_know() {
        let refused: [&[&str]; 7] = [
            &[],
            &["2", "--", "/bin/true"],
            &["1"],
            &["1", "--"],
            &["1", "--root"],
            &["1", "--files", "some", "--", "/bin/true"],
            &["1", "--looser", "yes", "--", "/bin/true"],
        ];
        for arguments in refused {
            let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
            assert!(LaunchRequest::read(&arguments).is_err(), "{arguments:?}");
        }
    }
}
