//! Who makes and publishes bundles, and what is asked of a daemon that follows them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    daemon::{Daemon, DaemonSetup},
    static_files::StaticFiles,
    wait::wait_until,
};

pub(super) const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: Bash\non_error: deny\non_timeout: deny\n\
                     handler: {type: command, command: ./scripts/guard.sh}\n";

/// Who makes and publishes bundles.
pub(super) struct Publisher {
    pub(super) place: TempDir,
    pub(super) server: StaticFiles,
    pub(super) key: String,
}

impl Publisher {
    pub(super) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let server = StaticFiles::start(&place.path().join("www"), Some("t0ken"));
        let new = Self { place, server, key: String::new() };
        let made = new.succeed(&["bundle", "keygen", "key"]);
        Self { key: made.trim().to_owned(), ..new }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        command.current_dir(self.place.path()).env("HOOKYARD_TEST_HOME", self.path("home"));
        command.env_remove("HOOKYARD_LOG").args(arguments).output().unwrap()
    }

    pub(super) fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    pub(super) fn fail(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Makes an archive whose guard blocks what has a word.
    pub(super) fn build(&self, version: u64, word: &str, more: &[&str]) -> String {
        self.write("guards/core/.openharness/hooks/guard.yaml", GUARD);
        let script = self.path("guards/core/scripts/guard.sh");
        self.write(
            "guards/core/scripts/guard.sh",
            &format!("#!/bin/sh\ngrep -q {word} && {{ echo no {word} >&2; exit 2; }}\nexit 0\n"),
        );
        make_program(&script);
        let archive = format!("guards-{version}.tar.gz");
        let number = version.to_string();
        let fixed = ["bundle", "build", "guards", "--name", "acme/guards", "--version", &number];
        let expires: &[&str] = if more.contains(&"--expires") { &[] } else { &["--expires", "90d"] };
        self.succeed(&[&fixed[..], expires, more, &["--output", &archive]].concat());
        archive
    }

    pub(super) fn sign(&self, archive: &str) {
        self.succeed(&["bundle", "sign", archive, "--key", "key"]);
    }

    pub(super) fn publish(&self, version: u64, word: &str, more: &[&str]) {
        let archive = self.build(version, word, more);
        self.sign(&archive);
        self.succeed(&["bundle", "push", &archive, "www/guards.bundle"]);
    }

    /// A daemon with one workspace that follows the bundle.
    pub(super) fn edge(&self, more: &str) -> DaemonSetup {
        self.edge_with("100ms", more)
    }

    /// The same with a pause between its polls.
    pub(super) fn edge_with(&self, poll: &str, more: &str) -> DaemonSetup {
        let (url, key) = (self.server.url("guards.bundle"), &self.key);
        let bundle = format!("bundle: {{ url: \"{url}\", keys: [\"{key}\"], poll: {poll}{more} }}");
        let setup = DaemonSetup::new().file("shop/readme", "");
        setup.settings(&format!("{bundle}\nworkspaces: {{ shop: {{ root: $DIR/shop }} }}"))
    }
}

pub(super) fn make_program(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(super) fn judge(daemon: &Daemon, command: &str) -> (String, String) {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                        "tool_name": "Bash", "tool_input": { "command": command } });
    let outcome = daemon.post("/v1/events", &event);
    let text = |key: &str| outcome[key].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("reason"))
}

pub(super) fn verdict(daemon: &Daemon, command: &str) -> String {
    judge(daemon, command).0
}

pub(super) fn bundle(daemon: &Daemon) -> Value {
    daemon.get("/v1/status")["bundle"].clone()
}

pub(super) fn wait_for_version(daemon: &Daemon, version: u64) {
    wait_until("the version is in force", || bundle(daemon)["version"] == version);
}

pub(super) fn metric(daemon: &Daemon, series: &str) -> f64 {
    let text = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{series} ")));
    line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// The directory in which the daemon keeps its bundles.
pub(super) fn kept(daemon: &Daemon) -> PathBuf {
    daemon.path().join("home/.local/state/hookyard/bundle")
}

/// The directory of the only bundle that is kept.
pub(super) fn kept_bundle(daemon: &Daemon) -> PathBuf {
    let mut places = fs::read_dir(kept(daemon)).unwrap().map(|entry| entry.unwrap().path());
    places.find(|path| path.is_dir()).unwrap()
}
