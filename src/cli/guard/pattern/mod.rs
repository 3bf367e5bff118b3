//! Patterns of `grep`, shells, Python and JavaScript, as rules write them. What cannot be written with the same meaning is
//! refused.

mod emit;
mod escape;
mod flavour;
mod signs;
mod syntax;

pub(super) use emit::NO_EDGE_HERE;
pub(super) use escape::escaped;
pub(in crate::cli) use flavour::SystemCharacters;
pub(super) use flavour::{LetterCase, PatternFlavour, PatternPlace};

use super::text::{FieldTest, Unclear};
use crate::model::Matcher;

/// A pattern as it is written somewhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct ForeignPattern<'t> {
    pub(super) text: &'t str,
    pub(super) flavour: PatternFlavour,
    pub(super) place: PatternPlace,
    pub(super) case: LetterCase,
    pub(super) characters: SystemCharacters,
}

impl ForeignPattern<'_> {
    /// The test that means the same.
    pub(super) fn test(&self) -> Result<FieldTest, Unclear> {
        let refuse = |why: &str| Unclear::new(format!("the pattern `{}`: {why}", self.text));
        let (parsed, case) = match syntax::parse(self.text, self.flavour) {
            Ok(parsed) => parsed,
            Err(why) => return refuse(&why),
        };
        let case = if case == LetterCase::Ignored { case } else { self.case };
        if let (Some(literal), PatternPlace::Anywhere, LetterCase::Matters) =
            (parsed.literal(), self.place, case)
            && !literal.is_empty()
        {
            return Ok(FieldTest::Contains(literal));
        }
        let meaning = emit::PatternMeaning { flavour: self.flavour, case, characters: self.characters };
        let text = match meaning.write(&parsed) {
            Ok(text) => text,
            Err(why) => return refuse(&why),
        };
        let text = match self.place {
            PatternPlace::Anywhere => text,
            PatternPlace::AtStart => format!(r"\A(?:{text})"),
            PatternPlace::Whole => format!(r"\A(?:{text})\z"),
            PatternPlace::WholeLine => format!("(?m:^(?:{text})$)"),
        };
        match Matcher::search(&text) {
            Err(error) => refuse(&format!("rules have no such pattern: {error}")),
            // Lines that are not there would be lines here.
            Ok(compiled) if self.flavour.is_by_line() && compiled.accepts("") => {
                refuse("it matches an empty line")
            }
            Ok(_) => Ok(FieldTest::Matches(text)),
        }
    }
}
