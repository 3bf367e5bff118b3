//! The commands of a shell text, as rules see them, and how much of a text is read.

/// The longest text that is read, in bytes. A longer one is not understood, and has no commands.
pub(in crate::rule) const LONGEST_TEXT: usize = 64 * 1024;

/// The most commands that are reported. A text with more is not understood.
pub(in crate::rule) const MOST_COMMANDS: usize = 1_000;

/// How often a text within a text is read: `bash -c "bash -c '…'"`. A deeper one is not understood.
pub(in crate::rule) const MOST_TEXTS_DEEP: usize = 8;

/// How deep substitutions and expansions nest within each other. A text with deeper ones is not understood.
pub(in crate::rule) const MOST_NESTED: usize = 32;

/// How many wrappers stand before each other: `sudo env nice …`.
pub(in crate::rule) const MOST_WRAPPERS: usize = 16;

/// The commands that a shell text runs, as far as they can be told without running it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::rule) struct ShellCommands {
    /// The commands in the order in which they are found: those of substitutions before the command that they are part
    /// of, a wrapper before what it runs.
    pub(in crate::rule) commands: Vec<ShellCommand>,
    /// Whether all of the text was understood.
    pub(in crate::rule) understood: bool,
}

/// One command of a shell text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rule) struct ShellCommand {
    /// The program's name without its directory: `rm` for `/bin/rm`. Empty if it is not known, and for a command that
    /// consists of redirections alone.
    pub(in crate::rule) name: String,
    /// The word of the program without quotes: `/bin/rm`. As it is written if it is not known: `$x`.
    pub(in crate::rule) path: String,
    /// The arguments without quotes. What is known only when the text runs stands as it is written: `$HOME/a`,
    /// `$(date)`. Patterns for file names stand as they are written too, and count as known.
    pub(in crate::rule) args: Vec<String>,
    /// Variables that are set for the command: `FOO=1 git push` has `("FOO", "1")`.
    pub(in crate::rule) assignments: Vec<(String, String)>,
    /// Files that it is redirected to or from: `(">", "/etc/passwd")`. Duplicated file descriptors (`2>&1`) and texts
    /// (`<<`, `<<<`) are no files.
    pub(in crate::rule) redirects: Vec<(String, String)>,
    /// The programs through which it is run, outermost first: `sudo`, `env`, `xargs`, `bash`.
    pub(in crate::rule) via: Vec<String>,
    /// The name of the program whose output it reads: `curl` for the `sh` of `curl … | sh`.
    pub(in crate::rule) piped_from: Option<String>,
    /// Whether the name, all arguments, the files, and the text that a shell reads are known.
    pub(in crate::rule) understood: bool,
}

impl ShellCommand {
    /// Whether it has a flag. `force` is `--force`, `--force=VALUE` and `-force`, and an abbreviation of three letters
    /// or more that does not end where a word of the name ends: `--recurs` is `recursive`, but `--force` is not
    /// `force-with-lease`. `f` is `-f`, also inside a cluster such as `-uf`; a value that is attached to another flag is
    /// not told from a cluster. Nothing after `--` counts.
    pub(in crate::rule) fn has_flag(&self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        let mut flags =
            self.args.iter().take_while(|arg| *arg != "--").filter_map(|arg| arg.strip_prefix('-'));
        if name.chars().count() == 1 {
            return flags.any(|flag| !flag.starts_with('-') && flag.contains(name));
        }
        flags.any(|flag| {
            let (long, may_abbreviate) = flag.strip_prefix('-').map_or((flag, false), |long| (long, true));
            let long = long.split_once('=').map_or(long, |(long, _)| long);
            let rest = name.strip_prefix(long);
            rest == Some("")
                || may_abbreviate && long.len() >= 3 && rest.is_some_and(|rest| !rest.starts_with('-'))
        })
    }

    /// The arguments that are no flags, those after `--` included. The value of a flag that stands as a word of its own
    /// counts as an operand, because programs differ in which flags take one.
    pub(in crate::rule) fn operands(&self) -> Vec<&str> {
        let mut are_flags_over = false;
        let mut operands = Vec::new();
        for arg in &self.args {
            if are_flags_over || !arg.starts_with('-') || arg == "-" {
                operands.push(arg.as_str());
            } else if arg == "--" {
                are_flags_over = true;
            }
        }
        operands
    }

    /// Name and arguments with single spaces between them. A name that is not known stands as it is written.
    pub(in crate::rule) fn text(&self) -> String {
        let name = if self.name.is_empty() { &self.path } else { &self.name };
        let words = std::iter::once(name).chain(&self.args).map(String::as_str);
        words.collect::<Vec<_>>().join(" ")
    }
}
