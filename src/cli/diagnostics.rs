//! Diagnostics as a compiler shows them: the location, the line with a mark under it, and what to do.

use std::{fmt, fs::File, io::Read, path::Path};

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use rustix::fs::{Mode, OFlags, open};

use super::{escape, paint::Paint, paths::display_path, wrap};
use crate::{
    config,
    model::{Diagnostic, Severity},
};

/// Lines of larger files, in bytes, are not shown.
const LARGEST: u64 = 1 << 20;

/// Longer lines, in characters, are not shown: the mark would be far from the beginning.
const LONGEST_LINE: usize = 240;

/// The characters that the printer puts before each line of a message.
const MESSAGE_INDENT: usize = 4;

/// The characters that the printer puts before each line of a help text.
const HELP_INDENT: usize = 8;

/// A diagnostic about a file, with its line if the file can still be read. A file of the workspace at `root` is shown
/// only if it is inside of it.
pub(super) fn render(diagnostic: &Diagnostic, root: Option<&Path>, paint: Paint, width: usize) -> String {
    let source = match root.filter(|root| diagnostic.file.starts_with(root)) {
        _ if diagnostic.line == 0 => None,
        Some(root) => config::workspace_source(root, &diagnostic.file),
        None => read(&diagnostic.file),
    };
    render_in(diagnostic, source.as_deref(), paint, width)
}

/// A diagnostic about a text in memory.
pub(super) fn render_in(diagnostic: &Diagnostic, text: Option<&str>, paint: Paint, width: usize) -> String {
    let theme = match paint {
        Paint::Colored => GraphicalTheme::unicode(),
        Paint::Plain => GraphicalTheme::unicode_nocolor(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(width)
        // The texts are wrapped already: this printer would break code spans and paths.
        .with_wrap_lines(false)
        .with_links(false)
        .without_primary_span_start()
        .without_syntax_highlighting();
    let mut rendered = String::new();
    // Writing to a string cannot fail.
    _ = handler.render_report(&mut rendered, &RenderedDiagnostic::new(diagnostic, text, width));
    rendered
}

/// A diagnostic as the renderer takes it.
#[derive(Debug)]
struct RenderedDiagnostic {
    severity: Severity,
    code: String,
    message: String,
    help: Option<String>,
    excerpt: Option<(NamedSource<String>, LabeledSpan)>,
}

impl RenderedDiagnostic {
    fn new(diagnostic: &Diagnostic, text: Option<&str>, width: usize) -> Self {
        let mut place = display_path(&diagnostic.file);
        if diagnostic.line > 0 {
            place = format!("{place}:{}:{}", diagnostic.line, diagnostic.column);
        }
        let excerpt = text.and_then(|text| excerpt(diagnostic, text, &place));
        let message = escape::line(&diagnostic.message).into_owned();
        let message = if excerpt.is_some() { message } else { format!("{place}: {message}") };
        let wrapped = |text: &str, indent: usize| wrap::hanging(text, Some(width.saturating_sub(indent)), 0);
        Self {
            severity: diagnostic.severity,
            code: format!("{}[{}]", severity_word(diagnostic.severity), diagnostic.code),
            message: wrapped(&message, MESSAGE_INDENT),
            help: diagnostic.help.as_deref().map(|help| wrapped(&escape::block(help, 0), HELP_INDENT)),
            excerpt,
        }
    }
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

impl fmt::Display for RenderedDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RenderedDiagnostic {}

impl miette::Diagnostic for RenderedDiagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Info => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|(source, _)| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.excerpt.as_ref().map(|(_, span)| Box::new(std::iter::once(span.clone())) as Box<_>)
    }
}

/// The text with a mark in it, or `None` if it has no such line.
fn excerpt(diagnostic: &Diagnostic, text: &str, place: &str) -> Option<(NamedSource<String>, LabeledSpan)> {
    if diagnostic.line == 0 {
        return None;
    }
    let source = escape::source(text);
    // What is missing at the end is reported on the line after the last; the last one is shown.
    let last = source.lines().count();
    let at_end = diagnostic.line == last + 1;
    let number = if at_end { last } else { diagnostic.line };
    let line = source.lines().nth(number.checked_sub(1)?)?;
    let column = if at_end { line.chars().count() } else { diagnostic.column.max(1) - 1 };
    if column + diagnostic.length > LONGEST_LINE || line.chars().count() > LONGEST_LINE {
        return None;
    }
    let start: usize = source.split_inclusive('\n').take(number - 1).map(str::len).sum();
    let bytes = |characters: usize| line.chars().take(characters).map(char::len_utf8).sum::<usize>();
    let from = bytes(column);
    let to = bytes(column + diagnostic.length.max(1));
    let span = LabeledSpan::new_primary_with_span(
        None,
        (start + from, (to - from).max(usize::from(from < line.len()))),
    );
    Some((NamedSource::new(place, source), span))
}

/// The text of a regular file, or `None` if it cannot be read any more.
fn read(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(line: usize, column: usize, length: usize) -> Diagnostic {
        let file = Path::new("hooks/a.yaml");
        let mut diagnostic = Diagnostic::of_file(Severity::Error, "unknown-key", file, "unknown key `vnts`");
        (diagnostic.line, diagnostic.column, diagnostic.length) = (line, column, length);
        diagnostic.help("did you mean `events`?")
    }

    fn plain(diagnostic: &Diagnostic, text: &str) -> String {
        render_in(diagnostic, Some(text), Paint::Plain, 80)
    }

    #[test]
    fn the_mark_is_under_the_mistake() {
        insta::assert_snapshot!(plain(&diagnostic(2, 6, 4), "name: a\nüü:\x1b vnts: []\nhandler:\n"));
    }

    #[test]
    fn a_location_that_cannot_be_shown_is_named() {
        let expected = "hooks/a.yaml:1:900: unknown key";
        assert!(plain(&diagnostic(1, 900, 4), &"x".repeat(2000)).contains(expected));
        assert!(plain(&diagnostic(9, 900, 4), "x").contains("hooks/a.yaml:9:900: unknown key"));
        assert!(plain(&diagnostic(0, 0, 1), "x").contains("hooks/a.yaml: unknown key"));
        // At the end of a line, of a text, and in an empty one.
        for (line, column, text) in [(1, 2, "x\n"), (1, 2, "x"), (1, 1, ""), (2, 1, "x\n"), (1, 9, "x\ny")] {
            assert!(
                plain(&diagnostic(line, column, 4), text).contains("hooks/a.yaml"),
                "{line} {column} {text}"
            );
        }
    }
}
