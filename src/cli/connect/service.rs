//! Starts the daemon of the connected agents: as a service of the user, whose sockets systemd opens, or on demand.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    super::{
        daemon_flag::ControlSocketFlags, escape, exit::CliError, paths::display_path, screen::Screen,
        table::Page,
    },
    agents::on_path,
    on_demand::{IDLE_TIMEOUT, OnDemandDaemon, StartFailed},
    place::step,
};
use crate::{
    config::{self, ConnectionStore, DaemonCommand, DaemonStart, Settings},
    daemon::{ClientError, default_control_socket, has_listener},
    model::io_reason,
};

/// The first line of units that may be replaced and removed.
const MARK: &str = "# Written by `hookyard connect`; `hookyard disconnect` removes it.";

/// How long a daemon may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(30);

const SOCKET_UNIT: &str = "hookyard.socket";
const SERVICE_UNIT: &str = "hookyard.service";

/// The directory of a user's own units, below the home directory.
const UNITS: &str = ".config/systemd/user";

/// Who can start the daemon here.
#[derive(Debug)]
pub(super) struct DaemonServices {
    user: Option<UserServices>,
}

/// What becomes of the daemon once no agent is connected any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DaemonEnd {
    Ends,
    /// Somebody else has started it, or it does not run.
    GoesOn,
}

impl DaemonServices {
    pub(super) fn find(settings: &Settings, search_path: &OsStr) -> Self {
        let home = config::home_directory(settings, &|name| std::env::var(name).ok());
        Self { user: home.and_then(|home| UserServices::find(search_path, &home)) }
    }

    /// Who starts the daemon at a socket, if the person does not say so. `known` started it until now.
    pub(super) fn choose(&self, socket: &Path, known: Option<DaemonStart>) -> DaemonStart {
        match known {
            Some(known @ (DaemonStart::OnDemand | DaemonStart::Service)) => known,
            // Beside a daemon that somebody else starts, a second one would take its place when it restarts.
            _ if has_listener(socket) => DaemonStart::Manual,
            _ if self.user.is_some() => DaemonStart::Service,
            _ => DaemonStart::OnDemand,
        }
    }

    /// Has the daemon run from now on, and says how.
    pub(super) fn start(
        &self,
        command: &DaemonCommand,
        store: &ConnectionStore,
        screen: &Screen,
    ) -> Result<(), CliError> {
        let done = match command.start {
            DaemonStart::Manual => return Ok(()),
            DaemonStart::Service => self.user()?.install(command)?,
            DaemonStart::OnDemand => {
                let daemon = OnDemandDaemon::new(store.directory());
                // It may take a while with many workspaces, and events wait for it.
                daemon.attempt(&command.socket, Instant::now() + START_TIMEOUT)?;
                let log = display_path(&daemon.log());
                format!(
                    "started by the events of agents; it ends after {IDLE_TIMEOUT} without any; its log is {log}"
                )
            }
        };
        let mut page = Page::default();
        step(&mut page, screen, "daemon", &done);
        screen.print(&page.into_text())
    }

    /// Ends the daemon, since no agent is connected any more.
    pub(super) fn end(
        &self,
        command: &DaemonCommand,
        sockets: &ControlSocketFlags,
        screen: &Screen,
    ) -> Result<DaemonEnd, CliError> {
        match command.start {
            DaemonStart::Manual => return Ok(DaemonEnd::GoesOn),
            DaemonStart::Service => self.user()?.remove()?,
            DaemonStart::OnDemand => match sockets.interactive_client().send("POST", "/v1/drain", None) {
                Ok(_) => {}
                Err(ClientError::Down { .. }) => return Ok(DaemonEnd::GoesOn),
                Err(error) => return Err(error.into()),
            },
        }
        let mut page = Page::default();
        step(&mut page, screen, "daemon", "it ends: no agent is connected any more");
        screen.print(&page.into_text())?;
        Ok(DaemonEnd::Ends)
    }

    fn user(&self) -> Result<&UserServices, CliError> {
        self.user.as_ref().ok_or_else(|| {
            CliError::with_help(
                "`systemctl --user` does not answer",
                "connect with `--daemon on-demand`, which needs no service manager",
            )
        })
    }
}

/// The service manager of the user.
#[derive(Debug)]
struct UserServices {
    systemctl: PathBuf,
    units: PathBuf,
}

impl UserServices {
    /// The service manager, if it answers.
    fn find(search_path: &OsStr, home: &Path) -> Option<Self> {
        let found = Self { systemctl: on_path("systemctl", search_path)?, units: home.join(UNITS) };
        found.run(&["show-environment"]).is_ok().then_some(found)
    }

