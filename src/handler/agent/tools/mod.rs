//! The tools of agents: three read-only ones for the files of one workspace. Nothing outside its directory is opened.

mod arguments;
mod contents;
mod glob;
mod grep;
mod output;
mod read_file;
mod walk;

use std::{io, path::Path, sync::atomic::AtomicBool};

use crate::{handler::models::ToolSpecification, model::AgentTool, root_dir::RootDir};

/// Read-only access to one workspace's directory.
#[derive(Debug)]
pub(super) struct WorkspaceReader {
    root_dir: RootDir,
}

impl WorkspaceReader {
    /// Returns an error if the directory cannot be opened.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        RootDir::open(root).map(|root_dir| Self { root_dir })
    }

    /// Runs a tool with the arguments that a model wrote, and returns the output for the model. Blocks, and ends early
    /// once `stop` is true.
    ///
    /// Returns an error message for the model if the arguments are invalid or nothing can be read.
    pub(super) fn call(&self, tool: AgentTool, arguments: &str, stop: &AtomicBool) -> Result<String, String> {
        match tool {
            AgentTool::ReadFile => read_file::run(&self.root_dir, &arguments::parse(tool, arguments)?, stop),
            AgentTool::Grep => grep::run(&self.root_dir, &arguments::parse(tool, arguments)?, stop),
            AgentTool::Glob => glob::run(&self.root_dir, &arguments::parse(tool, arguments)?, stop),
        }
    }
}

