//! Finds the hooks whose matchers accept a value, in a time that hardly grows with their number.
//!
//! Most matchers are a few plain texts. Those that are tied to both ends of the value are looked up in a hash
//! map, those that may stand anywhere in one Aho-Corasick automaton. So are the texts that a pattern cannot
//! match without; the pattern itself is then searched. Only the rest is searched always, a set at a time.

use std::{collections::HashMap, mem};

use aho_corasick::AhoCorasick;
use regex::{RegexSet, RegexSetBuilder};

use crate::model::{Literals, Matcher};

/// Patterns per set: large enough that a search is shared by many, small enough that the lazy automaton of
/// one set stays within its cache.
const SET_SIZE: usize = 512;

/// The most memory one set's program or one set's automaton may take, in bytes.
const LARGEST_SET: usize = 8 << 20;

/// The longest value that a set is searched for in, in bytes. Names of tools are shorter.
const LONGEST_TOGETHER: usize = 512;

/// The hooks of one event kind, by what their matchers accept. Hooks are numbers: their rank in the registry.
#[derive(Debug, Default)]
pub(super) struct Index {
    always: Vec<u32>,
    exact: HashMap<Box<str>, Vec<u32>>,
    contained: Option<Contained>,
    sets: Vec<PatternSet>,
}

/// Texts that may stand anywhere in the value, and what each means.
#[derive(Debug)]
struct Contained {
    automaton: AhoCorasick,
    hits: Vec<Hit>,
}

/// A hook that wants the value if a text is in it, and if its matcher, where it has to be asked, accepts it.
#[derive(Debug)]
struct Hit {
    hook: u32,
    ask: Option<Matcher>,
}

#[derive(Debug)]
enum PatternSet {
    /// Values of fewer bytes than the shortest match are not searched.
    Together {
        shortest: usize,
        set: RegexSet,
        matchers: Vec<(Matcher, u32)>,
    },
    Alone {
        matcher: Matcher,
        hook: u32,
    },
}

/// Collects the hooks of one event kind for an [`Index`].
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    index: Index,
    texts: Vec<(String, Hit)>,
    patterns: Vec<(Matcher, u32)>,
}

impl IndexBuilder {
    /// A hook that wants every event of the kind.
    pub(super) fn add_always(&mut self, hook: u32) {
        self.index.always.push(hook);
    }

    /// A hook that wants the events whose value its matcher accepts.
    pub(super) fn add(&mut self, matcher: &Matcher, hook: u32) {
        match matcher.literals() {
            Some(Literals::Exact(texts)) => {
                for text in texts {
                    self.index.exact.entry(text.as_str().into()).or_default().push(hook);
                }
            }
            Some(Literals::Contains(texts)) => {
                self.texts.extend(texts.iter().map(|text| (text.clone(), Hit { hook, ask: None })));
            }
            Some(Literals::Needs(texts)) => {
                let hit = || Hit { hook, ask: Some(matcher.clone()) };
                self.texts.extend(texts.iter().map(|text| (text.clone(), hit())));
            }
            None if matcher.is_linear() => self.patterns.push((matcher.clone(), hook)),
            None => self.index.sets.push(PatternSet::Alone { matcher: matcher.clone(), hook }),
        }
    }

    pub(super) fn build(mut self) -> Index {
        self.add_texts();
        for patterns in self.patterns.chunks(SET_SIZE) {
            add_set(&mut self.index.sets, patterns);
        }
        self.index
    }

    fn add_texts(&mut self) {
        if self.texts.is_empty() {
            return;
        }
        let (texts, hits): (Vec<_>, Vec<_>) = mem::take(&mut self.texts).into_iter().unzip();
        if let Ok(automaton) = AhoCorasick::new(&texts) {
            self.index.contained = Some(Contained { automaton, hits });
            return;
        }
        // More states than an automaton can number: the patterns say the same, only slower.
        let pattern = |(text, hit): (String, Hit)| {
            Some((hit.ask.or_else(|| Matcher::search(&regex::escape(&text)).ok())?, hit.hook))
        };
        self.patterns.extend(texts.into_iter().zip(hits).filter_map(pattern));
    }
}

/// Adds the patterns as one set, or as smaller ones if together they would be too large.
fn add_set(sets: &mut Vec<PatternSet>, patterns: &[(Matcher, u32)]) {
    if let [(matcher, hook)] = patterns {
        sets.push(PatternSet::Alone { matcher: matcher.clone(), hook: *hook });
        return;
    }
    let set = RegexSetBuilder::new(patterns.iter().map(|(matcher, _)| matcher.expression()))
        .size_limit(LARGEST_SET)
        .dfa_size_limit(LARGEST_SET)
        .build();
    if let Ok(set) = set {
        let shortest = patterns.iter().map(|(matcher, _)| matcher.shortest()).min().unwrap_or(0);
        sets.push(PatternSet::Together { shortest, set, matchers: patterns.to_vec() });
    } else {
        let (first, second) = patterns.split_at(patterns.len() / 2);
        add_set(sets, first);
        add_set(sets, second);
    }
}

impl Index {
    /// The hooks that want an event with this value, in the order of their numbers, each once.
    pub(super) fn select(&self, value: Option<&str>) -> Vec<u32> {
        let mut found = Vec::new();
        if let Some(value) = value {
            if let Some(hooks) = self.exact.get(value) {
                found.extend_from_slice(hooks);
            }
            if let Some(Contained { automaton, hits }) = &self.contained {
                let hits = automaton.find_overlapping_iter(value).map(|hit| &hits[hit.pattern().as_usize()]);
                let wanted = hits.filter(|hit| hit.ask.as_ref().is_none_or(|matcher| matcher.accepts(value)));
                found.extend(wanted.map(|hit| hit.hook));
            }
            for set in &self.sets {
                set.select(value, &mut found);
            }
        }
        found.extend_from_slice(&self.always);
        if found.len() > self.always.len() {
            found.sort_unstable();
            found.dedup();
        }
        found
    }
}

impl PatternSet {
    fn select(&self, value: &str, found: &mut Vec<u32>) {
        match self {
            // The search of a set is not bounded in time, as that of a matcher is.
            Self::Together { matchers, .. } if value.len() > LONGEST_TOGETHER => {
                let wanted = matchers.iter().filter(|(matcher, _)| matcher.accepts(value));
                found.extend(wanted.map(|(_, hook)| *hook));
            }
            Self::Together { shortest, set, matchers } => {
                // `is_match` allocates nothing, and most sets have no match.
                if value.len() >= *shortest && set.is_match(value) {
                    found.extend(set.matches(value).iter().map(|pattern| matchers[pattern].1));
                }
            }
            Self::Alone { matcher, hook } => {
                if matcher.accepts(value) {
                    found.push(*hook);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Compiling sets of patterns is slow without optimisation.
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn finds_what_trying_each_matcher_finds(
            patterns in prop::collection::vec(r"\^?(A|B|AB|Bash|\[AB\]c\?|A\.\*B|AB\.\*c|B\+)(\|(C|\^Bash\$|AB))?\$?", 0..90),
            value in "(Bash|[ABc]{0,6})",
        ) {
            let matchers: Vec<_> = patterns.iter().map(|p| Matcher::search(p).unwrap()).collect();
            let mut builder = IndexBuilder::default();
            for (hook, matcher) in (0..).zip(&matchers) {
                builder.add(matcher, hook);
            }
            let expected: Vec<u32> = (0..).zip(&matchers).filter(|(_, m)| m.accepts(&value)).map(|(i, _)| i).collect();
            prop_assert_eq!(builder.build().select(Some(&value)), expected);
        }
    }
}
