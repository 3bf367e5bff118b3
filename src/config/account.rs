//! The home directory of the account that hookyard runs as.
//!
//! A project can set variables of its agent, and with them of what the agent starts. `HOME` therefore says only where
//! agents keep their settings; whose hooks need no trust, and where the record of trust is, comes from the account.

use std::{path::PathBuf, sync::OnceLock};

use nix::unistd::{Uid, User};

use super::Settings;

/// In builds with debug assertions, a home directory in the place of the account's. Tests run no hooks of whoever runs
/// them.
#[cfg(debug_assertions)]
const TEST_HOME: &str = "HOOKYARD_TEST_HOME";

/// The home directory whose user's own hooks run: that of the settings or of the account. `HOME` counts only for an
/// account without an entry in the password file. `environment` looks up variables of hookyard's own environment.
pub fn home_directory(settings: &Settings, environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    settings.home.clone().or_else(account_home).or_else(|| home_variable(environment))
}

/// The directory that `HOME` names, where that is not the home directory whose user's own hooks run. Agents keep the
/// settings of their user there.
pub(super) fn moved_home(
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

/// The home directory of this account's entry in the password file, which stays the same for this process.
fn entry_home() -> Option<PathBuf> {
    static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();
    let home = HOME.get_or_init(|| {
        let entry = User::from_uid(Uid::effective()).ok().flatten()?;
        Some(entry.dir).filter(|home| home.is_absolute())
    });
    home.clone()
}
