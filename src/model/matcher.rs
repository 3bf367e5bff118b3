//! Matchers: which values of an event a hook accepts. The only place that compiles patterns from outside; their size
//! and memory are bounded.

mod globs;
mod javascript;
mod linear;

use std::fmt;

pub use globs::PathGlobs;
use linear::{DEEPEST_NESTING, LARGEST_PROGRAM, LinearSearch};
use regex_syntax::hir::{
    Hir, HirKind, Look,
    literal::{Extractor, Seq},
};

/// The longest pattern, in bytes.
const LONGEST_PATTERN: usize = 16 << 10;

/// How many steps back a search may take. A pattern that needs more counts as a match, so that a guard runs.
const MOST_STEPS: usize = 100_000;

/// A pattern that matches more texts than this is not expanded.
const MOST_LITERALS: usize = 64;

/// Why a pattern is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatcherError {
    /// Longer than the limit.
    #[error("the pattern is {0} bytes long; at most {LONGEST_PATTERN} are allowed")]
    TooLong(usize),
    /// Not a valid pattern.
    #[error("invalid pattern at character {column}: {message}")]
    Syntax {
        /// What is wrong.
        message: String,
        /// The position of the mistake, in characters from 1.
        column: usize,
    },
    /// Not a glob.
    #[error("invalid glob: {0}")]
    Glob(String),
    /// The compiled pattern would take more memory than allowed.
    #[error("the pattern compiles to more than {LARGEST_PROGRAM} bytes; use smaller repetitions")]
    TooLarge,
}

/// The literal texts of a pattern, for an index lookup instead of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literals {
    /// The whole value is one of these.
    Exact(Vec<String>),
    /// One of these is somewhere in the value.
    Contains(Vec<String>),
    /// One of these is somewhere in the value, or the pattern does not match; if one is, the pattern decides.
    Needs(Vec<String>),
}

/// Decides whether a hook applies to an event by one of its attributes, such as the tool name.
#[derive(Clone)]
pub struct Matcher {
    pattern: Box<str>,
    search: PatternSearch,
    literals: Option<Literals>,
    /// The least bytes of a value that matches.
    shortest: usize,
}

/// How a pattern is searched for.
#[derive(Clone)]
enum PatternSearch {
    /// In a time that is linear in the value.
    Linear(LinearSearch),
    /// With look-around and backreferences, by stepping back.
    Backtracking(Box<fancy_regex::Regex>),
}

impl Matcher {
    /// A pattern in the syntax of the `regex` crate, searched anywhere in the value.
    ///
    /// Returns an error if the pattern is malformed, uses look-around or backreferences, or is too large.
    pub fn search(pattern: &str) -> Result<Self, MatcherError> {
        if pattern.len() > LONGEST_PATTERN {
            return Err(MatcherError::TooLong(pattern.len()));
        }
        let hir = regex_syntax::ParserBuilder::new()
            .nest_limit(DEEPEST_NESTING)
            .build()
            .parse(pattern)
            .map_err(|e| syntax_error(&e))?;
        Self::parsed(pattern, &hir)
    }

    /// A pattern as agents write it, searched anywhere in the value: in the syntax of the `regex` crate, or else in that
    /// of JavaScript, with look-around and backreferences.
    ///
    /// A value that takes too many steps is accepted. Returns an error if the pattern is malformed in both, or too large.
    pub(crate) fn javascript(pattern: &str) -> Result<Self, MatcherError> {
        Self::translated(pattern, Self::search, str::to_owned)
    }

    /// The same, but the pattern must match the whole value, as in [`Matcher::whole`].
    ///
    /// Returns an error as [`Matcher::javascript`] does.
    pub(crate) fn whole_javascript(pattern: &str) -> Result<Self, MatcherError> {
        Self::translated(pattern, Self::whole, |translated| format!("^(?s:{translated})$"))
    }

