//! Documents are read as `serde_yaml` reads them, and every node has the span at which it is written.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde::Deserialize as _;

use super::{
    node::{Node, NodeValue},
    parse::{parse, plain},
    span::{Span, location_of},
};

/// What `serde_yaml` makes of a text; `None` if it refuses it.
fn by_serde(text: &str) -> Option<serde_yaml::Value> {
    serde_yaml::Value::deserialize(serde_yaml::Deserializer::from_str(text)).ok()
}

#[expect(
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "both have to come to the very same number"
)]
fn is_same(ours: &NodeValue, theirs: &serde_yaml::Value) -> bool {
    match (ours, theirs) {
        (NodeValue::Null, serde_yaml::Value::Null) => true,
        (NodeValue::Bool(ours), serde_yaml::Value::Bool(theirs)) => ours == theirs,
        (NodeValue::Integer(ours), serde_yaml::Value::Number(theirs)) => theirs.as_i64() == Some(*ours),
        (NodeValue::Float(ours), serde_yaml::Value::Number(theirs)) => {
            let theirs = theirs.as_u64().map_or_else(|| theirs.as_f64(), |number| Some(number as f64));
            theirs.is_some_and(|theirs| theirs == *ours || theirs.is_nan() && ours.is_nan())
        }
        // `serde_yaml` keeps numbers that no integer holds as text.
        (NodeValue::Float(ours), serde_yaml::Value::String(theirs)) => {
            theirs.parse().is_ok_and(|theirs: f64| theirs == *ours)
        }
        (NodeValue::Text(ours), serde_yaml::Value::String(theirs)) => **ours == **theirs,
        (NodeValue::List(ours), serde_yaml::Value::Sequence(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| is_same(&ours.value, theirs))
        }
        (NodeValue::Mapping(ours), serde_yaml::Value::Mapping(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, (key, theirs))| {
                    key.as_str() == Some(&ours.key) && is_same(&ours.node.value, theirs)
                })
        }
        _ => false,
    }
}

fn check(text: &str) {
    if let (Ok(ours), Some(theirs)) = (parse(text), by_serde(text)) {
        assert!(is_same(&ours.value, &theirs), "{text:?}\n{ours:?}\n{theirs:?}");
    }
}

fn check_scalar(text: &str) {
    if text == "-" {
        return;
    }
    // As an item of a list, where it is one plain scalar in both.
    let Some(serde_yaml::Value::Sequence(items)) = by_serde(&format!("- {text}\n")) else { return };
    assert!(is_same(&plain(text), &items[0]), "{text:?} is {:?}", items[0]);
}

#[test]
fn plain_scalars_have_the_types_that_serde_yaml_gives_them() {
    let words = "no yes on off y n true True TRUE tRUE false null Null NULL ~ nan .nan .NaN +.nan inf .inf -.inf +.inf +.Inf";
    let numbers = "0 -0 +0 00 -00 +00 007 0o17 0O17 -0o17 +0o17 0o8 0x1F -0x1f +0x1f 0x+1 0x-1 -0x-1 0b101 -0b1 0b2 0x \
                   1_000 1,000 1e3 1E3 +1e3 1.5 -1.5 +1.5 1. .5 -.5 1e400 -1e400 1e-400 ++1 +-1 -+1 --1 1:30 2001-01-01 \
                   9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 \
                   18446744073709551615 18446744073709551616 0xffffffffffffffff 0x1ffffffffffffffff \
                   -0xffffffffffffffff 1e5x 0.0 -0.0 08.5 0_1 +";
    words.split(' ').chain(numbers.split_whitespace()).for_each(check_scalar);
}

/// Documents in which every construct is written by hand.
const DOCUMENTS: &[&str] = &[
    "a: 1\nb: [x, 'y', \"z\\n\", ~, ]\nc: {d: e, f: , g}\n",
    "- a\n-\n- - b\n  - c\n- d: e\n  f: g\n",
    "a:\n- 1\n- 2\nb: |\n  text\n   more\nc: >-\n  folded\n  text\n",
    "a: plain text\n  on two lines\nb: 'quoted\n  too'\n",
    "a: &x [1, 2]\nb: *x\nc: &y text\nd: *y\n",
    "? a\n: b\n? c\n",
    "---\na: 1\n...\n",
    "%YAML 1.2\n---\na: 1\n",
    "[a: b, c: d]\n",
    "a: # comment\n  b # comment\n# comment\nc: d#e\n",
    "a: !\n",
    "a: b: c\n",
    "a:\r\n  b: 1\r\nc: 2\r\n",
    "\"a\": 'it''s'\n'b': \"\\x41\\u00e9\\\n  x\"\n",
    "a: |2\n    x\n   y\nb: >+\n  z\n\n",
    "<<: {a: 1}\nb: 2\n",
    "a: http://x:80/y?z=1\nb: a - b\nc: -1 x\n",
    "{a: [b, {c: d}], e: f}\n",
    "a: \"\u{1f600} \\U0001F600\"\n",
    "a: 'x\n\n  y'\nb: x\n\n  y\n",
];

