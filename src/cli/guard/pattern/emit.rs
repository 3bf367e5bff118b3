//! Writes a pattern in the syntax of rules, with the meaning that it has where it comes from.

use std::fmt::Write;

use super::{
    escape::push_literal,
    flavour::{LetterCase, PatternFlavour, SystemCharacters},
    signs::{Beside, NodeSide, UNCLEAR, counts_units},
    syntax::{CharClass, ClassItem, PatternNode},
};

/// White space of the C library in a locale with Unicode, without the line's end: nor what must not be broken.
const SYSTEM_SPACE: &str = r"[\s--[\n\x{85}\x{A0}\x{2007}\x{202F}]]";

/// White space of the C library in other locales, without the line's end.
const ASCII_SPACE: &str = r"\t\x0B\x0C\r ";

/// What an edge of a word begins with that is none here: a sign in words here, without the words there.
pub(in crate::cli::guard) const NO_EDGE_HERE: &str = r"[\w--";

/// What a pattern means where it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct PatternMeaning {
    pub(super) flavour: PatternFlavour,
    pub(super) case: LetterCase,
    pub(super) characters: SystemCharacters,
}

type Written = Result<(), String>;

impl PatternMeaning {
    /// The pattern of a rule.
    pub(super) fn write(self, node: &PatternNode) -> Result<String, String> {
        if self.flavour == PatternFlavour::Python && !has_end_last_only(node, true) {
            return Err("`$` in the middle".to_owned());
        }
        if self.is_folded() && self.flavour == PatternFlavour::Jq {
            return Err("case is ignored".to_owned());
        }
        if self.flavour == PatternFlavour::JavaScript && counts_units(node) {
            return Err("it counts signs beyond U+FFFF as two".to_owned());
        }
        let mut text = String::new();
        self.node(node, (Beside::Nothing, Beside::Nothing), &mut text)?;
        Ok(if self.is_folded() { format!("(?i:{text})") } else { text })
    }

    fn is_folded(self) -> bool {
        self.case == LetterCase::Ignored
    }

    /// Whether letters and spaces beyond ASCII are known as such.
    fn knows_unicode(self) -> bool {
        match self.flavour {
            PatternFlavour::Python | PatternFlavour::Jq => true,
            PatternFlavour::JavaScript => false,
            _ => self.characters == SystemCharacters::Unicode,
        }
    }

    fn node(self, node: &PatternNode, beside: (Beside, Beside), text: &mut String) -> Written {
        match node {
            PatternNode::Char(c) => return self.char(*c, text),
            PatternNode::Any => text.push_str(self.any()),
            PatternNode::Class(class) => return self.class(class, text),
            PatternNode::Start | PatternNode::End | PatternNode::TextEnd => text.push_str(self.edge(node)?),
            PatternNode::WordEdge => return self.word_edge(r"\b", beside, text),
            PatternNode::WordStart => return self.word_edge(r"\b{start}", beside, text),
            PatternNode::WordEnd => return self.word_edge(r"\b{end}", beside, text),
            // Without Unicode it could match within a character, and others have other words.
            PatternNode::NoWordEdge => return Err("`\\B`".to_owned()),
            PatternNode::Sequence(nodes) => {
                for (at, node) in nodes.iter().enumerate() {
                    let before =
                        nodes[..at].last().map_or(beside.0, |before| Beside::of(before, NodeSide::End));
                    let behind =
                        nodes.get(at + 1).map_or(beside.1, |behind| Beside::of(behind, NodeSide::Start));
                    match node {
                        PatternNode::Either(_) => self.group(node, (before, behind), text)?,
                        node => self.node(node, (before, behind), text)?,
                    }
                }
            }
            PatternNode::Either(branches) => {
                for (at, branch) in branches.iter().enumerate() {
                    text.push_str(if at == 0 { "" } else { "|" });
                    self.node(branch, beside, text)?;
                }
            }
            PatternNode::Repeat(repeated, least, most) => return self.repeat(repeated, *least, *most, text),
        }
        Ok(())
    }

    fn group(self, node: &PatternNode, beside: (Beside, Beside), text: &mut String) -> Written {
        text.push_str("(?:");
        self.node(node, beside, text)?;
        text.push(')');
        Ok(())
    }

