//! Texts that are large, deep or hostile are read in bounded time and with a small stack.

use std::time::Duration;

use tokio::time::Instant;

use crate::rule::shell::{LONGEST_TEXT, MOST_COMMANDS, commands};

/// The longest that any text may take; a build for tests without optimization is slower.
const LONGEST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5_000 } else { 50 });

/// The stack of the thread that reads.
const STACK: usize = 1024 * 1024;

#[test]
fn hostile_texts_end_soon() {
    let mut slow = Vec::new();
    for (name, text) in hostile() {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            let fastest = (0..3).map(|_| {
                let start = Instant::now();
                let found = commands(&text);
                (start.elapsed(), found)
            });
            fastest.min_by_key(|(elapsed, _)| *elapsed)
        });
        let (elapsed, found) = thread.unwrap().join().unwrap().unwrap();
        assert!(found.commands.len() <= MOST_COMMANDS);
        if elapsed > LONGEST {
            slow.push((name, elapsed));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

#[test]
fn texts_beyond_the_bounds_are_not_understood() {
    for text in [
        " ".repeat(LONGEST_TEXT + 1),
        "a\0b".to_owned(),
        "a;".repeat(MOST_COMMANDS + 1),
        format!("{}a", "sudo ".repeat(40)),
        format!("echo {}a{}", "$(".repeat(100), ")".repeat(100)),
        format!("{}a{}", "(".repeat(100), ")".repeat(99)),
        format!("a {}", "{b,c}".repeat(12)),
    ] {
        assert!(!commands(&text).understood, "{}", &text[..20]);
    }
    // Compound commands may nest without bound.
    let deep = format!("{}a{}", "( ".repeat(10_000), " )".repeat(10_000));
    assert!(commands(&deep).understood);
    assert!(commands(&"a;".repeat(MOST_COMMANDS)).understood);
}

#[test]
fn texts_within_texts_are_read_up_to_a_depth() {
    let nested = |depth: usize| (0..depth).fold("rm x".to_owned(), |text, _| format!("eval eval {text}"));
    assert!(commands(&nested(4)).understood);
    assert!(!commands(&nested(5)).understood);
}

/// Texts of one unit over and over, and others.
fn hostile() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for unit in UNITS {
        for length in [LONGEST_TEXT, 4096] {
            texts.push((format!("{unit:?} {length}"), unit.repeat(length / unit.len())));
        }
    }
    texts.extend(others().map(|(name, text)| (name.to_owned(), text)));
    texts
}

/// Units of texts that would take long if something were read over and over again.
const UNITS: &[&str] = &[
    "$(",
    "`",
    "\"$(",
    "${",
    "${x:-",
    "$((",
    "((",
    "(",
    "{ ",
    "{",
    "{a,",
    "{a,b}",
    "if a; then ",
    "while ",
    "case x in a) ",
    "[[ ",
    "! ",
    "<(",
    "<<E ",
    "<<E\n",
    "a<<E $(",
    "\\a",
    "'a'",
    "\"a\"",
    "$a",
    "$x ",
    "a=1 ",
    "x=1;",
    "a;",
    "a|",
    "a&&",
    "> f ",
    "a > f;",
    "{ a; } > f;",
    "a() {",
    "eval ",
    "sudo ",
    "xargs ",
    "find -exec ",
    "bash -c ",
    "echo a | sh;",
    "alias a=b;",
    "time ",
    "coproc ",
    "$'\\x41'",
    "#\n",
    "\\\n",
    "ä",
    "$[",
    "sh<<<a;",
    "function f ",
    "=(",
    "a=(",
    "$((1))",
    "x=a;$x;",
    "~",
    "env -S ",
    "export x=1;",
    "\"`",
    "$(a)",
    "[[ a ]];",
    "bash -c 'a;a';",
];

/// Other texts that would.
fn others() -> impl Iterator<Item = (&'static str, String)> {
    let many = LONGEST_TEXT / 4;
    let doubling = (0..26_u8).map(|at| {
        let (this, last) = (char::from(b'b' + at % 25), char::from(b'a' + at % 25));
        format!("{this}=${last}${last};")
    });
    [
        ("closed parentheses", format!("{}a{}", "(".repeat(many), ")".repeat(many))),
        ("closed substitutions", format!("{}a{}", "$(".repeat(many), ")".repeat(many))),
        ("closed arithmetic", format!("{}a{}", "$((".repeat(many / 2), "))".repeat(many / 2))),
        ("closed braces", format!("{}a{}", "{a,".repeat(many / 2), "}".repeat(many / 2))),
        ("large value", format!("x='{}'; a {}", "b ".repeat(10_000), "$x ".repeat(10_000))),
        ("doubling", doubling.collect()),
        ("a value for each command", format!("x='{}'; {}", "b".repeat(500), "a $x;".repeat(2000))),
        ("names", (0..8000).map(|at| format!("$x{at}")).collect::<Vec<_>>().join(";")),
        ("names set", (0..4000).map(|at| format!("x{at}=1;$x{at}")).collect::<Vec<_>>().join(";")),
        ("redirected groups", format!("{}{}", "{ a;".repeat(900), "}>f".repeat(900))),
        ("a large file", format!("{{ {} }} > {}", "a;".repeat(990), "f".repeat(60_000))),
        ("one mebibyte", "a b;".repeat(256 * 1024)),
        ("wrappers", format!("bash -c '{}'", "sudo sudo sudo sudo sudo sudo sudo a b c;".repeat(1400))),
    ]
    .into_iter()
}