#[test]
fn documents_are_read_as_serde_yaml_reads_them() {
    for text in DOCUMENTS {
        check(text);
        assert_eq!(parse(text).is_ok(), by_serde(text).is_some() && !text.contains('!'), "{text:?}");
    }
}

#[test]
fn a_block_scalar_at_the_end_of_a_file_has_the_line_breaks_that_are_written() {
    let cases = [
        ("a: |\n  x", "x"),
        ("a: |\n  x\n", "x\n"),
        ("a: |\n  x\n  ", "x\n"),
        ("a: |\n  x\n ", "x\n"),
        ("a: |\n    x\n  ", "x\n"),
        ("a: |\n    x\n\n  ", "x\n"),
        ("a: |+\n    x\n  ", "x\n"),
        ("a: |+\n    x\n\n  ", "x\n\n"),
        ("a: |+\n    x\n\n    ", "x\n\n"),
        ("a: |-\n    x\n  ", "x"),
        ("a: |\n  x\n    ", "x\n  "),
        ("a: |2\n    x\n   ", "  x\n "),
        ("a: >\n    x\n    y\n  ", "x y\n"),
        ("a: |\n  ", ""),
        ("a: |+\n  ", ""),
        ("a: |+\n\n  ", "\n"),
        ("a: |\n  x\n\n", "x\n"),
        ("a: |+\n  x\n\n", "x\n\n"),
        ("a: |+\n  x", "x"),
        ("a: |-\n  x\n", "x"),
        ("a: |\n  x\n# c", "x\n"),
        ("a: |\n  x\n  # c", "x\n# c"),
        ("a: >\n  x\n  y", "x y"),
        ("a: |\r\n  x\r\n", "x\n"),
    ];
    for (text, expected) in cases {
        let root = parse(text).unwrap();
        let NodeValue::Mapping(entries) = &root.value else { panic!("{text:?}") };
        assert_eq!(entries[0].node.value, NodeValue::Text(expected.into()), "{text:?}");
        check(text);
    }
}

/// YAML 1.1 took them for line breaks; in 1.2 they are ordinary characters.
#[test]
fn unicode_line_separators_end_no_line() {
    for separator in ['\u{85}', '\u{2028}', '\u{2029}'] {
        let text = format!("a: x{separator}b: y\n");
        let root = parse(&text).map(|root| root.value);
        // `b: y` is on the same line, where no second key may be.
        assert!(root.is_err(), "{root:?}");
        let text = format!("a: x{separator}y # z\nb: 1\n");
        let root = parse(&text).unwrap();
        let NodeValue::Mapping(entries) = &root.value else { panic!("{text:?}") };
        assert_eq!(entries[0].node.value, NodeValue::Text(format!("x{separator}y").into()));
        assert_eq!(location_of(&text, entries[1].node.span).line, 2);
    }
}

/// Control characters, and what YAML 1.1 takes for a line break and 1.2 for text.
fn is_unlike(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

fn value() -> impl Strategy<Value = serde_yaml::Value> {
    let text = prop_oneof![
        any::<String>().prop_map(|text| text.replace(is_unlike, "")),
        "[ -~\n]{0,12}",
        "[0-9xob.eE+_-]{0,6}"
    ];
    let leaf = prop_oneof![
        Just(serde_yaml::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        text.clone().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_yaml::Value::Sequence),
            prop::collection::btree_map(text.clone(), inner, 0..5).prop_map(|map| {
                serde_yaml::Value::Mapping(map.into_iter().map(|(key, value)| (key.into(), value)).collect())
            }),
        ]
    })
}

