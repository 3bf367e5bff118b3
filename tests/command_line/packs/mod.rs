//! Guard packs: how they are added, and what they stop.

mod add;
mod cases;

use std::{fs, path::PathBuf};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use tempfile::TempDir;

/// A directory with a workspace, a home and the state of hookyard.
struct Place(TempDir);

/// What one run of the program did.
#[derive(Debug)]
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl Done {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for directory in ["home", "shop/.openharness/hooks"] {
            fs::create_dir_all(place.path(directory)).unwrap();
        }
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Runs the program in the workspace.
    fn run(&self, arguments: &[&str]) -> Done {
        self.run_in("shop", arguments, "")
    }

    /// Runs the program in a directory that is no workspace.
    fn run_at_home(&self, arguments: &[&str]) -> Done {
        self.run_in("home", arguments, "")
    }

    fn run_in(&self, directory: &str, arguments: &[&str], input: &str) -> Done {
        let mut command = cargo_bin_cmd!("hookyard");
        command.current_dir(self.path(directory)).env_remove("HOOKYARD_LOG").env_remove("NO_COLOR");
        command.env("HOOKYARD_TEST_HOME", self.path("home"));
        let output = command.args(arguments).write_stdin(input).output().unwrap();
        Done {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The verdict about a shell command.
    fn verdict(&self, directory: &str, command: &str) -> String {
        let event = serde_json::json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
            "tool_name": "Bash", "tool_input": { "command": command } });
        let done = self.run_in(directory, &["fire", "--json", "--event", "-"], &event.to_string());
        done.json()["verdict"].as_str().unwrap().to_owned()
    }
}

/// The directory with the packs.
fn packs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("config/packs")
}

/// The names of all packs.
fn pack_names() -> Vec<String> {
    let entries = fs::read_dir(packs()).unwrap().map(Result::unwrap);
    let directories = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut names: Vec<String> = directories.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
