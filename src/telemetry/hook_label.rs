//! The label of a hook: its name, for the first 200 names of the process, so that the number of series is bounded. A label
//! is never reused: the series of a removed hook stay with whoever collects them.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

use parking_lot::Mutex;

use super::names;

/// How many hooks get a label of their own; the rest share [`OTHER`].
const MOST: usize = 200;

/// The label of the hooks beyond [`MOST`].
const OTHER: &str = "__other__";

/// How many further names are remembered, so that each counts once; the rest count whenever they are loaded.
const MOST_COUNTED: usize = 1 << 16;

static LABELS: LazyLock<Mutex<Labels>> = LazyLock::new(Mutex::default);

/// The names that came so far.
#[derive(Default)]
struct Labels {
    own: HashSet<Box<str>>,
    /// Hashes of the names that came too late.
    beyond: HashSet<u64>,
    hasher: RandomState,
}

/// What becomes of a name.
#[derive(Debug, PartialEq, Eq)]
enum LabelKind {
    Own,
    /// It shares a label, and did before.
    Shared,
    /// It shares a label from now on.
    NewlyShared,
}

impl Labels {
    fn label_kind(&mut self, name: &str) -> LabelKind {
        if self.own.contains(name) {
            return LabelKind::Own;
        }
        if self.own.len() < MOST {
            self.own.insert(name.into());
            return LabelKind::Own;
        }
        let hash = self.hasher.hash_one(name);
        if self.beyond.len() < MOST_COUNTED && self.beyond.insert(hash) || !self.beyond.contains(&hash) {
            return LabelKind::NewlyShared;
        }
        LabelKind::Shared
    }
}

/// The label of a hook: its name, unless too many have one.
pub(super) fn of_hook(name: &str) -> &str {
    let label_kind = LABELS.lock().label_kind(name);
    if label_kind == LabelKind::NewlyShared {
        names::LABEL_OVERFLOW.counter([]).increment(1);
    }
    if label_kind == LabelKind::Own { name } else { OTHER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_label_and_one_too_many_counts_once() {
        let mut labels = Labels::default();
        for number in 0..MOST {
            assert_eq!(labels.label_kind(&format!("hook-{number}")), LabelKind::Own);
        }
        assert_eq!(labels.label_kind("late"), LabelKind::NewlyShared);
        assert_eq!(labels.label_kind("late"), LabelKind::Shared);
        assert_eq!(labels.label_kind("later"), LabelKind::NewlyShared);
        assert_eq!(labels.label_kind("hook-7"), LabelKind::Own);
    }
}
