//! Text that is almost a hook file, put together from its words.

use proptest::prelude::*;

use super::targets::hook_file;

/// Text that is almost a hook file.
fn almost_a_hook() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("name: a"),
        Just("events: [before_tool_dispatch]"),
        Just("handler:"),
        Just("  type: command"),
        Just("  command: x"),
        Just("matcher: \"(\""),
        Just("\n"),
        Just("\r\n"),
        Just("  "),
        Just("- "),
        Just("? "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just(": "),
        Just("&a "),
        Just("*a"),
        Just("!!x "),
        Just("!x "),
        Just("---\n"),
        Just("...\n"),
        Just("'"),
        Just("\""),
        Just("|\n"),
        Just("# "),
        Just("%TAG"),
        Just("\u{2028}"),
        Just("\u{feff}"),
        Just("é"),
        Just("<<: "),
        Just("null"),
        Just("1e999"),
        Just("\t"),
    ];
    prop::collection::vec(
        prop_oneof![4 => word.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)],
        0..40,
    )
    .prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in almost_a_hook()) {
        hook_file(text.as_bytes());
    }
}
