//! `hookyard` inside a hook: it starts no hooks.

use super::*;

/// A workspace whose guard notes that it ran, and then runs this.
fn guard(command: &str) -> TempDir {
    let program = cargo_bin("hookyard");
    let command = format!(
        "cat > event.json; echo ran >> runs; {} {command} > out.txt 2> err.txt; code=$?; echo $code > code.txt; exit $code",
        program.display()
    );
    workspace(&[("guard", &hook("guard", "before_tool_dispatch", &command, ""))])
}

fn text(directory: &TempDir, file: &str) -> String {
    std::fs::read_to_string(directory.path().join(file)).unwrap_or_default()
}

#[test]
fn no_command_inside_a_hook_starts_hooks() {
    let event = "--event event.json";
    let commands = [
        (format!("fire {event}"), "1"),
        (format!("fire {event} --json"), "1"),
        ("replay event.json".to_owned(), "1"),
        ("test event.json".to_owned(), "1"),
        ("tune --events event.json".to_owned(), "1"),
        ("serve --socket inside.sock".to_owned(), "1"),
    ];
    for (command, code) in commands {
        let directory = guard(&command);
        let done = run_with(directory.path(), &["fire", "--event", "-"], &tool("ls"));
        assert_eq!(done.code, 0, "{command}: {}", done.err);
        assert_eq!(text(&directory, "runs"), "ran\n", "{command}");
        assert_eq!(text(&directory, "code.txt").trim(), code, "{command}");
        assert_eq!(text(&directory, "out.txt"), "", "{command}");
        let error = text(&directory, "err.txt");
        assert!(error.contains("started by a hook of hookyard, and starts no hooks"), "{command}: {error}");
        assert_eq!(done.json()["verdict"], "proceed", "{command}");
        assert!(!directory.path().join("inside.sock").exists());
    }
}

#[test]
fn a_native_answer_inside_a_hook_is_none_and_with_the_variable_alone_a_block() {
    let arguments = ["fire", "--event", "-", "--native", "--dialect", "openharness"];
    let directory = guard(&arguments.join(" ").replace(" - ", " event.json "));
    let done = run_with(directory.path(), &["fire", "--event", "-"], &tool("ls"));
    assert_eq!((done.code, &done.json()["verdict"]), (0, &json!("proceed")), "{}", done.err);
    assert_eq!(text(&directory, "runs"), "ran\n");
    assert_eq!((text(&directory, "out.txt"), text(&directory, "err.txt")), Default::default());
    // A host must not take the refusal for consent.
    let mut command = program(directory.path());
    let output = command.args(arguments).env("HOOKYARD_HOOK", "1").write_stdin(tool("ls")).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("starts no hooks"), "{output:?}");
}

#[test]
fn check_inside_a_hook_starts_no_worker() {
    let directory = guard("check");
    let worker = hook("worker", "run_failed", "echo ran >> workers", "")
        .replace("  type: command\n", "  type: command\n  mode: worker\n");
    std::fs::write(directory.path().join(".openharness/hooks/worker.yaml"), worker).unwrap();
    let done = run_with(directory.path(), &["fire", "--event", "-"], &tool("ls"));
    assert_eq!((done.code, text(&directory, "code.txt").trim()), (0, "0"), "{}", text(&directory, "err.txt"));
    assert!(!directory.path().join("workers").exists());
}

#[test]
fn a_hook_file_cannot_hide_that_it_is_one() {
    let directory = guard("fire --event event.json");
    let file = directory.path().join(".openharness/hooks/guard.yaml");
    let hook = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, hook.trim_end().to_owned() + "\n  environment: { HOOKYARD_HOOK: '' }\n").unwrap();
    let done = run_with(directory.path(), &["fire", "--event", "-"], &tool("ls"));
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!((text(&directory, "runs").as_str(), text(&directory, "code.txt").trim()), ("ran\n", "1"));
}

#[test]
fn an_empty_or_odd_variable_says_nothing() {
    let directory = shop();
    for value in ["", "0", "yes"] {
        let mut command = program(directory.path());
        let output = command
            .args(["fire", "--event", "-"])
            .env("HOOKYARD_HOOK", value)
            .write_stdin(tool("ls"))
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{value:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("\"guard\""), "{value:?}: {output:?}");
    }
}
