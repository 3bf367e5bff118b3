//! Searches whose time is bounded, whatever the value.
//!
//! Most patterns are searched for in a few nanoseconds a byte, since what is known of their states is kept. One such as
//! `1[01]{900}x` has too many of them for that: each byte may then take a step for each of its parts, which are thousands.

use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};
use regex_automata::{
    Input,
    hybrid::dfa::{Cache, DFA},
    nfa::thompson::{self, WhichCaptures},
    util::pool::Pool,
};
use regex_syntax::hir::{Class, Hir, HirKind};

/// How deep groups may nest.
pub(super) const DEEPEST_NESTING: u32 = 64;

/// The most memory one compiled pattern may take, in bytes; the same again bounds its lazy automaton.
pub(super) const LARGEST_PROGRAM: usize = 1 << 20;

/// As many steps are taken in some milliseconds, each for a byte and a part of the pattern.
const FEW_STEPS: usize = 2 << 20;

/// As many are taken in a quarter of a second.
const MOST_STEPS: usize = 32 << 20;

/// How often the lazy automaton's states may outgrow its memory before it must be worth it.
const MOST_CLEARINGS: usize = 3;

/// A state takes about a step for each part of the pattern. It is worth that for a byte out of so many parts.
const PARTS_PER_BYTE: usize = 16;

/// A pattern that is searched for in a time that is linear in the value.
#[derive(Debug, Clone)]
pub(super) struct LinearSearch(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    regex: Regex,
    /// How many parts it has: about the states of its automaton.
    size: usize,
    /// For long values. Made when one comes.
    lazy: OnceLock<Option<LazySearch>>,
}

/// The lazy automaton of a pattern, which gives up where it does not help.
#[derive(Debug)]
struct LazySearch {
    automaton: DFA,
    caches: Pool<Cache, MakeCache>,
}

type MakeCache = Box<dyn Fn() -> Cache + Send + Sync>;

impl LinearSearch {
    /// Compiles a pattern, and counts the parts of what it means. `None` if it takes more memory than allowed.
    pub(super) fn new(pattern: &str, hir: &Hir) -> Option<Self> {
        let regex = RegexBuilder::new(pattern)
            .size_limit(LARGEST_PROGRAM)
            .dfa_size_limit(LARGEST_PROGRAM)
            .nest_limit(DEEPEST_NESTING)
            .build()
            .ok()?;
        Some(Self(Arc::new(Compiled { regex, size: parts(hir), lazy: OnceLock::new() })))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.regex.as_str()
    }

    /// How many steps a search in a value of this length, in bytes, takes that does not give up.
    pub(super) fn steps(&self, length: usize) -> usize {
        self.most_steps(length).min(FEW_STEPS)
    }

    fn most_steps(&self, length: usize) -> usize {
        self.0.size.saturating_mul(length)
    }

    /// Whether the pattern is in the value, or `None` if it takes too long to find out.
    pub(super) fn finds(&self, value: &str) -> Option<bool> {
        let steps = self.most_steps(value.len());
        if steps > FEW_STEPS {
            let lazy = self.0.lazy.get_or_init(|| LazySearch::new(self.as_str(), self.0.size));
            if let Some(found) = lazy.as_ref().and_then(|lazy| lazy.finds(value)) {
                return Some(found);
            }
            if steps > MOST_STEPS {
                return None;
            }
        }
        Some(self.0.regex.is_match(value))
    }
}

impl LazySearch {
    /// None if the automaton of a pattern cannot be made.
    fn new(pattern: &str, size: usize) -> Option<Self> {
        let hir = regex_syntax::parse(pattern).ok()?;
        let config = thompson::Config::new().which_captures(WhichCaptures::None);
        let program = thompson::Compiler::new().configure(config).build_from_hir(&hir).ok()?;
        let config = DFA::config()
            .cache_capacity(LARGEST_PROGRAM)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true)
            .minimum_cache_clear_count(Some(MOST_CLEARINGS))
            .minimum_bytes_per_state(Some((size / PARTS_PER_BYTE).max(1)));
        let automaton = DFA::builder().configure(config).build_from_nfa(program).ok()?;
        let of_caches = automaton.clone();
        let make: MakeCache = Box::new(move || of_caches.create_cache());
        Some(Self { automaton, caches: Pool::new(make) })
    }

    /// Whether the pattern is in the value. `None` if the automaton gave up: each part of the value needs new states of it, or
    /// `\b` stands beside a letter that is not of ASCII.
    fn finds(&self, value: &str) -> Option<bool> {
        let found = self.automaton.try_search_fwd(&mut self.caches.get(), &Input::new(value).earliest(true));
        found.map(|found| found.is_some()).ok()
    }
}

/// About how many states the automaton of a pattern has.
fn parts(hir: &Hir) -> usize {
    /// UTF-8 takes about so many to tell the letters of a range from others.
    const OF_RANGE: usize = 4;
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) if !class.is_ascii() => OF_RANGE * class.ranges().len(),
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => 1,
        HirKind::Literal(text) => text.0.len(),
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min.saturating_add(1));
            let times = usize::try_from(times).unwrap_or(usize::MAX);
            parts(&repeated.sub).saturating_add(1).saturating_mul(times)
        }
        HirKind::Capture(group) => parts(&group.sub),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => {
            subs.iter().map(|sub| parts(sub).saturating_add(1)).fold(1, usize::saturating_add)
        }
    }
}