/// The description of a tool for a model.
pub(super) fn specification(tool: AgentTool) -> ToolSpecification {
    let description = match tool {
        AgentTool::ReadFile => {
            "Returns the text of a file of the workspace: up to 32 KiB of it, ending at a line, with a note of how \
             to go on. The file may have up to 8 MiB."
        }
        AgentTool::Grep => {
            "Searches the files of the workspace, hidden ones too, line by line, and returns up to 100 matches as \
             `path:line: text`. Skips `.git`, symbolic links, binary files, and files larger than 2 MiB."
        }
        AgentTool::Glob => {
            "Lists the files of the workspace, hidden ones too, whose path matches a glob: up to 500, sorted. Skips \
             `.git`, and does not look behind symbolic links."
        }
    };
    ToolSpecification { name: tool.as_str(), description, schema: arguments::schema(tool) }
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsStr,
        fs,
        os::unix::{
            ffi::OsStrExt,
            fs::{PermissionsExt, symlink},
        },
    };

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;

    static GO: AtomicBool = AtomicBool::new(false);

    fn workspace(files: &[(&str, &[u8])]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        root
    }

    fn both_resolutions(root: &Path) -> [WorkspaceReader; 2] {
        RootDir::both_resolutions(root).map(|root_dir| WorkspaceReader { root_dir })
    }

    /// What both ways of following paths answer alike.
    fn ask(root: &Path, tool: AgentTool, arguments: &serde_json::Value) -> Result<String, String> {
        let [a, b] = both_resolutions(root).map(|reader| reader.call(tool, &arguments.to_string(), &GO));
        assert_eq!(a, b, "{arguments}");
        a
    }

    fn read(root: &Path, path: &str) -> [Result<String, String>; 2] {
        let arguments = json!({ "path": path }).to_string();
        both_resolutions(root).map(|reader| reader.call(AgentTool::ReadFile, &arguments, &GO))
    }

    fn refused(root: &Path, path: &str, why: [&str; 2]) {
        for (answer, why) in read(root, path).into_iter().zip(why) {
            let answer = answer.expect_err(path);
            assert!(answer.contains(why) && !answer.contains("secret"), "{path}: {answer}");
        }
    }

    #[test]
    fn the_kernel_follows_paths_where_it_can() {
        let root = workspace(&[("a/b", b"in")]);
        let reader = WorkspaceReader::open(root.path()).unwrap();
        assert_eq!(reader.call(AgentTool::ReadFile, r#"{"path":"./a//b"}"#, &GO).unwrap(), "in");
        assert!(WorkspaceReader::open(&root.path().join("a/b")).is_err());
        assert!(WorkspaceReader::open(&root.path().join("none")).is_err());
    }

    #[test]
    fn nothing_outside_is_shown() {
        let outside = workspace(&[("kept", b"secret")]);
        let root = workspace(&[("a/b", b"in")]);
        let kept = outside.path().join("kept");
        symlink(&kept, root.path().join("file")).unwrap();
        symlink(outside.path(), root.path().join("directory")).unwrap();
        symlink("../..", root.path().join("a/up")).unwrap();
        symlink(format!("/proc/self/root{}", kept.display()), root.path().join("magic")).unwrap();
        symlink("/dev/zero", root.path().join("device")).unwrap();
        symlink("loop", root.path().join("loop")).unwrap();
        let elsewhere = format!("../{}/kept", outside.path().file_name().unwrap().display());
        let twice = |why| [why, why];
        refused(root.path(), kept.to_str().unwrap(), twice("outside"));
        refused(root.path(), "/etc/passwd", twice("outside"));
        refused(root.path(), &elsewhere, twice("outside"));
        for path in ["a/../../x", "file", "directory/kept", "a/up/x", "magic", "device"] {
            refused(root.path(), path, twice("outside"));
        }
        refused(root.path(), "loop", twice("symbolic link"));
        for path in ["directory", "a/up", "/", ".."] {
            let arguments = json!({ "pattern": "secret", "path": path });
            for reader in both_resolutions(root.path()) {
                reader.call(AgentTool::Grep, &arguments.to_string(), &GO).expect_err(path);
            }
        }
        let all = json!({ "pattern": "secret|root:|in" });
        assert_eq!(ask(root.path(), AgentTool::Grep, &all).unwrap(), "a/b:1: in");
        let paths = ask(root.path(), AgentTool::Glob, &json!({ "pattern": "**" })).unwrap();
        assert_eq!(paths, "a/b\na/up\ndevice\ndirectory\nfile\nloop\nmagic");
    }

    #[test]
    fn magic_links_lead_nowhere() {
        let here = &Path::new("/proc/self").canonicalize().unwrap();
        for path in ["root/etc/passwd", "cwd/Cargo.toml", "exe", "fd/0"] {
            for answer in read(here, path) {
                let answer = answer.expect_err(path);
                // The text of the last one is no path, if it is a pipe.
                let refusals = ["symbolic link", "outside", "does not exist"];
                assert!(refusals.iter().any(|why| answer.contains(why)), "{path}: {answer}");
            }
        }
    }

    #[test]
    fn links_that_stay_inside_are_followed() {
        let root = workspace(&[("a/b", b"in"), ("c/d", b"there")]);
        symlink("../c", root.path().join("a/c")).unwrap();
        symlink("./c/d", root.path().join("c/e")).unwrap();
        symlink("c/../c/d", root.path().join("a/f")).unwrap();
        symlink("..", root.path().join("c/c")).unwrap();
        for (path, text) in [
            ("a/c/d", "there"),
            ("a/../a/b", "in"),
            ("a/c/../c/d", "there"),
            ("a/f", "there"),
            ("c/c/a/b", "in"),
        ] {
            assert_eq!(read(root.path(), path), [Ok(text.to_owned()), Ok(text.to_owned())], "{path}");
        }
        // The way leads below the directory, and to nothing there.
        refused(root.path(), "c/e", ["does not exist"; 2]);
    }

    #[test]
    fn what_is_no_file_never_keeps_a_tool_waiting() {
        let root = workspace(&[("a", b"in")]);
        mknodat(CWD, root.path().join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
        for path in ["pipe", "socket"] {
            refused(root.path(), path, ["neither"; 2]);
        }
        refused(Path::new("/dev"), "zero", ["neither"; 2]);
        refused(root.path(), ".", ["is a directory"; 2]);
        refused(root.path(), "a/b", ["not a directory"; 2]);
        refused(root.path(), "b", ["does not exist"; 2]);
        refused(root.path(), "", ["is not a path"; 2]);
        refused(root.path(), "a\0", ["is not a path"; 2]);
        refused(root.path(), &"a/".repeat(4000), ["is not a path"; 2]);
        assert_eq!(ask(root.path(), AgentTool::Grep, &json!({ "pattern": "" })).unwrap(), "a:1: in");
    }

    #[test]
    fn a_file_is_read_page_by_page() {
        let text =
            (1..=10_000).map(|n| format!("line {n}")).chain([String::new()]).collect::<Vec<_>>().join("\n");
        let root = workspace(&[("a", text.as_bytes()), ("empty", b""), ("blank", b"\n")]);
        let page = |arguments| ask(root.path(), AgentTool::ReadFile, &arguments);
        let (mut first, mut whole) = (1, String::new());
        loop {
            let answer = page(json!({ "path": "a", "first_line": first })).unwrap();
            assert!(answer.len() <= output::MAX_BYTES);
            let (lines, note) = answer.rsplit_once("\n[").unwrap();
            whole.extend([lines, "\n"]);
            let Some((_, next)) = note.split_once("first_line: ") else { break };
            first = next.trim_end_matches(']').parse().unwrap();
        }
        assert!(whole == text);
        let answer = page(json!({ "path": "a", "first_line": 7, "lines": 2 })).unwrap();
        assert_eq!(answer, "line 7\nline 8\n[lines 7 to 8 of 10000; go on with first_line: 9]");
        assert!(page(json!({ "path": "a", "first_line": 10_001 })).unwrap_err().contains("only 10000 lines"));
        assert_eq!(page(json!({ "path": "empty" })).unwrap(), "(the file is empty)");
        assert_eq!(page(json!({ "path": "blank" })).unwrap(), "");
    }

    #[test]
    fn a_page_of_one_long_line_goes_on_after_it() {
        let long = format!("{}\nnext\n", "ä".repeat(40_000));
        let root = workspace(&[("a", long.as_bytes())]);
        let answer = ask(root.path(), AgentTool::ReadFile, &json!({ "path": "a" })).unwrap();
        assert!(answer.len() <= output::MAX_BYTES && answer.contains("line 1 is 80000 bytes long"));
        assert!(answer.ends_with("[lines 1 to 1 of 2; go on with first_line: 2]"));
    }

    #[test]
    fn what_is_large_or_no_text_is_not_shown() {
        let root = workspace(&[("nul", b"a\0b"), ("latin", b"caf\xe9"), ("noise", &[0xfe; 99])]);
        fs::File::create(root.path().join("large")).unwrap().set_len((8 << 20) + 1).unwrap();
        refused(root.path(), "nul", ["binary"; 2]);
        refused(root.path(), "noise", ["binary"; 2]);
        refused(root.path(), "large", ["larger than 8388608 bytes"; 2]);
        assert_eq!(read(root.path(), "latin")[0].as_deref(), Ok("caf\u{fffd}"));
    }

    #[test]
    fn lines_are_found_in_order() {
        let root = workspace(&[
            ("b.rs", b"one\r\ntwo\n"),
            ("a/x.rs", b"two\n"),
            ("a/.hidden/x.md", b"\n\n  two"),
            ("a/bin", b"two\0"),
            (".git/config", b"two"),
            ("sub/.git/config", b"two"),
        ]);
        let found = |arguments| ask(root.path(), AgentTool::Grep, &arguments).unwrap();
        let binary = "\n[binary files, not searched: 1]";
        assert_eq!(
            found(json!({ "pattern": "(?i)TWO$" })),
            format!("a/.hidden/x.md:3:   two\na/x.rs:1: two\nb.rs:2: two{binary}")
        );
        assert_eq!(found(json!({ "pattern": "two", "glob": "*.rs" })), "a/x.rs:1: two\nb.rs:2: two");
        assert_eq!(found(json!({ "pattern": "two", "glob": "a/*.rs" })), "a/x.rs:1: two");
        assert_eq!(found(json!({ "pattern": "two", "path": "./a/x.rs" })), "a/x.rs:1: two");
        assert_eq!(found(json!({ "pattern": "two", "path": "a/.hidden/" })), "a/.hidden/x.md:3:   two");
        assert_eq!(found(json!({ "pattern": "three", "path": "b.rs" })), "no line matches");
        let answer = |arguments| ask(root.path(), AgentTool::Grep, &arguments).unwrap_err();
        assert!(answer(json!({ "pattern": "(" })).contains("invalid pattern at character 1"));
        assert!(answer(json!({ "pattern": "\\w{1000}{1000}" })).contains("smaller repetitions"));
        assert!(answer(json!({ "pattern": "a", "glob": "[" })).contains("glob is invalid"));
        assert!(answer(json!({ "pattern": "a", "path": "sub/.git" })).contains("not searched"));
    }

    #[test]
    fn matches_are_bounded_in_number_and_length() {
        let long = format!("{}needle\n", "x".repeat(20_000));
        let many = format!("{}\n", "äx".repeat(500)).repeat(300);
        let root = workspace(&[("long", long.as_bytes()), ("many", many.as_bytes())]);
        fs::File::create(root.path().join("large")).unwrap().set_len((2 << 20) + 1).unwrap();
        let found = |pattern| ask(root.path(), AgentTool::Grep, &json!({ "pattern": pattern })).unwrap();
        let answer = found("x");
        assert!(answer.len() <= output::MAX_BYTES, "{}", answer.len());
        assert!(answer.lines().all(|line| line.chars().count() <= 300));
        assert!(answer.contains("stopped early after ") && answer.contains("not searched: 1"), "{answer}");
        assert!(found("needle").contains("first 16384 bytes only: 1"));
        let short = workspace(&[("short", "x\n".repeat(101).as_bytes())]);
        let answer = ask(short.path(), AgentTool::Grep, &json!({ "pattern": "x" })).unwrap();
        assert!(answer.contains("short:100: x\n[stopped early after 100 matches"), "{answer}");
    }

    #[test]
    fn paths_are_listed_in_order() {
        let root = workspace(&[
            ("b.rs", b""),
            ("a/x.rs", b""),
            ("a.rs", b""),
            ("a/.git/x.rs", b""),
            ("a/.e/y", b""),
        ]);
        let found = |pattern| ask(root.path(), AgentTool::Glob, &json!({ "pattern": pattern }));
        assert_eq!(found("**/*.rs").unwrap(), "a/x.rs\na.rs\nb.rs");
        assert_eq!(found("*.rs").unwrap(), "a.rs\nb.rs");
        assert_eq!(found("a/**").unwrap(), "a/.e/y\na/x.rs");
        assert_eq!(found("../*").unwrap(), "no path matches");
        assert!(found("[").unwrap_err().contains("glob is invalid"));
        assert!(found("/etc/*").unwrap_err().contains("absolute"));
    }

    #[test]
    fn a_walk_is_bounded_in_paths_entries_and_depth() {
        let root = workspace(&[]);
        let deep = root.path().join("z/".repeat(70));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "").unwrap();
        (0..501).for_each(|n| fs::write(root.path().join(format!("f{n:03}")), "").unwrap());
        let found = |pattern| ask(root.path(), AgentTool::Glob, &json!({ "pattern": pattern })).unwrap();
        let answer = found("f*");
        assert!(
            answer.starts_with("f000\n") && answer.contains("f499\n[stopped early after 500 paths"),
            "{answer}"
        );
        assert_eq!(found("**/file"), "no path matches\n[directories more than 64 deep, not entered: 1]");
        (0..20_000).for_each(|n| {
            fs::hard_link(root.path().join("f000"), root.path().join(format!("g{n}"))).unwrap();
        });
        assert_eq!(
            found("h*"),
            "no path matches\n[stopped early: only 20000 files and directories are searched]"
        );
    }

    #[test]
    fn a_stopped_tool_ends_early() {
        let root = workspace(&[("a", b"a")]);
        let stop = AtomicBool::new(true);
        for reader in both_resolutions(root.path()) {
            let call = |tool, arguments: &str| reader.call(tool, arguments, &stop);
            assert!(call(AgentTool::ReadFile, r#"{"path":"a"}"#).unwrap_err().contains("time is over"));
            for arguments in [r#"{"pattern":"a"}"#, r#"{"pattern":"a","path":"a"}"#] {
                assert_eq!(
                    call(AgentTool::Grep, arguments).unwrap(),
                    format!("no line matches\n[{}]", walk::STOPPED_NOTE)
                );
            }
            assert_eq!(
                call(AgentTool::Glob, r#"{"pattern":"*"}"#).unwrap(),
                format!("no path matches\n[{}]", walk::STOPPED_NOTE)
            );
        }
    }

    #[test]
    fn what_may_not_be_read_is_counted() {
        let root = workspace(&[("closed/a", b"a"), ("file", b"a"), ("open", b"a")]);
        let close =
            |path| fs::set_permissions(root.path().join(path), fs::Permissions::from_mode(0o000)).unwrap();
        close("closed");
        close("file");
        if fs::read(root.path().join("file")).is_ok() {
            return; // The superuser reads everything.
        }
        let answer = ask(root.path(), AgentTool::Grep, &json!({ "pattern": "a" })).unwrap();
        assert_eq!(
            answer,
            "open:1: a\n[directories that could not be read: 1]\n[files that could not be read: 1]"
        );
        refused(root.path(), "file", ["permission denied"; 2]);
        refused(root.path(), "closed/a", ["permission denied"; 2]);
        fs::set_permissions(root.path().join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_name_cannot_pass_for_another_line() {
        let root = workspace(&[("a\nb:1: c", b"x")]);
        fs::write(root.path().join(OsStr::from_bytes(b"\xff\x1b")), "x").unwrap();
        let answer = ask(root.path(), AgentTool::Glob, &json!({ "pattern": "*" })).unwrap();
        assert_eq!(answer, "a\\nb:1: c\n\\xff\\u{1b}");
        let answer = ask(root.path(), AgentTool::Grep, &json!({ "pattern": "x" })).unwrap();
        assert_eq!(answer, "a\\nb:1: c:1: x\n\\xff\\u{1b}:1: x");
        assert_eq!(read(root.path(), "a\nb:1: c")[0].as_deref(), Ok("x"));
        refused(root.path(), "n\no", [r"`n\no` does not exist"; 2]);
    }

    #[test]
    fn wrong_arguments_are_explained() {
        let root = workspace(&[]);
        for tool in AgentTool::ALL {
            let answer = ask(root.path(), tool, &json!({ "what": 1 })).unwrap_err();
            assert!(
                answer.contains("unknown field `what`") && answer.contains(arguments::schema(tool)),
                "{answer}"
            );
            assert!(answer.starts_with(&format!("the arguments of {} are wrong", tool.as_str())));
            assert!(ask(root.path(), tool, &json!([])).unwrap_err().contains("not a JSON object"));
            assert!(ask(root.path(), tool, &json!({})).unwrap_err().contains("missing field"));
        }
    }
}
