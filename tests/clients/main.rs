//! The clients in `clients`: their suites against this daemon, the programs of `docs/clients.md`, and what is generated.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]
#![allow(clippy::disallowed_methods, reason = "programs are started as their users start them")]

#[path = "../support/mod.rs"]
mod support;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use support::daemon::{Daemon, DaemonSetup};

/// The oldest Node that the client runs with.
const OLDEST_NODE: u32 = 20;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Whether a program is there to be run.
fn is_there(program: &str) -> bool {
    let flag = if program == "go" { "version" } else { "--version" };
    let version = Command::new(program).arg(flag).output().map(|output| output.stdout).unwrap_or_default();
    let version = String::from_utf8_lossy(&version).into_owned();
    let major = version.trim_start_matches('v').split('.').next().and_then(|number| number.parse().ok());
    let is_there = match program {
        "node" => major.is_some_and(|major: u32| major >= OLDEST_NODE),
        _ => !version.is_empty(),
    };
    if !is_there {
        println!("not run: {program} is missing or too old: {version:?}");
    }
    is_there
}

/// Runs a program in a folder of the repository, with this program as the daemon of the clients. Returns what it prints.
fn run(folder: &str, words: &[&str], change: impl FnOnce(&mut Command)) -> String {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(repository().join(folder));
    command.env("HOOKYARD_PROGRAM", env!("CARGO_BIN_EXE_hookyard")).env("PYTHONDONTWRITEBYTECODE", "1");
    for variable in ["HOOKYARD_LISTEN_SOCKET", "HOOKYARD_LISTEN_LINES", "NODE_OPTIONS"] {
        command.env_remove(variable);
    }
    change(&mut command);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{words:?}:\n{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_client_for_typescript_conforms() {
    if is_there("node") && is_there("python3") {
        run(
            "clients/typescript",
            &["node", "--test", "test/client.test.js", "test/conformance.test.js"],
            |_| (),
        );
    }
}

#[test]
fn the_client_for_python_conforms() {
    if is_there("python3") {
        run("clients/python", &["python3", "-m", "unittest", "discover", "-s", "tests"], |_| ());
    }
}

#[test]
fn the_client_for_go_conforms() {
    if is_there("go") && is_there("python3") {
        // The detector of races needs a compiler of C, with which all that is compiled here is linked.
        let race: &[&str] = if is_there("cc") { &["-race"] } else { &[] };
        let words = [&["go", "test", "-count=1"], race, &["./..."]].concat();
        run("clients/go", &words, as_installed);
    }
}

/// No module and no Go is loaded.
fn as_installed(command: &mut Command) {
    command.env("GOPROXY", "off").env("GOTOOLCHAIN", "local").env("GOWORK", "off").env_remove("GOFLAGS");
}

#[test]
fn the_types_of_the_clients_are_those_of_the_schemas() {
    if is_there("python3") {
        run("clients", &["python3", "schema.py", "--check"], |_| ());
    }
}

#[test]
fn the_sdks_of_workers_are_those_of_the_clients() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
    for (source, copy) in [
        ("clients/python/hookyard_client/worker.py", "config/workers/python/hookyard_worker.py"),
        ("clients/typescript/src/worker.js", "config/workers/javascript/hookyard-worker.mjs"),
        ("clients/typescript/src/worker.js", "clients/typescript/dist/worker.js"),
    ] {
        assert!(read(copy) == read(source), "{copy} is not {source}: run scripts/clients --write");
    }
}

/// The fenced blocks of one language of the page, in order. What it says about agent frameworks is tested in them, by
/// `scripts/clients`.
fn blocks(language: &str) -> Vec<String> {
    let text = fs::read_to_string(repository().join("docs/clients.md")).unwrap();
    let text = text.split_once("\n## Agent frameworks\n").unwrap().0;
    let fence = format!("\n```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

/// A daemon with a guard, and the clients where a program finds them.
fn daemon_with_a_guard() -> Daemon {
    let guard = "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  \
        command: grep -q 'git push --force' && echo no force pushes >&2 && exit 2; exit 0\n";
    let setup = DaemonSetup::new().file("shop/.openharness/hooks/guard.yaml", guard);
    let modules = setup.path().join("shop/node_modules");
    fs::create_dir(&modules).unwrap();
    symlink(repository().join("clients/typescript"), modules.join("hookyard-client")).unwrap();
    let client = repository().join("clients/go");
    let module = format!(
        "module host\n\ngo 1.19\n\nrequire hookyard v0.0.0\n\nreplace hookyard => {}\n",
        client.display()
    );
    fs::write(setup.path().join("shop/go.mod"), module).unwrap();
    setup.settings("workspaces: { shop: { root: $DIR/shop } }\nlisten: { lines: $DIR/lines.sock }").serve()
}

/// Runs the programs of the page in one language, and compares what they print.
fn programs_print(language: &str, words: &[&str], expected: &[&str]) {
    let program = words[0];
    let file = words[words.len() - 1];
    let programs = blocks(language);
    assert_eq!(programs.len(), expected.len(), "{language}");
    if !is_there(program) {
        return;
    }
    let daemon = daemon_with_a_guard();
    let shop = daemon.path().join("shop");
    for (code, expected) in programs.iter().zip(expected) {
        fs::write(shop.join(file), code).unwrap();
        let printed = run("", words, |command| in_shop(command, &daemon, &shop));
        assert_eq!(printed.trim_end(), *expected, "{code}");
    }
    daemon.finish();
}

fn in_shop(command: &mut Command, daemon: &Daemon, shop: &Path) {
    as_installed(command);
    command
        .current_dir(shop)
        .env("PYTHONPATH", repository().join("clients/python"))
        .env("HOOKYARD_LISTEN_SOCKET", daemon.socket())
        .env("HOOKYARD_LISTEN_LINES", daemon.path().join("lines.sock"));
}

#[test]
fn the_programs_of_the_page_in_node_work() {
    let expected = ["tell the model: no force pushes", "block down safe", "not in a test 1"];
    programs_print("js", &["node", "host.mjs"], &expected);
}

#[test]
fn the_programs_of_the_page_in_python_work() {
    let expected = ["tell the model: no force pushes", "block no force pushes", "ls -l 1"];
    programs_print("python", &["python3", "host.py"], &expected);
}

#[test]
fn the_programs_of_the_page_in_go_work() {
    let expected = ["tell the model: no force pushes", "not in a test of Bash 1"];
    programs_print("go", &["go", "run", "host.go"], &expected);
}
