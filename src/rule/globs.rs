//! Patterns of paths, which are compiled when a rule is loaded.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::mistake::RuleMistake;

/// The longest pattern, in bytes.
const LONGEST_PATTERN: usize = 1 << 10;

/// The most patterns of one `glob`.
const MOST_GLOBS: usize = 256;

/// As many steps are taken in a quarter of a second.
const MOST_STEPS: usize = 32 << 20;

/// The automaton of a pattern has about so many states for each byte: a wildcard stands for a letter of any length in UTF-8.
const STATES_PER_BYTE: usize = 4;

/// Patterns of paths. One of them must match.
pub(super) struct Globs {
    set: GlobSet,
    /// How many bytes they have.
    length: usize,
}

impl Globs {
    /// Compiles patterns.
    ///
    /// Returns an error if one is malformed, or they are too long or too many.
    pub(super) fn new(sources: &[&str]) -> Result<Self, RuleMistake> {
        const HELP: &str = "`*` is within a name, `**` goes through directories, `{a,b}` is either";
        if sources.len() > MOST_GLOBS {
            return Err(RuleMistake::new(format!("more than {MOST_GLOBS} patterns"), "use fewer"));
        }
        let wrong = |e: globset::Error| RuleMistake::new(format!("not a pattern: {}", e.kind()), HELP);
        let mut set = GlobSetBuilder::new();
        for source in sources {
            if source.len() > LONGEST_PATTERN {
                return Err(RuleMistake::new("a pattern is longer than 1 KiB", HELP));
            }
            set.add(GlobBuilder::new(source).literal_separator(true).build().map_err(wrong)?);
        }
        let length = sources.iter().map(|source| source.len()).sum();
        Ok(Self { set: set.build().map_err(wrong)?, length })
    }

    /// How many steps it takes at most to decide on a path of so many bytes.
    pub(super) fn steps(&self, length: usize) -> usize {
        (STATES_PER_BYTE * self.length).saturating_mul(length)
    }

    /// Whether one of them matches the path, or `None` if it takes too many steps to find out.
    pub(super) fn decide(&self, path: &str) -> Option<bool> {
        (self.steps(path.len()) <= MOST_STEPS).then(|| self.set.is_match(path))
    }
}