    /// What `linear` makes of the pattern, or else of its translation, or else a search with steps back.
    fn translated(
        pattern: &str,
        linear: fn(&str) -> Result<Self, MatcherError>,
        framed: fn(&str) -> String,
    ) -> Result<Self, MatcherError> {
        let error = match linear(pattern) {
            Err(error @ MatcherError::Syntax { .. }) => error,
            other => return other,
        };
        let Some(translated) = javascript::translate(pattern) else { return Err(error) };
        match linear(&translated) {
            Ok(matcher) => return Ok(Self { pattern: pattern.into(), ..matcher }),
            Err(MatcherError::Syntax { .. }) => {}
            Err(other) => return Err(other),
        }
        // By itself first: a bracket that is not paired must stay an error.
        backtracking(&translated).map_err(|found| found.unwrap_or_else(|| error.clone()))?;
        let regex = backtracking(&framed(&translated)).map_err(|found| found.unwrap_or(error))?;
        let search = PatternSearch::Backtracking(Box::new(regex));
        Ok(Self { pattern: pattern.into(), search, literals: None, shortest: 0 })
    }

    /// The same, but the pattern must match the whole value. `.` matches line breaks too, so that a second line
    /// cannot hide from it.
    ///
    /// Returns an error as [`Matcher::search`] does.
    pub fn whole(pattern: &str) -> Result<Self, MatcherError> {
        // First without the anchors: errors then have positions in the pattern, and an unpaired bracket stays an error.
        Self::search(pattern)?;
        let whole = format!("^(?s:{pattern})$");
        let hir = regex_syntax::parse(&whole).map_err(|e| syntax_error(&e))?;
        Self::parsed(&whole, &hir)
    }

    /// Exactly one of these texts; shown as `shown`.
    ///
    /// Returns an error if the texts are too long or too many.
    pub fn any_of(texts: &[&str], shown: &str) -> Result<Self, MatcherError> {
        if shown.len() > LONGEST_PATTERN {
            return Err(MatcherError::TooLong(shown.len()));
        }
        let alternatives: Vec<String> = texts.iter().map(|text| regex::escape(text)).collect();
        let pattern = format!("^(?:{})$", alternatives.join("|"));
        let hir = regex_syntax::parse(&pattern).map_err(|e| syntax_error(&e))?;
        let search =
            LinearSearch::new(&pattern, &hir).map(PatternSearch::Linear).ok_or(MatcherError::TooLarge)?;
        let shortest = texts.iter().map(|text| text.len()).min().unwrap_or(0);
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        Ok(Self { pattern: shown.into(), search, literals: Some(Literals::Exact(texts)), shortest })
    }

    /// A pattern that is parsed.
    fn parsed(pattern: &str, hir: &Hir) -> Result<Self, MatcherError> {
        let search = LinearSearch::new(pattern, hir).ok_or(MatcherError::TooLarge)?;
        Ok(Self {
            pattern: pattern.into(),
            search: PatternSearch::Linear(search),
            literals: literals(hir),
            shortest: hir.properties().minimum_len().unwrap_or(0),
        })
    }

    /// Whether the value matches. One that takes too many steps does, so that a guard runs.
    pub fn accepts(&self, value: &str) -> bool {
        self.decides(value).unwrap_or(true)
    }

    /// Whether the value matches, or `None` if it takes too many steps to find out.
    pub(crate) fn decides(&self, value: &str) -> Option<bool> {
        if value.len() < self.shortest {
            return Some(false);
        }
        match &self.search {
            PatternSearch::Linear(search) => search.finds(value),
            PatternSearch::Backtracking(regex) => regex.is_match(value).ok(),
        }
    }

    /// How many steps it takes at most to decide on a value of so many bytes.
    pub(crate) fn steps(&self, length: usize) -> usize {
        match &self.search {
            PatternSearch::Linear(search) => search.steps(length),
            PatternSearch::Backtracking(_) => MOST_STEPS,
        }
    }

    /// The least bytes of a value that matches.
    pub(crate) fn shortest(&self) -> usize {
        self.shortest
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The expression that is searched for, whatever the pattern was written as.
    pub(crate) fn expression(&self) -> &str {
        match &self.search {
            PatternSearch::Linear(search) => search.as_str(),
            PatternSearch::Backtracking(regex) => regex.as_str(),
        }
    }

    /// Whether the expression is one of the `regex` crate.
    pub(crate) fn is_linear(&self) -> bool {
        matches!(self.search, PatternSearch::Linear(_))
    }

    /// The literal texts of the pattern, if there are few.
    pub fn literals(&self) -> Option<&Literals> {
        self.literals.as_ref()
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.pattern)
    }
}

