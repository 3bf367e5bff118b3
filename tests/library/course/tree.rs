//! JSON as a plain tree that keeps the order of its keys, for the reference.

use std::fmt;

use hookyard::model::Json;

/// One JSON value. Leaves are kept as they are written.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Tree {
    Leaf(&'static str),
    List(Vec<Tree>),
    Object(Vec<(&'static str, Tree)>),
}

impl Tree {
    /// The value as hookyard takes it.
    pub(crate) fn json(&self) -> Json {
        Json::parse(&self.to_string()).expect("a tree writes valid JSON")
    }

    /// Two objects: each key of the patch is set, in its place or at the end. Anything else: the patch.
    pub(crate) fn merged_one_level(&self, patch: &Self) -> Self {
        self.merged(patch, |_, theirs| theirs.clone())
    }

    /// As one level, and where both have an object under a key, the same again there.
    pub(crate) fn merged_deep(&self, patch: &Self) -> Self {
        self.merged(patch, Self::merged_deep)
    }

    fn merged(&self, patch: &Self, both: impl Fn(&Self, &Self) -> Self) -> Self {
        let (Self::Object(ours), Self::Object(theirs)) = (self, patch) else { return patch.clone() };
        let mut fields = ours.clone();
        for (key, value) in theirs {
            match fields.iter_mut().find(|(known, _)| known == key) {
                Some((_, old)) => *old = both(old, value),
                None => fields.push((key, value.clone())),
            }
        }
        Self::Object(fields)
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = |index: usize| if index == 0 { "" } else { "," };
        match self {
            Self::Leaf(text) => f.write_str(text),
            Self::List(items) => {
                f.write_str("[")?;
                items.iter().enumerate().try_for_each(|(n, item)| write!(f, "{}{item}", comma(n)))?;
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                fields
                    .iter()
                    .enumerate()
                    .try_for_each(|(n, (key, v))| write!(f, "{}\"{key}\":{v}", comma(n)))?;
                f.write_str("}")
            }
        }
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
