//! What a pattern is written for, and what is asked of it.

/// What a pattern is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli::guard) enum PatternFlavour {
    /// `grep`, line by line.
    GrepBasic,
    /// `grep -E`, line by line.
    GrepExtended,
    /// `[[ … =~ … ]]`.
    Bash,
    /// The module `re`.
    Python,
    JavaScript,
    /// `test(…)` of jq.
    Jq,
}

/// Where a match has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli::guard) enum PatternPlace {
    Anywhere,
    AtStart,
    Whole,
    WholeLine,
}

/// Whether the case of letters matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli::guard) enum LetterCase {
    Matters,
    Ignored,
}

/// The characters that programs of the system know, as the environment of hooks says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum SystemCharacters {
    Ascii,
    Unicode,
}

impl SystemCharacters {
    /// Those of this environment.
    pub(in crate::cli) fn of_environment() -> Self {
        let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default();
        let locale = locale.to_ascii_uppercase();
        if locale.ends_with("UTF-8") || locale.ends_with("UTF8") { Self::Unicode } else { Self::Ascii }
    }
}

impl PatternFlavour {
    /// Whether it is tried with each line.
    pub(super) fn is_by_line(self) -> bool {
        matches!(self, Self::GrepBasic | Self::GrepExtended)
    }
}