/// A pattern with look-around or backreferences. Returns no error of its own where the pattern is malformed.
fn backtracking(pattern: &str) -> Result<fancy_regex::Regex, Option<MatcherError>> {
    let built = fancy_regex::RegexBuilder::new(pattern)
        .backtrack_limit(MOST_STEPS)
        .delegate_size_limit(LARGEST_PROGRAM)
        .delegate_dfa_size_limit(LARGEST_PROGRAM)
        .build();
    built.map_err(|error| match error {
        fancy_regex::Error::CompileError(why) => match *why {
            fancy_regex::CompileError::InnerError(error) => {
                error.size_limit().map(|_| MatcherError::TooLarge)
            }
            _ => None,
        },
        _ => None,
    })
}

fn syntax_error(error: &regex_syntax::Error) -> MatcherError {
    let (message, column) = match error {
        regex_syntax::Error::Parse(e) => (e.kind().to_string(), e.span().start.column),
        regex_syntax::Error::Translate(e) => (e.kind().to_string(), e.span().start.column),
        other => (other.to_string(), 1),
    };
    MatcherError::Syntax { message, column }
}

/// All alternatives must be exact or all must be free: a mixture could be looked up neither as a whole value
/// nor as a part of one.
fn literals(hir: &Hir) -> Option<Literals> {
    exact(hir)
        .map(Literals::Exact)
        .or_else(|| contained(hir).map(Literals::Contains))
        .or_else(|| needed(hir).map(Literals::Needs))
}

/// The texts of a pattern that is anchored at both ends.
fn exact(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Capture(group) => exact(&group.sub),
        HirKind::Alternation(branches) => joined(branches.iter().map(exact)),
        HirKind::Concat(parts) => match parts.as_slice() {
            [first, rest @ ..] if is_look(first, Look::Start) => ending(&Hir::concat(rest.to_vec())),
            _ => None,
        },
        _ => None,
    }
}

/// The texts of a pattern that is anchored at the end.
fn ending(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Capture(group) => ending(&group.sub),
        HirKind::Alternation(branches) => joined(branches.iter().map(ending)),
        HirKind::Concat(parts) => match parts.as_slice() {
            [rest @ .., last] if is_look(last, Look::End) => finite(&Hir::concat(rest.to_vec())),
            _ => None,
        },
        HirKind::Look(Look::End) => Some(vec![String::new()]),
        _ => None,
    }
}

fn joined(branches: impl Iterator<Item = Option<Vec<String>>>) -> Option<Vec<String>> {
    let texts = branches.collect::<Option<Vec<_>>>()?.concat();
    (texts.len() <= MOST_LITERALS).then_some(texts)
}

fn is_look(hir: &Hir, look: Look) -> bool {
    matches!(hir.kind(), HirKind::Look(found) if *found == look)
}

/// Every value contains the empty text, so a pattern that matches it is left to the regex.
fn contained(hir: &Hir) -> Option<Vec<String>> {
    finite(hir).filter(|texts| !texts.iter().any(String::is_empty))
}

/// The texts with which every match begins. A single letter would exclude too little.
fn needed(hir: &Hir) -> Option<Vec<String>> {
    texts(&Extractor::new().limit_total(MOST_LITERALS).extract(hir))
        .filter(|texts| texts.iter().all(|t| t.len() > 1))
}

fn finite(hir: &Hir) -> Option<Vec<String>> {
    if !hir.properties().look_set().is_empty() {
        return None;
    }
    let found = Extractor::new().limit_total(MOST_LITERALS).extract(hir);
    found.is_exact().then(|| texts(&found)).flatten()
}

