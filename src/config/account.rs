//! The account that hookyard runs as: its home directory, its name and its shell.
//!
//! A project can set variables of its agent, and with them of what the agent starts. `HOME` therefore says only where
//! agents keep their settings; whose hooks need no trust, where the record of trust is, and what hooks are told of the
//! account come from the password file.

use std::{ffi::OsString, path::PathBuf, sync::OnceLock};

use nix::unistd::{Uid, User};

use super::Settings;

/// In builds with debug assertions, a home directory in the place of the account's. Tests run no hooks of whoever runs
/// them.
#[cfg(debug_assertions)]
const TEST_HOME: &str = "HOOKYARD_TEST_HOME";

/// The variables that describe the account.
const OF_ACCOUNT: [&str; 4] = ["HOME", "LOGNAME", "SHELL", "USER"];

/// The account's entry in the password file.
#[derive(Debug)]
struct AccountEntry {
    name: String,
    home: PathBuf,
    shell: PathBuf,
}

/// The variables that describe the account, as hooks get them. Those of hookyard's own environment count only for an
/// account without an entry in the password file. `environment` looks them up.
pub(crate) fn account_variables(
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Vec<(OsString, OsString)> {
    let of_name = |name: &str| {
        let value = match (name, entry()) {
            ("HOME", _) => home_directory(settings, environment)?.into(),
            (_, None) => environment(name)?.into(),
            ("SHELL", Some(entry)) => entry.shell.clone().into(),
            (_, Some(entry)) => entry.name.clone().into(),
        };
        Some((OsString::from(name), value))
    };
    OF_ACCOUNT.into_iter().filter_map(of_name).collect()
}

/// What `${env.NAME}` in a hook file stands for: the same as in the environment of the hook for what describes the
/// account, and a variable of hookyard's own environment otherwise.
pub(super) fn referenced_variable(
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
    name: &str,
) -> Option<String> {
    if !OF_ACCOUNT.contains(&name) {
        return environment(name);
    }
    let (_, value) = account_variables(settings, environment).into_iter().find(|(known, _)| known == name)?;
    value.into_string().ok()
}

/// The home directory whose user's own hooks run: that of the settings or of the account. `HOME` counts only for an
/// account without an entry in the password file. `environment` looks up variables of hookyard's own environment.
pub fn home_directory(settings: &Settings, environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    settings.home.clone().or_else(account_home).or_else(|| home_variable(environment))
}

/// The directory that `HOME` names, where that is not the home directory whose user's own hooks run. Agents keep the
/// settings of their user there.
pub(crate) fn moved_home(
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    if settings.home.is_some() {
        return None;
    }
    let moved = home_variable(environment)?.canonicalize().ok()?;
    let is_of_account = |home: PathBuf| home.canonicalize().is_ok_and(|home| home == moved);
    let mut known = account_home().into_iter().chain(entry_home());
    let is_moved = account_home().is_some() && !known.any(is_of_account);
    is_moved.then_some(moved)
}

fn home_variable(environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    environment("HOME").map(PathBuf::from).filter(|path| path.is_absolute())
}

fn account_home() -> Option<PathBuf> {
    #[cfg(debug_assertions)]
    if let Some(home) = std::env::var_os(TEST_HOME).map(PathBuf::from).filter(|home| home.is_absolute()) {
        return Some(home);
    }
    entry_home()
}

fn entry_home() -> Option<PathBuf> {
    entry().map(|entry| entry.home.clone()).filter(|home| home.is_absolute())
}

/// The entry of this account, which stays the same for this process.
fn entry() -> Option<&'static AccountEntry> {
    static ENTRY: OnceLock<Option<AccountEntry>> = OnceLock::new();
    let entry = ENTRY.get_or_init(|| {
        let User { name, dir: home, shell, .. } = User::from_uid(Uid::effective()).ok().flatten()?;
        // As login does for an account without a shell.
        let shell = if shell.as_os_str().is_empty() { PathBuf::from("/bin/sh") } else { shell };
        Some(AccountEntry { name, home, shell })
    });
    entry.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_describes_the_account_comes_from_no_variable() {
        let foreign = |name: &str| Some(format!("/ws/{name}"));
        let settings = Settings { home: Some("/home/a".into()), ..Settings::default() };
        let of = |name: &str| referenced_variable(&settings, &foreign, name);
        assert_eq!(of("HOME").unwrap(), "/home/a");
        assert_eq!(of("OTHER").unwrap(), "/ws/OTHER");
        let Some(entry) = entry() else { return };
        assert_eq!((of("USER"), of("LOGNAME")), (Some(entry.name.clone()), Some(entry.name.clone())));
        assert_eq!(of("SHELL").unwrap(), entry.shell.to_str().unwrap());
        let known = account_variables(&settings, &foreign);
        let names: Vec<_> = known.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, OF_ACCOUNT);
    }
}
