//! Texts to try a guard and its rule with: what its patterns match, what they almost match, and what is odd.

use std::collections::BTreeSet;

use regex_syntax::hir::{Class, Hir, HirKind};

use super::{
    paths::PathAnswer,
    rule::GuardRule,
    text::{FieldTest, GuardField},
};

/// The most texts for one guard.
const MOST: usize = 90;

/// The most texts that a pattern matches.
const MOST_MATCHES: usize = 6;

/// The most characters of a text that are left out one by one.
const MOST_LEFT_OUT: usize = 6;

/// What an event has where the guard looks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct GuardSample {
    /// The name of the tool, if the guard asks for it.
    pub(in crate::cli) tool: Option<String>,
    /// The keys of the field, from the input on; none if it looks at nothing but the name.
    pub(in crate::cli) path: Vec<String>,
    /// The text of the field; none where it is missing.
    pub(in crate::cli) text: Option<String>,
}

/// Samples for the questions of a rule.
pub(in crate::cli) fn samples(rule: &GuardRule) -> Vec<GuardSample> {
    let is_of_tool = |step: &&PathAnswer| step.field.is_always_there();
    let steps = rule.steps();
    let field = steps.iter().find(|step| !is_of_tool(step)).map(|step| step.field.clone());
    let texts = field.as_ref().map_or_else(Vec::new, |field| texts_of(field, steps));
    let mut tools = vec![None];
    for step in steps.iter().filter(is_of_tool) {
        for name in matches_of(&step.test) {
            if !tools.contains(&Some(name.clone())) {
                tools.push(Some(name));
            }
        }
    }
    if tools.len() > 1 {
        tools.push(Some("Somewhat".to_owned()));
    }
    let path = field.map(|field| field.path).unwrap_or_default();
    let mut found = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        // Every text with the first name, and a few with the others.
        let share = if at <= 1 { MOST } else { 8 };
        let sample = |text| GuardSample { tool: tool.clone(), path: path.clone(), text };
        found.push(sample(None));
        found.extend(texts.iter().take(share).cloned().map(Some).map(sample));
    }
    found
}

fn texts_of(field: &GuardField, steps: &[PathAnswer]) -> Vec<String> {
    let mut matches: Vec<Vec<String>> = Vec::new();
    for step in steps.iter().filter(|step| step.field.path == field.path) {
        let own = matches_of(&step.test);
        if !own.is_empty() && !matches.contains(&own) {
            matches.push(own);
        }
    }
    let mut seen = BTreeSet::new();
    let mut texts = Vec::new();
    let mut add = |text: String| {
        if texts.len() < MOST && seen.insert(text.clone()) {
            texts.push(text);
        }
    };
    for own in &matches {
        own.iter().take(2).cloned().for_each(&mut add);
    }
    for text in
        ["", "ls -la", "a\nb", "\n", " ", "-n", "\u{e9}\u{65e5}\u{672c} \u{1f600}", "null", "undefined"]
    {
        add(text.to_owned());
    }
    for pair in matches.windows(2) {
        if let [one, other] = pair
            && let (Some(one), Some(other)) = (one.first(), other.first())
        {
            add(format!("{one} {other}"));
            add(format!("{other}\n{one}"));
        }
    }
    // The same changes of each pattern, in turns: with many patterns each has a few.
    let changed: Vec<Vec<String>> =
        matches.iter().filter_map(|own| own.first()).map(|text| changes(text)).collect();
    let longest = changed.iter().map(Vec::len).max().unwrap_or_default();
    for place in 0..longest {
        for own in &changed {
            if let Some(text) = own.get(place) {
                add(text.clone());
            }
        }
    }
    for own in &matches {
        own.iter().skip(2).cloned().for_each(&mut add);
    }
    texts
}

