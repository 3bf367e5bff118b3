//! The programs that peers need: those of this machine, and packages that npm installs once, for all clones of a user.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A program or a package, and its version.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) version: String,
}

/// Why a row cannot be measured, in words for its cell.
pub(crate) type Missing = String;

/// The variables that programs get here; a longer environment would cost each of their children something. `SHLVL` is what
/// a person's shell sets: without it, a `bash` that Node starts takes its socket for a remote login and reads `~/.bashrc`.
pub(crate) fn environment() -> impl Iterator<Item = (&'static str, OsString)> {
    let given = ["PATH", "HOME", "LANG"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    given.chain([("SHLVL", OsString::from("1"))])
}

/// The output of a program that has to end well.
fn output(program: &str, arguments: &[&str]) -> Result<String, Missing> {
    let started = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let done = started.map_err(|error| format!("{program} does not start: {error}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!(
            "{program} ends with {}: {}",
            done.status,
            said.lines().last().unwrap_or_default()
        ));
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// An interpreter itself: what is on the `PATH` may be a script that looks for it.
fn interpreter(program: &str, arguments: &[&str]) -> Result<Found, Missing> {
    let said = output(program, arguments)?;
    let (version, path) = said.split_once('\n').ok_or(format!("{program} said `{said}`"))?;
    Ok(Found { path: path.into(), version: version.to_owned() })
}

pub(crate) fn node() -> Result<Found, Missing> {
    interpreter("node", &["-p", "process.version.slice(1) + '\\n' + process.execPath"])
}

pub(crate) fn python() -> Result<Found, Missing> {
    interpreter(
        "python3",
        &["-c", "import platform, sys; print(platform.python_version()); print(sys.executable)"],
    )
}

/// The package with Gemini CLI's hook system.
pub(crate) fn gemini() -> Result<Found, Missing> {
    package("@google/gemini-cli-core", "0.61.0")
}

/// The program of Claude Code, which is in a package for this system that npm adds to the one it is asked for.
pub(crate) fn claude() -> Result<Found, Missing> {
    let package = package("@anthropic-ai/claude-code", "2.1.332")?;
    let beside = package.path.parent().ok_or("the package has no place")?;
    let places = fs::read_dir(beside).map_err(|error| format!("{}: {error}", beside.display()))?;
    let programs = places.flatten().map(|place| place.path().join("claude"));
    for path in programs.filter(|path| path.is_file()) {
        if let Ok(said) = output(&path.to_string_lossy(), &["--version"]) {
            let version = said.split_whitespace().next().unwrap_or_default().to_owned();
            return Ok(Found { path, version });
        }
    }
    Err("npm installed no program of Claude Code for this system".to_owned())
}

/// The directory of a package in the cache of this user, installed by npm if it is not there. Its scripts do not run.
fn package(name: &str, version: &str) -> Result<Found, Missing> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")));
    let cache = cache.ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("hookyard");
    let short = name.rsplit('/').next().unwrap_or(name);
    let place = cache.join(format!("{short}-{version}"));
    let path = place.join("node_modules").join(name);
    if !path.is_dir() {
        eprintln!("npm installs {name}@{version} in {}", place.display());
        // Under another name, so that half a package is never taken for a whole one.
        let unfinished = cache.join(format!("{short}-{version}.{}", std::process::id()));
        fs::create_dir_all(&unfinished).map_err(|error| format!("{}: {error}", unfinished.display()))?;
        let wanted = format!("{name}@{version}");
        let to = unfinished.to_string_lossy().into_owned();
        let quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
        let mut arguments = vec!["install", "--ignore-scripts", "--prefix", &to];
        arguments.extend(quiet);
        arguments.push(&wanted);
        let installed = output("npm", &arguments);
        let moved =
            installed.and_then(|_| fs::rename(&unfinished, &place).map_err(|error| error.to_string()));
        if let Err(problem) = moved {
            drop(fs::remove_dir_all(&unfinished));
            // Another run may have been first.
            if !path.is_dir() {
                return Err(format!("{wanted} is not there: {problem}"));
            }
        }
    }
    Ok(Found { path, version: version.to_owned() })
}