    /// Installs the units and opens the sockets. Returns what was done.
    ///
    /// Returns an error if somebody else's units are there, or the service manager refuses.
    fn install(&self, command: &DaemonCommand) -> Result<String, CliError> {
        let wanted = [(SOCKET_UNIT, socket_unit(command)), (SERVICE_UNIT, service_unit(command))];
        if let Some((name, _)) = wanted.iter().find(|(name, _)| self.is_foreign(name)) {
            let what = format!("{} is not one of `hookyard connect`", display_path(&self.units.join(name)));
            return Err(CliError::with_help(
                what,
                "start it with `systemctl --user enable --now hookyard.socket`, or connect with `--daemon on-demand`",
            ));
        }
        let is_same = |(name, text): &(&str, String)| self.read(name).as_ref() == Some(text);
        if !wanted.iter().all(is_same) {
            // Sockets of a service that runs cannot be opened again.
            self.run(&["stop", SOCKET_UNIT, SERVICE_UNIT]).ok();
            for (name, text) in &wanted {
                self.write(name, text)?;
            }
            self.run(&["daemon-reload"])?;
        }
        self.run(&["enable", "--now", SOCKET_UNIT])?;
        Ok(format!("a service of this user, {SOCKET_UNIT}; `journalctl --user -u hookyard` shows its log"))
    }

    /// Stops the service and removes its units, unless somebody else has written them.
    fn remove(&self) -> Result<(), CliError> {
        let names = [SOCKET_UNIT, SERVICE_UNIT];
        if names.iter().any(|name| self.is_foreign(name)) {
            return Ok(());
        }
        self.run(&["disable", "--now", SOCKET_UNIT])?;
        self.run(&["stop", SERVICE_UNIT])?;
        for name in names {
            fs::remove_file(self.units.join(name)).ok();
        }
        self.run(&["daemon-reload"])
    }

    fn is_foreign(&self, name: &str) -> bool {
        self.read(name).is_some_and(|text| !text.starts_with(MARK))
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.units.join(name)).ok()
    }

    fn write(&self, name: &str, text: &str) -> Result<(), CliError> {
        let path = self.units.join(name);
        let new = path.with_extension("hookyard-new");
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.units);
        let written = made.and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| CliError::new(format!("{}: {}", display_path(&path), io_reason(&error))))
    }

    /// Runs `systemctl --user`.
    #[expect(clippy::disallowed_methods, reason = "the service manager's program is no hook")]
    fn run(&self, arguments: &[&str]) -> Result<(), CliError> {
        let done = Command::new(&self.systemctl).arg("--user").args(arguments).stdin(Stdio::null()).output();
        let why = match done {
            Ok(done) if done.status.success() => return Ok(()),
            Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
            Err(error) => io_reason(&error),
        };
        let what = format!("`systemctl --user {}`: {}", arguments.join(" "), escape::short(why.trim(), 400));
        Err(CliError::with_help(what, "connect with `--daemon on-demand`, which needs no service manager"))
    }
}

fn socket_unit(command: &DaemonCommand) -> String {
    let control = default_control_socket(&command.socket);
    let [socket, control] = [&command.socket, &control].map(|path| path.to_string_lossy().replace('%', "%%"));
    format!(
        "{MARK}\n[Unit]\nDescription=Sockets of hookyard\n\n[Socket]\nListenStream={socket}\nListenStream={control}\n\
         SocketMode=0600\nRemoveOnStop=yes\n\n[Install]\nWantedBy=sockets.target\n"
    )
}

fn service_unit(command: &DaemonCommand) -> String {
    let mut words = vec![quoted(&command.program), "serve".to_owned()];
    words.extend(["--socket".to_owned(), quoted(&command.socket)]);
    for (flag, path) in [("--config", &command.config), ("--home", &command.home)] {
        words.extend(path.iter().flat_map(|path| [flag.to_owned(), quoted(path)]));
    }
    let search_path = quoted(Path::new(&format!("PATH={}", command.search_path)));
    format!(
        "{MARK}\n[Unit]\nDescription=Hooks for AI-agent hosts\nRequires={SOCKET_UNIT}\nAfter={SOCKET_UNIT}\n\n\
         [Service]\nType=notify\nExecStart={}\nExecReload=/bin/kill -HUP $MAINPID\nEnvironment={search_path}\n\
         EnvironmentFile=-%E/hookyard/hookyard.env\nRestart=on-failure\nRestartSec=2\nWatchdogSec=30\n\
         KillMode=mixed\nTimeoutStopSec=20\nOOMPolicy=continue\n",
        words.join(" ")
    )
}

impl From<StartFailed> for CliError {
    fn from(error: StartFailed) -> Self {
        Self::with_help(error, "the agent is connected; correct this, and run the command again")
    }
}

/// A path as one word of a unit.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('%', "%%").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn paths_reach_the_program_as_they_are() {
        let command = DaemonCommand {
            program: "/opt/my tools/hook\"yard".into(),
            socket: "/run/user/1000/100%/hookyard.sock".into(),
            config: Some("/home/a/$x.yaml".into()),
            home: None,
            search_path: "/usr/bin:/home/a/my bin".to_owned(),
            environment: BTreeMap::default(),
            start: DaemonStart::Service,
            sandboxed: false,
        };
        let unit = service_unit(&command);
        let start = "ExecStart=\"/opt/my tools/hook\\\"yard\" serve --socket \"/run/user/1000/100%%/hookyard.sock\" \
                     --config \"/home/a/$$x.yaml\"\n";
        assert!(unit.contains(start), "{unit}");
        assert!(unit.contains("Environment=\"PATH=/usr/bin:/home/a/my bin\"\n"), "{unit}");
        let socket = socket_unit(&command);
        assert!(socket.contains("ListenStream=/run/user/1000/100%%/hookyard-control.sock\n"), "{socket}");
    }
}
