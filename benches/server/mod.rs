//! The servers that are measured, each in a process of its own: the daemon, and what only sends back what it gets.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter};

/// A process that listens on a socket, ended with the value.
pub(crate) struct Server {
    child: Child,
    pub(crate) directory: TempDir,
}

/// What a daemon tells of its work beside its metrics.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Nothing but mistakes.
    Mistakes,
    /// Nothing but mistakes, and traces for a collector, of no event.
    IdleTraces,
    /// The log of a service, and an audit.
    Everything,
}

impl Server {
    /// The daemon with one workspace, which has one hook.
    pub(crate) async fn hookyard(hook: &str) -> Self {
        Self::telling(Telling::Mistakes, &[hook.to_owned()]).await
    }

    pub(crate) async fn telling(telling: Telling, files: &[String]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let hooks = directory.path().join("shop/.openharness/hooks");
        fs::create_dir_all(&hooks).expect("a directory");
        fs::create_dir(directory.path().join("home")).expect("a directory");
        for (number, hook) in files.iter().enumerate() {
            fs::write(hooks.join(format!("hook-{number}.yaml")), hook).expect("a file");
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        command.arg("serve").arg("--workspace").arg(directory.path().join("shop"));
        command.arg("--set").arg(format!("listen.lines={}", directory.path().join("lines").display()));
        command.arg("--socket").arg(directory.path().join("socket")).args(["--set", "trust=off"]);
        command.arg("--home").arg(directory.path().join("home"));
        if telling == Telling::IdleTraces {
            command.args([
                "--set",
                "traces.endpoint=http://127.0.0.1:1/v1/traces",
                "--set",
                "traces.sample=0",
            ]);
        }
        if telling == Telling::Everything {
            command.arg("--set").arg(format!("audit.to={}", directory.path().join("audit").display()));
            command.stderr(fs::File::create(directory.path().join("log")).expect("a log"));
        } else {
            command.env("HOOKYARD_LOG", "error").stderr(Stdio::null());
        }
        Self::start(directory, command).await
    }

    /// The daemon with the settings of a directory, `settings.yaml`.
    pub(crate) async fn of(directory: TempDir) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        command.arg("serve").arg("--config").arg(directory.path().join("settings.yaml"));
        command.arg("--socket").arg(directory.path().join("socket"));
        command.arg("--home").arg(directory.path().join("home"));
        command.env("HOOKYARD_LOG", "error").stderr(Stdio::null());
        Self::start(directory, command).await
    }

    /// What answers every request with its own body.
    pub(crate) async fn echo() -> Self {
        Self::echo_of("echo").await
    }

    /// This program, as the server of this name.
    pub(crate) async fn echo_of(name: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg(name).arg(directory.path().join("socket")).stderr(Stdio::null());
        Self::start(directory, command).await
    }

    async fn start(directory: TempDir, mut command: Command) -> Self {
        let child = command.stdin(Stdio::null()).spawn().expect("a process");
        let server = Self { child, directory };
        while tokio::net::UnixStream::connect(server.socket()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    pub(crate) fn lines(&self) -> PathBuf {
        self.directory.path().join("lines")
    }

    /// Its memory, in bytes.
    pub(crate) fn resident(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).expect("a number") * 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) async fn echo(socket: &Path) {
    let listener = tokio::net::UnixListener::bind(socket).expect("a socket");
    let router =
        axum::Router::new().route("/v1/events", axum::routing::post(async |body: axum::body::Bytes| body));
    axum::serve(listener, router).await.expect("it serves");
}

/// When an echo of lines sends what it has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    EachLine,
    WhenNoneWaits,
}

pub(crate) async fn echo_lines(socket: &Path, flush: Flush) {
    let listener = tokio::net::UnixListener::bind(socket).expect("a socket");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        tokio::spawn(async move {
            let (reader, writer) = stream.into_split();
            let mut reader = BufReader::with_capacity(64 << 10, reader);
            let mut writer = BufWriter::with_capacity(64 << 10, writer);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
                writer.write_all(&line).await.expect("a client that reads");
                line.clear();
                if flush == Flush::EachLine || !reader.buffer().contains(&b'\n') {
                    writer.flush().await.expect("a client that reads");
                }
            }
        });
    }
}