/// Texts for which a test holds.
fn matches_of(test: &FieldTest) -> Vec<String> {
    match test {
        FieldTest::Contains(text) | FieldTest::StartsWith(text) | FieldTest::EndsWith(text) => {
            vec![text.clone()]
        }
        FieldTest::OneOf(texts) => {
            texts.iter().filter(|text| !text.is_empty()).take(MOST_MATCHES).cloned().collect()
        }
        FieldTest::IsThere => Vec::new(),
        FieldTest::Matches(pattern) => {
            let Ok(hir) = regex_syntax::parse(pattern) else { return Vec::new() };
            let mut found = Vec::new();
            for turn in 0..MOST_MATCHES * 3 {
                let mut text = String::new();
                write_match(&hir, turn, &mut text);
                let framed = [text.clone(), format!(" {text} "), format!("a{text}a")];
                let Some(text) = framed.into_iter().find(|text| test.holds(text)) else { continue };
                if !found.contains(&text) && found.len() < MOST_MATCHES {
                    found.push(text);
                }
            }
            found
        }
    }
}

/// Writes what a pattern matches; another turn takes other ways through it.
fn write_match(hir: &Hir, turn: usize, text: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.extend(char_of(class, turn)),
        HirKind::Capture(capture) => write_match(&capture.sub, turn, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write_match(part, turn, text)),
        HirKind::Alternation(parts) => {
            if let Some(part) = parts.get(turn % parts.len()) {
                write_match(part, turn, text);
            }
        }
        HirKind::Repetition(repetition) => {
            let least = repetition.min.min(8);
            let most = repetition.max.unwrap_or(least + 1).min(least + 1);
            let count = if turn.is_multiple_of(2) { least } else { most };
            (0..count).for_each(|_| write_match(&repetition.sub, turn, text));
        }
    }
}

fn char_of(class: &Class, turn: usize) -> Option<char> {
    let ends: Vec<char> = match class {
        Class::Unicode(class) => {
            class.ranges().iter().flat_map(|range| [range.start(), range.end()]).collect()
        }
        Class::Bytes(class) => class
            .ranges()
            .iter()
            .flat_map(|range| [char::from(range.start()), char::from(range.end())])
            .collect(),
    };
    let is_usual = |c: &&char| c.is_ascii_graphic() || **c == ' ';
    if turn < 2 {
        let has = |wanted: char| match class {
            Class::Unicode(class) => {
                class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&wanted))
            }
            Class::Bytes(_) => false,
        };
        let usual = [' ', 'a', '1'].into_iter().find(|wanted| has(*wanted));
        return usual.or_else(|| ends.iter().find(is_usual).copied()).or_else(|| ends.first().copied());
    }
    ends.get(turn % ends.len().max(1)).copied()
}

/// Texts that are almost another one.
fn changes(text: &str) -> Vec<String> {
    let mut changed = vec![
        format!("x{text}"),
        format!("{text}x"),
        format!(" {text} "),
        format!("{text}\n"),
        format!("\n{text}"),
        format!("ls\n{text}\nls"),
        text.to_uppercase(),
        text.to_lowercase(),
    ];
    for space in ["  ", "\t", "\n", "\u{a0}", "\u{3000}", "\u{85}", "\u{feff}", "\u{1c}"] {
        changed.push(text.replace(' ', space));
    }
    let length = text.chars().count();
    for place in (0..MOST_LEFT_OUT).map(|part| part * length / MOST_LEFT_OUT) {
        changed.push(text.chars().enumerate().filter(|(at, _)| *at != place).map(|(_, c)| c).collect());
    }
    changed.extend([
        format!("\u{e9}{text}"),
        format!("{text}\u{e9}"),
        format!("{text}\u{1f600}"),
        // Marks and joiners are in words for some.
        format!("\u{200d}{text}"),
        format!("{text}\u{301}"),
        format!("{text}\\n{text}"),
        format!("\"{text}\""),
        format!("{text}'\\"),
        format!("{text}\r\n"),
        format!("{text}\u{2028}x"),
        format!("{text}\n\n"),
        text.replace(['k', 'K'], "\u{212a}"),
        text.replace(['s', 'S'], "\u{17f}"),
        text.replace(['i', 'I'], "\u{131}"),
        text.replace(|c: char| c.is_ascii_punctuation(), "\u{e9}"),
        text.replace(' ', "\u{1f600}"),
        text.chars().rev().collect(),
    ]);
    changed
}