/// Every span is in the text and within that of its parent's line or below, and a quoted or plain key is its own text.
fn check_spans(text: &str, node: &Node) {
    let written = |span: Span| &text[span.start..span.end];
    assert!(written(node.span).len() <= text.len());
    assert!(location_of(text, node.span).length >= 1);
    match &node.value {
        NodeValue::List(items) => items.iter().for_each(|item| check_spans(text, item)),
        NodeValue::Mapping(entries) => {
            for entry in &**entries {
                let key = written(entry.key_span);
                assert!(
                    key == entry.key
                        || key.starts_with(['"', '\'', '&', '*', '|', '>'])
                        || key.contains('\n'),
                    "{key:?}"
                );
                check_spans(text, &entry.node);
            }
        }
        _ => {}
    }
}

/// Texts that are almost documents: pieces of YAML in any order.
fn almost_yaml() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "b",
        "1",
        "- ",
        ": ",
        "? ",
        "\n",
        "\n  ",
        "\n    ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "'",
        "\"",
        "|",
        ">",
        "&x ",
        "*x",
        " # c",
        "---\n",
        "...\n",
        "\t",
        "~",
        "a: ",
        "- a\n",
        "a: b\n",
        "é",
        "\\",
        "%",
        "!t ",
        "|\n  x\n",
        "|+\n    x\n",
        "\r\n",
        " # [\n",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn scalars_are_read_as_serde_yaml_reads_them(text in "[-+]?(0[xob])?[0-9a-f_.eE+-]{1,8}") {
        check_scalar(&text);
    }

    #[test]
    fn random_documents_are_read_as_serde_yaml_reads_them(value in value()) {
        let text = serde_yaml::to_string(&value).unwrap();
        let is_forbidden = |c: char| matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}');
        prop_assume!(!value.is_null() && !text.contains(is_forbidden));
        let ours = parse(&text).map_err(|error| TestCaseError::fail(format!("{text:?}: {error:?}")))?;
        check(&text);
        check_spans(&text, &ours);
    }

    #[test]
    fn almost_documents_are_read_the_same_or_refused(text in almost_yaml()) {
        if let Ok(node) = parse(&text) {
            check(&text);
            check_spans(&text, &node);
        }
    }

    #[test]
    fn no_text_is_too_much(text in any::<String>()) {
        let _ = parse(&text);
    }
}

#[test]
fn nesting_has_one_bound_for_every_form() {
    let nested =
        |open: &str, close: &str, depth: usize| format!("{}x{}\n", open.repeat(depth), close.repeat(depth));
    for (open, close) in [("[", "]"), ("- ", ""), ("{a: ", "}")] {
        assert!(parse(&nested(open, close, 127)).is_ok(), "{open}");
        let error = parse(&nested(open, close, 128)).unwrap_err();
        assert_eq!(error.code, "too-deep", "{open}: {error:?}");
    }
}

#[test]
fn aliases_do_not_nest_beyond_the_bound() {
    let stacked = |keys: usize| {
        let mut text = format!("k0: &k0 {}x{}\n", "[".repeat(100), "]".repeat(100));
        for key in 1..=keys {
            let below = key - 1;
            writeln!(text, "k{key}: &k{key} [[[[[[[[[[*k{below}]]]]]]]]]]").unwrap();
        }
        text
    };
    assert!(parse(&stacked(2)).is_ok());
    assert_eq!(parse(&stacked(3)).unwrap_err().code, "too-deep");
}

#[test]
fn a_bracket_in_the_comment_behind_an_anchor_opens_nothing() {
    let text = "name: &x # [\n  b: 1\né: 2\n";
    let root = parse(text).unwrap();
    check_spans(text, &root);
    let NodeValue::Mapping(entries) = &root.value else { panic!("{root:?}") };
    let location = location_of(text, entries[0].node.span);
    assert_eq!((location.line, location.column), (1, 7));
}

#[test]
fn aliases_have_the_span_at_which_they_stand() {
    let text =
        "# ü\nname: 'ä'\nlist:\n  - a\n  - { k: \"x y\", z: 1 } # c\nline: |\n  text\nab: &s é\ncd: *s\n";
    let root = parse(text).unwrap();
    let NodeValue::Mapping(entries) = &root.value else { panic!("{root:?}") };
    let written = |span: Span| &text[span.start..span.end];
    let values: Vec<&str> = entries.iter().map(|entry| written(entry.node.span)).collect();
    assert_eq!(values, ["'ä'", "- a", "|\n  text", "&s é", "*s"]);
    let NodeValue::List(items) = &entries[1].node.value else { panic!("{root:?}") };
    assert_eq!(written(items[1].span), "{ k: \"x y\", z: 1 }");
    let error = parse("a: &a [*a]\n").unwrap_err();
    assert_eq!((error.code, error.span), ("aliases", Some(Span { start: 7, end: 9 })));
}
