//! SECURITY.md and docs/reliability.md: each test that they name exists.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The pages that name tests.
const PAGES: [&str; 2] = ["SECURITY.md", "docs/reliability.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The tests that a page names, as `program module::test` in backquotes. The program `lib` has the tests in `src`.
fn named(page: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let spans = text.split('`').skip(1).step_by(2);
    let tests = spans.filter_map(|span| span.split_once(' ')).filter(|(program, path)| {
        (*program == "lib" || root().join("tests").join(program).join("main.rs").exists())
            && path.contains("::")
            && !path.contains(' ')
    });
    tests.map(|(program, path)| (program.to_owned(), path.to_owned())).collect()
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Whether a file of a test program has a test, in the module that its path names.
fn exists(program: &str, path: &str) -> bool {
    let (modules, test) = path.rsplit_once("::").unwrap();
    let module = modules.rsplit("::").next().unwrap();
    let folder = if program == "lib" { root().join("src") } else { root().join("tests").join(program) };
    rust_files(&folder).iter().any(|file| {
        let is_module = file.file_stem().is_some_and(|stem| stem == module)
            || file.ends_with(Path::new(module).join("mod.rs"));
        is_module && fs::read_to_string(file).unwrap().contains(&format!("fn {test}("))
    })
}

#[test]
fn the_tests_that_are_named_exist() {
    for page in PAGES {
        let tests = named(page);
        assert!(tests.len() >= 10, "{page} names {} tests", tests.len());
        for (program, path) in tests {
            assert!(exists(&program, &path), "{page}: `{program} {path}` does not exist");
        }
    }
}

#[test]
fn every_promise_names_a_test() {
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let mut is_table = false;
        let mut header = "";
        for line in text.lines() {
            if line.starts_with("| ---") {
                // Other tables have figures or commands.
                is_table = header.contains("attack");
                continue;
            }
            header = line;
            is_table &= line.starts_with('|');
            let has_test =
                line.split('`').skip(1).step_by(2).any(|span| span.contains(' ') && span.contains("::"));
            assert!(!is_table || has_test, "{page}: no test attacks this: {line}");
        }
    }
}
