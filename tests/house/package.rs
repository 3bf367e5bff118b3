//! What `cargo package` puts into the crate's archive: all that the build reads, and little else.

use std::{path::PathBuf, process::Command};

use crate::source::{root, rust_files, shown};

/// The most files that the archive may have.
const MAX_FILES: usize = 908;

/// The files of the archive, from the repository's root.
#[allow(clippy::disallowed_methods, reason = "a test asks cargo itself")]
fn packaged() -> Vec<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--list", "--allow-dirty", "--offline"]).current_dir(root());
    let output = cargo.output().expect("cargo");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(PathBuf::from).collect()
}

#[test]
fn the_package_has_few_files_and_all_that_the_build_reads() {
    let packaged = packaged();
    let has = |path: &str| packaged.iter().any(|file| file.as_os_str() == path);
    assert!(packaged.len() <= MAX_FILES, "{} files; see `include` in Cargo.toml", packaged.len());
    for required in
        ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "ARCHITECTURE.md", "SECURITY.md", "docs/stability.md"]
    {
        assert!(has(required), "{required} is missing");
    }
    for path in rust_files("src").into_iter().filter(|path| has(&shown(path))) {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        for read in text.split("CARGO_MANIFEST_DIR\"), \"/").skip(1) {
            let read = read.split('"').next().unwrap_or_default();
            assert!(has(read) || read.ends_with('/'), "{} reads {read}, which is missing", path.display());
        }
    }
}
