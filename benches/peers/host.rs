//! A host in another language: a script that does what it is asked, as often as it is asked, and says how long it took.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::programs::environment;

/// What no round takes.
const LONGEST: Duration = Duration::from_mins(2);

/// A script that runs, ended with the value.
pub(crate) struct Host {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Host {
    /// Starts a script of this directory and waits until it is ready.
    pub(crate) async fn start(
        interpreter: &Path,
        script: &str,
        arguments: &[&Path],
        guard: Option<&str>,
    ) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers").join(script);
        let mut command = Command::new(interpreter);
        command.arg(script).args(arguments).env_clear().envs(environment());
        command.envs(guard.map(|guard| ("GUARD", guard)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("an interpreter");
        let stdin = child.stdin.take().expect("a pipe");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut host = Self { _child: child, stdin, lines };
        assert_eq!(host.line().await, "ready");
        host
    }

    async fn line(&mut self) -> String {
        let line = timeout(LONGEST, self.lines.next_line()).await.expect("an answer in two minutes");
        line.expect("UTF-8").expect("a script that goes on; it has said above why not")
    }

    /// Has it do so much, so many at once; returns how many were done in a second.
    pub(crate) async fn rate(&mut self, what: &str, number: usize, at_once: usize) -> f64 {
        let question = format!("{what} {number} {at_once}\n");
        self.stdin.write_all(question.as_bytes()).await.expect("a script that reads");
        let nanoseconds: f64 = self.line().await.parse().expect("nanoseconds");
        number as f64 / nanoseconds * 1e9
    }
}
