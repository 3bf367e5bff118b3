//! Lays out `--help`. Footers are written as paragraphs and are wrapped here, once, to the width of the terminal.

use std::ffi::OsString;

use clap::{CommandFactory, error::ErrorKind};

use super::{arguments::Arguments, paint::Paint, screen::Screen, wrap};

/// Separates an example from what it is for.
const COLUMN: char = '\t';

/// Examples are indented by this, and never wrapped: a command stays one that can be copied.
const INDENT: &str = "  ";

/// Between an example and its description, at least.
const GAP: usize = 3;

/// The least room for a description beside its example; with less, it gets a line of its own.
const LEAST_ROOM: usize = 24;

/// The help that these arguments ask for, or what is wrong with them, ready to print.
pub(super) fn render(arguments: &[OsString], error: clap::Error, screen: &Screen) -> String {
    let is_help =
        matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    let paint = if error.use_stderr() { screen.err.paint } else { screen.out.paint };
    let error = if is_help { error_at_width(arguments, width(screen)).unwrap_or(error) } else { error };
    let text = error.render();
    wrap::unglue(&match paint {
        Paint::Colored => text.ansi().to_string(),
        Paint::Plain => text.to_string(),
    })
}

/// The columns of the terminal; of `COLUMNS` where there is none, as other programs have it.
fn width(screen: &Screen) -> usize {
    let variable = std::env::var("COLUMNS").ok().filter(|_| !screen.out.is_terminal);
    variable.and_then(|columns| columns.parse().ok()).unwrap_or_else(|| screen.width())
}

/// The same help from commands whose texts are laid out for this width. It is done only when help is asked for: other
/// commands start without it.
fn error_at_width(arguments: &[OsString], width: usize) -> Option<clap::Error> {
    let command = laid_out(Arguments::command(), width);
    command.try_get_matches_from(arguments).err()
}

fn laid_out(command: clap::Command, width: usize) -> clap::Command {
    let footer = command.get_after_help().map(|text| footer(&text.to_string(), width));
    let about = command.get_about().map(|text| wrap::glue(&text.to_string()));
    let long_about = command.get_long_about().map(|text| wrap::glue(&text.to_string()));
    let mut command = command.term_width(width).mut_args(with_glue);
    if let Some(footer) = footer {
        command = command.after_help(footer);
    }
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(long_about) = long_about {
        command = command.long_about(long_about);
    }
    command.mut_subcommands(|subcommand| laid_out(subcommand, width))
}

/// The footer of a command in lines of this width, for its manual page.
pub(super) fn footer_of(command: &clap::Command, width: usize) -> Option<String> {
    command.get_after_help().map(|text| wrap::unglue(&footer(&text.to_string(), width)))
}

fn with_glue(argument: clap::Arg) -> clap::Arg {
    let help = argument.get_help().map(|text| wrap::glue(&text.to_string()));
    let long_help = argument.get_long_help().map(|text| wrap::glue(&text.to_string()));
    let argument = if let Some(help) = help { argument.help(help) } else { argument };
    if let Some(long_help) = long_help { argument.long_help(long_help) } else { argument }
}

/// A footer in lines that no printer breaks again. Its paragraphs are lines of the source; examples begin with a
/// space.
fn footer(text: &str, width: usize) -> String {
    let column = text.lines().filter_map(|line| line.split_once(COLUMN)).map(|(example, _)| example.len());
    let column = column.max().unwrap_or(0) + GAP;
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some((example, purpose)) = line.split_once(COLUMN) {
            lines.push(described(example, purpose, column, width));
        } else if line.starts_with(' ') {
            lines.push(line.to_owned());
        } else {
            lines.push(wrap::hanging(line, Some(width), 0));
        }
    }
    wrap::glue_line(&lines.join("\n"))
}

fn described(example: &str, purpose: &str, column: usize, width: usize) -> String {
    if column + LEAST_ROOM > width {
        let indent = INDENT.len() * 3;
        return format!("{example}\n{:indent$}{}", "", wrap::hanging(purpose, Some(width), indent));
    }
    format!("{example:<column$}{}", wrap::hanging(purpose, Some(width), column))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(command: &str, width: usize) -> String {
        let arguments: Vec<OsString> = ["hookyard", command, "--help"].map(OsString::from).to_vec();
        let arguments =
            if command.is_empty() { [&arguments[..1], &arguments[2..]].concat() } else { arguments };
        wrap::unglue(&error_at_width(&arguments, width).unwrap().render().to_string())
    }

    #[test]
    fn no_code_span_of_any_help_is_broken() {
        let commands = Arguments::command();
        for command in commands.get_subcommands().map(clap::Command::get_name).chain([""]) {
            for width in [60, 80, 140] {
                for line in help(command, width).lines() {
                    let ticks = line.matches('`').count();
                    assert_eq!(ticks % 2, 0, "{command} at {width}: {line}");
                }
            }
        }
    }

    #[test]
    fn only_examples_are_wider_than_the_terminal() {
        let commands = Arguments::command();
        for command in commands.get_subcommands().map(clap::Command::get_name).chain([""]) {
            for width in [60, 80, 140] {
                for line in help(command, width).lines() {
                    let fits = line.chars().count() <= width;
                    assert!(fits || line.starts_with(INDENT), "{command} at {width}: {line}");
                }
            }
        }
    }

    #[test]
    fn a_description_hangs_beside_its_example() {
        let text = "Examples:\n  a --b\tone two three four five six seven\n  c\tshort\n\nA paragraph.";
        let expected = "Examples:\n  a --b   one two three four five\n          six seven\n  c       short\n\nA paragraph.";
        assert_eq!(wrap::unglue(&footer(text, 34)), expected);
        let narrow = "Examples:\n  a --b\n      one two three\n      four five six\n      seven\n  c\n      short\n\nA paragraph.";
        assert_eq!(wrap::unglue(&footer(text, 20)), narrow);
    }
}
