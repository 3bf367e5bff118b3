//! Laws that hold for every text.

use proptest::prelude::*;

use crate::rule::shell::commands;

/// What texts are put together from.
const PARTS: &[&str] = &[
    "a",
    "b",
    "rm",
    "x=1",
    "-f",
    "--force",
    " ",
    " ",
    "  ",
    ";",
    ";;",
    "&",
    "&&",
    "||",
    "|",
    "\n",
    "(",
    ")",
    "{ ",
    "; }",
    "if ",
    "; then ",
    "; fi",
    "for x in a; do ",
    "; done",
    "case x in ",
    "esac",
    "$x",
    "$(",
    "`",
    "${",
    "}",
    "'",
    "\"",
    "\\",
    "#",
    "<",
    ">",
    "<<E\n",
    "\nE\n",
    "<<<",
    "{a,b}",
    "sudo ",
    "bash -c ",
    "eval ",
    "$'",
    "((",
    "ä",
];

/// Words with which a command of several parts begins or goes on. They name no program.
const RESERVED: [&str; 16] = [
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "function",
    "select", "time", "coproc",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_panics(text in any::<String>()) {
        commands(&text);
    }

    #[test]
    fn no_mixture_panics(parts in prop::collection::vec(prop::sample::select(PARTS), 0..40)) {
        let text = parts.concat();
        let found = commands(&text);
        prop_assert!(!found.understood || found.commands.iter().all(|command| command.understood));
    }

    #[test]
    fn a_plain_command_is_found_as_it_is(words in prop::collection::vec("[a-z0-9./_+-]{1,8}", 1..8)) {
        let text = words.join(" ");
        let words_of = |text: &str| {
            let found = commands(text).commands.into_iter().next();
            found.map(|command| std::iter::once(command.path).chain(command.args).collect::<Vec<_>>())
        };
        prop_assume!(!super::super::wrappers::is_shell(&words[0]) && !RESERVED.contains(&words[0].as_str()));
        let found = words_of(&text).unwrap_or_default();
        prop_assert_eq!(&found, &words);
        prop_assert_eq!(words_of(&found.join(" ")).unwrap_or_default(), words);
    }

    #[test]
    fn a_reserved_word_alone_is_not_understood(word in prop::sample::select(&RESERVED[..13])) {
        prop_assert!(!commands(word).understood);
    }

    #[test]
    fn a_quoted_word_is_one_argument(word in "[^\\x00']{0,20}") {
        let found = commands(&format!("a '{word}'"));
        prop_assert!(found.understood);
        prop_assert_eq!(&found.commands[0].args, &[word]);
    }
}
