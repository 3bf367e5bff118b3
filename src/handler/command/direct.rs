//! Shell lines that need no shell: a program and its arguments, as most hooks have. A shell would start the program and do
//! nothing else, so it is left out.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use super::environment::Variables;

/// The shells that are left out. Agents start `bash`.
const SHELLS: [&str; 4] = ["/bin/sh", "/usr/bin/sh", "/bin/bash", "/usr/bin/bash"];

/// What may stand in a word without quotes, besides letters and digits, and is itself in every shell.
const PLAIN: &str = "_@%+=:,./-";

/// The words that are no programs to one of the usual shells, whatever there is in the `PATH`.
const OF_SHELLS: &str = ". : [ alias bg bind break builtin caller case cd chdir command compgen complete compopt continue \
     coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for function \
     getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly \
     return select set shift shopt source suspend test then time times trap true type typeset ulimit umask unalias unset \
     until wait while";

/// The program that a shell would start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DirectProgram {
    pub(super) path: PathBuf,
    /// Its name as it is in the line, and its arguments.
    pub(super) words: Vec<String>,
}

impl DirectProgram {
    /// What a shell would start, if that is all it would do: none for a program that is no shell with a line.
    pub(super) fn of(program: &Path, args: &[OsString], cwd: &Path, environment: &Variables) -> Option<Self> {
        let [option, line] = args else { return None };
        let is_shell = SHELLS.iter().any(|shell| program == *shell) && option == "-c";
        // A function that is exported to `bash` may have the name of the program.
        let has_functions = environment.iter().any(|(name, _)| name.as_bytes().starts_with(b"BASH_FUNC_"));
        if !is_shell || has_functions {
            return None;
        }
        let words = plain_words(line.to_str()?)?;
        Some(Self { path: found(&words[0], cwd, environment)?, words })
    }
}

/// Whether a shell line is run without a shell, if its program is found.
#[cfg(feature = "cli")]
pub(crate) fn needs_no_shell(line: &str) -> bool {
    plain_words(line).is_some()
}

/// The words of a line, at least one, if the line is a program and its arguments to every shell.
fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => word.get_or_insert_default().push_str(&quoted(&mut rest, '\'', "")?),
            '"' => word.get_or_insert_default().push_str(&quoted(&mut rest, '"', "$`\\!")?),
            plain if plain.is_ascii_alphanumeric() || PLAIN.contains(plain) => {
                word.get_or_insert_default().push(plain);
            }
            _ => return None,
        }
    }
    words.extend(word);
    let name = words.first()?;
    let is_program =
        !name.is_empty() && !name.contains('=') && !OF_SHELLS.split(' ').any(|word| word == name);
    is_program.then_some(words)
}

/// What is left before the closing quotation mark; none without one, or with a character that means something between them.
fn quoted(rest: &mut std::str::Chars<'_>, mark: char, special: &str) -> Option<String> {
    let mut inside = String::new();
    loop {
        match rest.next()? {
            end if end == mark => return Some(inside),
            other if special.contains(other) || other == '\0' => return None,
            other => inside.push(other),
        }
    }
}

/// What a shell would start by this name, if it can be started: the path that a script sees as its own.
fn found(name: &str, cwd: &Path, environment: &Variables) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| cwd.join(path).metadata().is_ok_and(|found| found.is_file());
    let path = if name.contains('/') {
        Some(PathBuf::from(name)).filter(is_file)?
    } else {
        // The last one: of variables with the same name it counts.
        let (_, path) = environment.iter().rfind(|(name, _)| name == "PATH")?;
        let directories = path.as_bytes().split(|byte| *byte == b':').map(OsStr::from_bytes).map(Path::new);
        // A relative one might have the program as well.
        let absolute = directories.take_while(|directory| directory.is_absolute());
        absolute.map(|directory| directory.join(name)).find(is_file)?
    };
    access(cwd.join(&path), Access::EXEC_OK).is_ok().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_program_and_arguments_is_plain() {
        let cases: [(&str, &[&str]); 8] = [
            ("node guard.mjs", &["node", "guard.mjs"]),
            ("  ./a/b-c.sh\t--x=1  a@b:c,d%e+f ", &["./a/b-c.sh", "--x=1", "a@b:c,d%e+f"]),
            ("python3 'a b.py' \"c d\"", &["python3", "a b.py", "c d"]),
            ("a 'x'\"y\"z", &["a", "xyz"]),
            ("a '' \"\"", &["a", "", ""]),
            ("'a' '$HOME `x` \\ *'", &["a", "$HOME `x` \\ *"]),
            ("a \"x * | é\"", &["a", "x * | é"]),
            ("/usr/bin/true", &["/usr/bin/true"]),
        ];
        for (line, words) in cases {
            assert_eq!(
                plain_words(line).as_deref(),
                Some(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
                "{line}"
            );
        }
    }

    #[test]
    fn a_line_with_anything_else_is_left_to_the_shell() {
        for line in [
            "",
            "  ",
            "''",
            "a; b",
            "a && b",
            "a | b",
            "a > b",
            "a < b",
            "a &",
            "a\nb",
            "(a)",
            "a $b",
            "a `b`",
            "a *",
            "a ?",
            "a [b]",
            "~/a",
            "a ~",
            "a {b,c}",
            "! a",
            "# a",
            "a #b",
            "X=1 a",
            "a \\b",
            "a 'b",
            "a \"b",
            "a \"$b\"",
            "a \"!b\"",
            "cd a",
            "exit 2",
            "true",
            "echo a",
            "test -f a",
            ". a",
            "exec a",
            "if a",
            "ä b",
            "'X=1' a",
            "a^b",
            "a\rb",
        ] {
            assert_eq!(plain_words(line), None, "{line:?}");
        }
    }
}
