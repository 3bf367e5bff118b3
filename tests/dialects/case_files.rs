//! The files in `tests/cases` themselves: how they are written.

use serde_json::json;

use crate::support::yaml::document;

#[test]
fn values_are_read_as_they_were_written() {
    let long = "x ".repeat(100);
    let texts =
        ["", "a", "no", "1", "1e3", "a: b", "a #b", "- a", "a\nb", "a\nb\n", "a\n\n", " a\n", "\ta\nb\n"];
    let odd = [
        "a\r\nb", "a\0", "\u{202e}", "\u{feff}", "\u{7f}", "é\n", "…", "a \nb", "a\n \nb", "\n", "'", "\"\\",
    ];
    let values = json!({ "texts": texts, "odd": odd, "long": { "a": [long, [long], { "b": long }] },
        "empty": [{}, [], null, true, -1, 0.5] });
    // It asserts by itself that it reads what it has written.
    document(&values);
}

#[test]
fn short_values_stand_on_one_line() {
    let text = document(&json!({ "a": { "b": [1, "two"] }, "c": "one\ntwo\n" }));
    assert_eq!(text, "---\na: {b: [1, two]}\nc: |\n  one\n  two\n");
}