    /// An edge of a word. A sign that is no part of words there and is one here takes the place of an edge, where it does not
    /// matter that the pattern takes it.
    fn word_edge(self, edge: &str, beside: (Beside, Beside), text: &mut String) -> Written {
        if !self.knows_unicode() {
            return write!(text, "(?-u:{edge})").map_err(|error| error.to_string());
        }
        match beside {
            (Beside::Plain, Beside::Plain) => text.push_str(edge),
            (Beside::Unclear, _) | (_, Beside::Unclear) => {
                return Err("an edge of a word beside what may be any sign".to_owned());
            }
            _ => write!(text, r"(?:{edge}|{NO_EDGE_HERE}{}])", self.word())
                .map_err(|error| error.to_string())?,
        }
        Ok(())
    }

    /// The parts of words.
    fn word(self) -> &'static str {
        match (self.flavour, self.knows_unicode()) {
            (PatternFlavour::Python, _) => r"[\p{L}\p{N}_]",
            // As Oniguruma has it.
            (PatternFlavour::Jq, _) => r"[[\w\xB2\xB3\xB9\xBC-\xBE]--[\x{200C}\x{200D}]]",
            (_, true) => r"[\p{Alphabetic}\p{Nd}_]",
            (_, false) => "0-9A-Za-z_",
        }
    }

    fn repeat(self, node: &PatternNode, least: u32, most: Option<u32>, text: &mut String) -> Written {
        match node {
            PatternNode::Char(_) | PatternNode::Any | PatternNode::Class(_) => {
                self.node(node, UNCLEAR, text)?;
            }
            node => self.group(node, UNCLEAR, text)?,
        }
        let counted = match (least, most) {
            (0, None) => "*".to_owned(),
            (1, None) => "+".to_owned(),
            (0, Some(1)) => "?".to_owned(),
            (least, None) => format!("{{{least},}}"),
            (least, Some(most)) if least == most => format!("{{{least}}}"),
            (least, Some(most)) => format!("{{{least},{most}}}"),
        };
        text.push_str(&counted);
        Ok(())
    }

    fn any(self) -> &'static str {
        match self.flavour {
            PatternFlavour::Bash => "(?s:.)",
            PatternFlavour::JavaScript => r"[^\n\r\x{2028}\x{2029}]",
            _ => ".",
        }
    }

    fn edge(self, node: &PatternNode) -> Result<&'static str, String> {
        Ok(match (self.flavour, node) {
            // The ends of lines for Oniguruma, and whether the last one counts, differ.
            (PatternFlavour::Jq, _) => return Err("`^` and `$` in jq".to_owned()),
            (PatternFlavour::GrepBasic | PatternFlavour::GrepExtended, PatternNode::Start) => "(?m:^)",
            (PatternFlavour::GrepBasic | PatternFlavour::GrepExtended, _) => "(?m:$)",
            (_, PatternNode::Start) => "^",
            // Before a line's end at the very end, too.
            (PatternFlavour::Python, PatternNode::End) => r"(?:\n?\z)",
            // What a shell reads with `$(…)` has lost its last line's ends.
            (PatternFlavour::Bash, _) => r"(?:\n*\z)",
            _ => "$",
        })
    }

    fn char(self, c: char, text: &mut String) -> Written {
        if !self.is_folded() || !c.is_alphabetic() {
            push_literal(c, text);
            return Ok(());
        }
        if !c.is_ascii() {
            return Err("it ignores the case of letters beyond ASCII".to_owned());
        }
        match (c.to_ascii_lowercase(), self.knows_unicode()) {
            ('i', true) if self.flavour == PatternFlavour::Python => text.push_str(r"[i\x{130}\x{131}]"),
            (c @ ('k' | 's'), false) => {
                // Beyond ASCII there are signs that fold to these.
                write!(text, "(?-i:[{}{c}])", c.to_ascii_uppercase()).map_err(|error| error.to_string())?;
            }
            _ => text.push(c),
        }
        Ok(())
    }

    fn class(self, class: &CharClass, text: &mut String) -> Written {
        if self.is_folded() {
            return self.folded_class(class, text);
        }
        if class.is_negated && class.items == [ClassItem::Word] && self.flavour.is_posix() {
            return Err("`\\W`".to_owned());
        }
        let without_line_end = class.is_negated && self.flavour.is_by_line();
        let mut inner = String::new();
        for item in &class.items {
            self.item(item, &mut inner)?;
        }
        if without_line_end {
            inner.push_str(r"\n");
        }
        let shown = match (class.is_negated, inner.as_str(), class.items.len()) {
            (false, r"\d" | r"\s", 1) => inner,
            (false, set, 1) if set.starts_with('[') => inner,
            (negated, _, _) => format!("[{}{inner}]", if negated { "^" } else { "" }),
        };
        text.push_str(&shown);
        Ok(())
    }

    fn folded_class(self, class: &CharClass, text: &mut String) -> Written {
        let mut inner = String::new();
        for item in &class.items {
            match item {
                ClassItem::Range(first, last) if is_without_letters(*first, *last) => {
                    self.item(item, &mut inner)?;
                }
                ClassItem::Range('a', 'z') | ClassItem::Range('A', 'Z') if !self.knows_unicode() => {
                    inner.push_str("a-zA-Z");
                }
                ClassItem::Range(first, last)
                    if first == last && first.is_ascii() && !self.knows_unicode() =>
                {
                    inner.extend([first.to_ascii_lowercase(), first.to_ascii_uppercase()]);
                }
                ClassItem::Word if self.flavour == PatternFlavour::JavaScript => {
                    return Err("a set of letters without their case".to_owned());
                }
                ClassItem::Space | ClassItem::Digit | ClassItem::Word => self.item(item, &mut inner)?,
                _ => return Err("a set of letters without their case".to_owned()),
            }
        }
        if class.is_negated && self.flavour.is_by_line() {
            inner.push_str(r"\n");
        }
        let sign = if class.is_negated { "^" } else { "" };
        if sign.is_empty() && class.items.len() == 1 && inner.starts_with('[') {
            return write!(text, "(?-i:{inner})").map_err(|error| error.to_string());
        }
        write!(text, "(?-i:[{sign}{inner}])").map_err(|error| error.to_string())
    }

    fn item(self, item: &ClassItem, inner: &mut String) -> Written {
        let written = match item {
            ClassItem::Range(first, last) if first == last => escaped(*first),
            ClassItem::Range(first, last) => format!("{}-{}", escaped(*first), escaped(*last)),
            ClassItem::Space => self.space().to_owned(),
            ClassItem::Digit if self.knows_unicode() => r"\d".to_owned(),
            ClassItem::Digit => "0-9".to_owned(),
            ClassItem::Word => self.word().to_owned(),
            ClassItem::Named(name) => self.named(name)?.to_owned(),
        };
        inner.push_str(&written);
        Ok(())
    }

    fn space(self) -> &'static str {
        match (self.flavour, self.characters) {
            (PatternFlavour::JavaScript, _) => r"[\s\x{FEFF}--\x{85}]",
            (PatternFlavour::Python, _) => r"\s\x1C-\x1F",
            (PatternFlavour::Jq, _) => r"\s",
            (PatternFlavour::Bash, SystemCharacters::Unicode) => r"[\s--[\x{85}\x{A0}\x{2007}\x{202F}]]",
            (PatternFlavour::Bash, SystemCharacters::Ascii) => r"\t\n\x0B\x0C\r ",
            (_, SystemCharacters::Unicode) => SYSTEM_SPACE,
            (_, SystemCharacters::Ascii) => ASCII_SPACE,
        }
    }

    fn named(self, name: &str) -> Result<&'static str, String> {
        let unicode = self.knows_unicode();
        Ok(match name {
            "blank" if !unicode => r"\t ",
            "alpha" if !unicode => "A-Za-z",
            "alnum" if !unicode => "0-9A-Za-z",
            "upper" if !unicode => "A-Z",
            "lower" if !unicode => "a-z",
            "alpha" => r"[[\p{Alphabetic}\p{Nd}]--[0-9]]",
            "alnum" => r"\p{Alphabetic}\p{Nd}",
            "upper" => r"\p{Uppercase}",
            "lower" => r"\p{Lowercase}",
            "xdigit" => "0-9A-Fa-f",
            _ => return Err(format!("`[:{name}:]` is not understood")),
        })
    }
}

fn is_without_letters(first: char, last: char) -> bool {
    first.is_ascii() && last.is_ascii() && !(first..=last).any(|c| c.is_ascii_alphabetic())
}

/// A character in a set.
fn escaped(c: char) -> String {
    match c {
        '\n' => r"\n".to_owned(),
        '\t' => r"\t".to_owned(),
        '\r' => r"\r".to_owned(),
        c if c.is_ascii_punctuation() && c != '_' && c != '/' => format!("\\{c}"),
        c => c.to_string(),
    }
}

/// Whether the ends that it asks for are at its own end.
fn has_end_last_only(node: &PatternNode, is_last: bool) -> bool {
    match node {
        PatternNode::End => is_last,
        PatternNode::Sequence(nodes) => nodes
            .iter()
            .enumerate()
            .all(|(at, node)| has_end_last_only(node, is_last && at + 1 == nodes.len())),
        PatternNode::Either(branches) => branches.iter().all(|branch| has_end_last_only(branch, is_last)),
        PatternNode::Repeat(node, _, _) => has_end_last_only(node, false),
        _ => true,
    }
}