fn texts(found: &Seq) -> Option<Vec<String>> {
    found.literals()?.iter().map(|text| String::from_utf8(text.as_bytes().to_vec()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals_of(pattern: &str) -> Option<Literals> {
        Matcher::search(pattern).unwrap().literals
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn patterns_that_are_a_few_texts_are_recognised() {
        let exact = |t: &[&str]| Some(Literals::Exact(texts(t)));
        let contains = |t: &[&str]| Some(Literals::Contains(texts(t)));
        assert_eq!(literals_of("^Bash$"), exact(&["Bash"]));
        assert_eq!(literals_of("^(?:Bash|Edit)$"), exact(&["Bash", "Edit"]));
        assert_eq!(literals_of("^Bash$|^Edit$"), exact(&["Bash", "Edit"]));
        assert_eq!(literals_of("(^Bash$)"), exact(&["Bash"]));
        assert_eq!(literals_of("^$"), exact(&[""]));
        assert_eq!(literals_of("Bash"), contains(&["Bash"]));
        assert_eq!(literals_of("Bash|Write"), contains(&["Bash", "Write"]));
        assert_eq!(literals_of("Bas[hk]"), contains(&["Bash", "Bask"]));
        let needs = |t: &[&str]| Some(Literals::Needs(texts(t)));
        assert_eq!(literals_of("^Bash"), needs(&["Bash"]));
        assert_eq!(literals_of("^Bash$|Edit"), needs(&["Bash", "Edit"]));
        assert_eq!(literals_of("mcp__.*"), needs(&["mcp__"]));
        assert_eq!(literals_of(r"\bBash\b"), needs(&["Bash"]));
        assert_eq!(literals_of("(?:Bash)?"), None);
        assert_eq!(literals_of(".*_write"), None);
    }

    #[test]
    fn a_pattern_is_searched_anywhere_and_folds_nothing() {
        let matcher = Matcher::search("Bash|Edit").unwrap();
        assert!(matcher.accepts("BashOutput") && matcher.accepts("MultiEdit"));
        assert!(!matcher.accepts("bash") && !matcher.accepts("B\u{ff41}sh"));
    }

    #[test]
    fn what_takes_too_long_to_decide_counts_as_accepted() {
        let mut state = 1_u32;
        let mut bit = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state >> 31 == 1 { '1' } else { '0' }
        };
        let long: String = (0..400_000).map(|_| bit()).collect();
        let matcher = Matcher::search("1[01]{900}x").unwrap();
        assert!(matcher.decides(&long).is_none() && matcher.accepts(&long));
        assert_eq!(matcher.decides(&long[..10_000]), Some(false));
        assert_eq!(Matcher::search("1[01]{900}").unwrap().decides(&long), Some(true));
        assert_eq!(Matcher::search(r"\bx\b|2$").unwrap().decides(&format!("{long}ä")), Some(false));
    }

    #[test]
    fn plain_texts_are_the_whole_value() {
        let matcher = Matcher::any_of(&["Bash", "a.b"], "Bash|a.b").unwrap();
        assert!(matcher.accepts("Bash") && matcher.accepts("a.b"));
        assert!(!matcher.accepts("BashOutput") && !matcher.accepts("axb") && !matcher.accepts("Bash\n"));
        assert_eq!(matcher.literals(), Some(&Literals::Exact(texts(&["Bash", "a.b"]))));
        assert_eq!(matcher.pattern(), "Bash|a.b");
    }

    #[test]
    fn a_whole_pattern_fits_the_whole_value() {
        let accepts = |pattern: &str, value: &str| Matcher::whole(pattern).unwrap().accepts(value);
        assert!(accepts("npm .*", "npm i") && accepts("npm .*", "npm i\nrm -rf /"));
        assert!(!accepts("npm", "npm i") && !accepts("a|b", "ab") && accepts("a|b", "b"));
        assert!(accepts("^Bash$", "Bash") && !accepts("(?i)bash", "bashful"));
        assert_eq!(
            Matcher::whole("Bash|Edit").unwrap().literals(),
            Some(&Literals::Exact(texts(&["Bash", "Edit"])))
        );
        assert!(Matcher::whole("a)|(b").is_err() && Matcher::whole("(?x)a # b").is_err());
        assert!(Matcher::whole("(").unwrap_err().to_string().contains("at character 1"));
    }

    #[test]
    fn patterns_of_javascript_mean_what_they_mean_there() {
        let cases: [(&str, &[&str], &[&str]); 22] = [
            ("^(?!Read).*$", &["Bash", "Write", ""], &["Read", "ReadFile"]),
            ("^(?!Read$|Glob$)", &["Bash", "Readable"], &["Read", "Glob"]),
            ("(?<=mcp__)x", &["mcp__x"], &["x", "mcpx"]),
            ("(?<!a|bc)x", &["x", "bx"], &["ax", "bcx"]),
            (r"^(\w)\1$", &["aa"], &["ab", "a"]),
            (r"^(?<q>['\x22]).*\k<q>$", &["'a'"], &["'a\""]),
            ("^[^]$", &["a", "\n"], &["", "ab"]),
            ("^a[]b|c$", &["c"], &["ab"]),
            (r"^\cA$", &["\u{1}"], &["cA", "A"]),
            (r"^[\b]$", &["\u{8}"], &["b"]),
            (r"^[\w-.]$", &["a", "-", "."], &["/"]),
            (r"^(?=[.-\w])", &["a", "-", "."], &["/"]),
            ("^a{$", &["a{"], &["a"]),
            ("^{}]$", &["{}]"], &["{}"]),
            ("^a{,2}$", &["a{,2}"], &["a"]),
            ("^(?=[[a]$)", &["[", "a"], &["b"]),
            ("^(?!x)[a&&b]$", &["a", "&", "b"], &["c"]),
            (r"^(?!x)\u0041\x42$", &["AB"], &["ab"]),
            (r"^(?!x)\u{1F600}$", &["\u{1F600}"], &["u"]),
            (r"^(?!\d)\S+\/\-$", &["a/-"], &["1/-"]),
            (r"^(?!x)\h\_$", &["h_"], &["a_"]),
            (r"^(?!b)\0?a$", &["a", "\0a"], &["ba"]),
        ];
        for (pattern, wanted, unwanted) in cases {
            let matcher = Matcher::javascript(pattern).expect(pattern);
            assert_eq!(matcher.pattern(), pattern);
            for value in wanted {
                assert!(matcher.accepts(value), "{pattern} {value:?}");
            }
            for value in unwanted {
                assert!(!matcher.accepts(value), "{pattern} {value:?}");
            }
            let again = Matcher::javascript(matcher.expression()).expect(pattern);
            for value in wanted {
                assert!(again.accepts(value), "{pattern} {value:?}");
            }
            for value in unwanted {
                assert!(!again.accepts(value), "{pattern} {value:?}");
            }
        }
        for pattern in ["(", "a)", "[a", r"(?!a)\", "(?!", "(?!a)[z-a]", r"(?!a)\u{110000}"] {
            let error = Matcher::javascript(pattern).expect_err(pattern);
            assert!(matches!(error, MatcherError::Syntax { .. }), "{pattern}: {error}");
        }
        let whole = Matcher::whole_javascript("(?!npm).*").unwrap();
        assert!(whole.accepts("git\nnpm") && !whole.accepts("npm i"));
        assert!(Matcher::whole_javascript("(?!a)b)|(c").is_err());
    }

    #[test]
    fn a_search_that_takes_too_long_is_a_match() {
        let began = tokio::time::Instant::now();
        let matcher = Matcher::javascript(r"^(?!x)(a|a|a)*(b|\1)*$").unwrap();
        assert!(matcher.accepts(&format!("{}c", "a".repeat(5000))));
        for pattern in [r"(?:(?=a)\w){1000}{1000}", &format!("(?!a){}", "(?:(?=a)a|b)*".repeat(500))] {
            if let Ok(matcher) = Matcher::javascript(pattern) {
                matcher.accepts(&"a".repeat(1000));
            }
        }
        assert!(began.elapsed() < std::time::Duration::from_mins(1), "{:?}", began.elapsed());
        let nested = format!("{}(?=a){}", "(".repeat(10_000 / 2), ")".repeat(10_000 / 2));
        assert!(Matcher::javascript(&nested).is_err());
    }

    #[test]
    fn unsafe_patterns_are_refused_with_their_place() {
        let message = |pattern: &str| Matcher::search(pattern).expect_err(pattern).to_string();
        assert!(message("(").contains("at character 1"), "{}", message("("));
        assert!(message("a(?=b)").contains("at character 2"), "{}", message("a(?=b)"));
        assert!(message("a(?=b)").contains("look-around"));
        assert!(message(r"(a)\1").contains("backreferences"));
        assert!(message(r"\w{1000}{1000}").contains("more than"));
        assert!(message(&"(?:a){50000}".repeat(3)).contains("more than"));
        let nested = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert!(message(&nested).contains("nest"), "{}", message(&nested));
        assert!(message(&"a".repeat(20_000)).contains("20000 bytes"));
    }
}
