//! The ways through a script: what holds on each, what it prints, and how it ends.

use super::text::{FieldTest, GuardField, GuardText, Unclear};

/// The most ways through a script.
const MOST_PATHS: usize = 128;

/// The most things that a script does on all of its ways.
const MOST_STEPS: usize = 20_000;

/// One answer to a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct PathAnswer {
    /// Which question it was, so that the other answer can be found.
    pub(super) split: usize,
    pub(super) field: GuardField,
    pub(super) test: FieldTest,
    pub(super) holds: bool,
}

/// How a script ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum PathEnd {
    Exit(i32),
    /// By an error that it does not catch.
    Error,
}

/// One way through a script.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct ScriptPath {
    pub(super) steps: Vec<PathAnswer>,
    pub(super) out: GuardText,
    pub(super) err: GuardText,
    pub(super) end: Option<PathEnd>,
}

/// The ways on from a test; none where the answer is known.
#[derive(Debug)]
pub(super) struct PathFork {
    pub(super) holds: Option<ScriptPath>,
    pub(super) fails: Option<ScriptPath>,
}

/// Counts questions and steps.
#[derive(Debug, Default)]
pub(super) struct PathBounds {
    splits: usize,
    steps: usize,
}

impl ScriptPath {
    /// The answer to a test, if what is known says it.
    fn answer(&self, field: &GuardField, test: &FieldTest) -> Option<bool> {
        if *test == FieldTest::IsThere && field.is_always_there() {
            return Some(true);
        }
        self.steps.iter().filter(|step| step.field.path == field.path).find_map(|step| {
            match (&step.test, step.holds) {
                (known, holds) if known == test && (step.field == *field) => Some(holds),
                (FieldTest::OneOf(texts), true) if *test != FieldTest::IsThere => {
                    let holds = test.holds(texts.first()?);
                    texts.iter().all(|text| test.holds(text) == holds).then_some(holds)
                }
                (FieldTest::OneOf(texts), false) if texts == &[""] => {
                    (*test == FieldTest::IsThere).then_some(true)
                }
                (FieldTest::IsThere | FieldTest::OneOf(_), _) => None,
                (known, true) if !known.holds("") && *test == FieldTest::IsThere => Some(true),
                _ => None,
            }
        })
    }
}

impl PathBounds {
    /// Goes on in both ways from a test.
    pub(super) fn fork(
        &mut self,
        path: &ScriptPath,
        field: GuardField,
        test: FieldTest,
    ) -> Result<PathFork, Unclear> {
        self.step()?;
        let (field, test) = field.tested(test);
        match path.answer(&field, &test) {
            Some(true) => return Ok(PathFork { holds: Some(path.clone()), fails: None }),
            Some(false) => return Ok(PathFork { holds: None, fails: Some(path.clone()) }),
            None => {}
        }
        if self.splits == MOST_PATHS {
            return Unclear::new("it asks too many questions");
        }
        self.splits += 1;
        let (mut holds, mut fails) = (path.clone(), path.clone());
        let step = PathAnswer { split: self.splits, field, test, holds: true };
        holds.steps.push(step.clone());
        fails.steps.push(PathAnswer { holds: false, ..step });
        Ok(PathFork { holds: Some(holds), fails: Some(fails) })
    }

    /// Counts a step.
    pub(super) fn step(&mut self) -> Result<(), Unclear> {
        self.steps += 1;
        if self.steps > MOST_STEPS { Unclear::new("it does too much") } else { Ok(()) }
    }
}
