//! The daemon that hosts ask: the real program in a process of its own, with a home of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::programs::environment;

/// What starting and ending may take.
const SOON: Duration = Duration::from_mins(1);

/// A daemon with one workspace, ended with the value.
pub(crate) struct Daemon {
    child: Child,
    directory: tempfile::TempDir,
    address: String,
}

impl Daemon {
    /// Starts one whose user has these hooks, in a file of this name, for a workspace without any.
    pub(crate) async fn start(workspace: &Path, file: &str, hooks: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().join("home");
        let file = home.join(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, hooks).expect("a file");
        let log = directory.path().join("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        command.arg("serve").arg("--workspace").arg(workspace).arg("--home").arg(home);
        command.arg("--socket").arg(directory.path().join("socket")).args(["--tcp", "127.0.0.1:0"]);
        command.arg("--set").arg(format!("listen.lines={}", directory.path().join("lines").display()));
        command.args(["--set", "trust=off", "--set", "data=null", "--set", "watch=false"]);
        command.env_clear().envs(environment());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log).expect("a log"));
        let child = command.spawn().expect("a process");
        let mut daemon = Self { child, directory, address: String::new() };
        let begun = tokio::time::Instant::now();
        loop {
            let said = fs::read_to_string(&log).expect("a log");
            if let Some(address) = address(&said) {
                daemon.address = address;
                return daemon;
            }
            assert!(begun.elapsed() < SOON, "the daemon does not start: {said}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    pub(crate) fn lines(&self) -> PathBuf {
        self.directory.path().join("lines")
    }

    /// Its TCP address, as a URL.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

/// The address that the log names, once it does.
fn address(log: &str) -> Option<String> {
    let start = log.find("http://127.0.0.1:")?;
    let rest = &log[start..];
    let scheme = "http://".len();
    let end = rest[scheme..].find(|c: char| !(c.is_ascii_digit() || ".:".contains(c)))? + scheme;
    Some(rest[..end].trim_end_matches(':').to_owned())
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let Ok(id) = i32::try_from(self.child.id()) else { return };
        if let Some(id) = rustix::process::Pid::from_raw(id) {
            rustix::process::kill_process(id, rustix::process::Signal::TERM).ok();
        }
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < SOON && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
