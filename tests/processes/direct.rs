//! A line that needs no shell does what it does in a shell.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use bytes::Bytes;
use hookyard::{
    handler::command::process::{FinishedProcess, ProcessLimits, Program, run},
    model::Approval,
};
use tempfile::tempdir;
use tokio_util::sync::CancellationToken;

/// Lines, each without anything that is for a shell.
const LINES: [&str; 16] = [
    "env",
    "cat",
    "./script one 'two words' \"\" --x=1",
    "script",
    "bin/script",
    "./without-first-line a b",
    "./not-executable",
    "./no-interpreter",
    "./no-program",
    "./missing",
    "missing-program x",
    "directory",
    "./directory",
    "sh ./script 'a'",
    "first",
    "printenv PWD",
];

fn place() -> tempfile::TempDir {
    let place = tempdir().unwrap();
    let file = |path: &str, content: &str, mode: u32| {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let script = "#!/bin/sh\necho \"$0\" \"$#\" \"$@\"\npwd\necho bad >&2\nexit 3\n";
    file("script", script, 0o755);
    file("bin/script", script, 0o755);
    file("without-first-line", "echo \"$0\" \"$@\"\n", 0o755);
    file("not-executable", script, 0o644);
    file("no-interpreter", "#!/no/such/interpreter\n", 0o755);
    file("no-program", "\u{1}\u{2}\u{3}", 0o755);
    file("directory/x", "", 0o644);
    // A file of that name that cannot be started, in front of one that can.
    file("front/first", script, 0o644);
    file("bin/first", script, 0o755);
    place
}

async fn finished(place: &Path, shell: &str, line: &str) -> FinishedProcess {
    let path = format!("{0}/front:{0}/bin:/usr/bin:/bin", place.display());
    let program = Program {
        path: shell.into(),
        args: vec!["-c".into(), line.into()],
        cwd: place.into(),
        environment: vec![
            ("PATH".into(), "/no/such".into()),
            ("PATH".into(), path.into()),
            ("A".into(), "1".into()),
        ],
        approval: Approval::of_host(),
    };
    let limits = ProcessLimits::within(Duration::from_mins(1));
    run(&program, Bytes::from_static(b"input\n"), limits, &CancellationToken::new()).await.unwrap()
}

/// The lines of an output, sorted: the order of variables says nothing.
fn lines(output: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> = String::from_utf8_lossy(output).lines().map(str::to_owned).collect();
    // Only some shells set it.
    lines.retain(|line| !line.starts_with("_=") && !line.starts_with("SHLVL="));
    lines.sort();
    lines
}

#[tokio::test]
async fn a_function_that_bash_is_given_counts() {
    let place = tempdir().unwrap();
    let program = Program {
        path: "/bin/bash".into(),
        args: vec!["-c".into(), "printenv A".into()],
        cwd: place.path().into(),
        environment: vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("A".into(), "the program".into()),
            ("BASH_FUNC_printenv%%".into(), "() { echo the function; }".into()),
        ],
        approval: Approval::of_host(),
    };
    if !program.path.exists() {
        eprintln!("NOT RUN: this needs bash");
        return;
    }
    let limits = ProcessLimits::within(Duration::from_mins(1));
    let finished = run(&program, Bytes::new(), limits, &CancellationToken::new()).await.unwrap();
    assert_eq!(lines(&finished.stdout.bytes), ["the function"]);
}

#[tokio::test]
async fn a_line_does_the_same_with_and_without_a_shell() {
    let place = place();
    let real = place.path().canonicalize().unwrap();
    let shells = ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| Path::new(shell).exists());
    for (shell, line) in shells.flat_map(|shell| LINES.map(|line| (shell, line))) {
        let direct = finished(&real, shell, line).await;
        // A line break is for the shell.
        let by_shell = finished(&real, shell, &format!("{line}\n")).await;
        assert_eq!(direct.end, by_shell.end, "{shell}: {line}");
        assert_eq!(lines(&direct.stdout.bytes), lines(&by_shell.stdout.bytes), "{shell}: {line}");
        assert_eq!(lines(&direct.stderr.bytes), lines(&by_shell.stderr.bytes), "{shell}: {line}");
    }
}
