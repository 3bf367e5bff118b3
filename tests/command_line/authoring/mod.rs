//! What authors of hooks are given: schemas, and skeletons written by `hookyard new`.

mod explained;
mod readers;
pub(crate) mod schemas;
mod skeletons;

use std::path::{Path, PathBuf};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;

use crate::support::trust::without_trust;

/// What one run of the program did.
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl Done {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {}{}", self.out, self.err))
    }
}

fn run(directory: &Path, arguments: &[&str], input: &str) -> Done {
    let mut command = cargo_bin_cmd!("hookyard");
    command.current_dir(directory).env_remove("HOOKYARD_LOG").env_remove("NO_COLOR");
    let output = command.args(without_trust(arguments)).write_stdin(input).output().unwrap();
    Done {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a directory whose names end so.
fn files(below: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(below).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&path, endings));
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    found
}
