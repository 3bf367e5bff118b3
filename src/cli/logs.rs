//! Logs: to standard error, filtered by `HOOKYARD_LOG`, as text or as JSON.

use std::{borrow::Cow, fmt};

use clap::ValueEnum;
use tracing::field::{Field, Visit};
use tracing_subscriber::{
    EnvFilter,
    field::RecordFields,
    fmt::{
        FormatFields,
        format::{FmtSpan, Writer},
    },
};

use super::{
    escape,
    journal::LogOutput,
    paint::Paint,
    screen::{FATAL_TARGET, Screen},
};

/// The variable with the filter, in the syntax of `tracing-subscriber`.
const VARIABLE: &str = "HOOKYARD_LOG";

/// Whether the variable says what is logged.
#[cfg(feature = "daemon")]
pub(super) fn are_asked_for() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// What is logged unless the variable says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultLogs {
    /// Nothing: a host may take what it finds on standard error for an answer.
    Nothing,
    /// Warnings and errors.
    Warnings,
    /// Also what a service does.
    #[cfg(feature = "daemon")]
    Events,
}

impl DefaultLogs {
    /// The filter. The actor library logs its own life at INFO. Commands print the outcome of events and the mistakes
    /// in hook files themselves, so their logs are off.
    fn filter(self) -> &'static str {
        match self {
            Self::Nothing => "off",
            Self::Warnings => {
                "warn,ractor=warn,async_nats=off,hookyard::events=off,hookyard::orchestrator=off"
            }
            #[cfg(feature = "daemon")]
            Self::Events => "warn,hookyard=info,ractor=warn,async_nats=off",
        }
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum LogFormat {
    /// Text on a terminal, else JSON
    #[default]
    Auto,
    /// Text
    Human,
    /// One JSON object per line
    Json,
}

#[cfg(feature = "daemon")]
impl LogFormat {
    /// The format on this screen.
    pub(super) fn resolve(self, screen: &Screen) -> Self {
        match self {
            Self::Auto if screen.err.is_terminal => Self::Human,
            Self::Auto => Self::Json,
            format => format,
        }
    }
}

/// Writes fields as `name=value`, plain, and quoted only where they would run into each other.
#[derive(Debug)]
pub(super) struct PlainFields;

impl<'w> FormatFields<'w> for PlainFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut fields_writer = FieldWriter { writer, has_field: false, result: Ok(()) };
        fields.record(&mut fields_writer);
        fields_writer.result
    }
}

/// Writes the fields of one line.
struct FieldWriter<'w> {
    writer: Writer<'w>,
    has_field: bool,
    result: fmt::Result,
}

impl FieldWriter<'_> {
    /// Writes a field, with the control characters of its value escaped: file names and texts of others stand there, and
    /// a line is a line whatever they have in them.
    fn write(&mut self, field: &Field, value: &str) -> fmt::Result {
        let space = if self.has_field { " " } else { "" };
        self.has_field = true;
        let text = escape::line(value);
        match field.name() {
            "message" => write!(self.writer, "{space}{text}"),
            name if self.writer.has_ansi_escapes() => {
                write!(self.writer, "{space}\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{}", quoted(text))
            }
            name => write!(self.writer, "{space}{name}={}", quoted(text)),
        }
    }
}

impl Visit for FieldWriter<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if self.result.is_ok() {
            self.result = self.write(field, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// A value with quotes around it if it has spaces or quotes, or is empty.
fn quoted(value: Cow<'_, str>) -> Cow<'_, str> {
    if value.is_empty() || value.contains([' ', '"', '=']) {
        Cow::Owned(format!("\"{}\"", value.replace('"', "\\\"")))
    } else {
        value
    }
}

/// Starts to log.
pub(super) fn start(screen: &Screen, default: DefaultLogs, format: LogFormat) {
    let default = default.filter();
    let wanted = std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let filter = wanted.as_deref().map_or_else(|| Ok(EnvFilter::new(default)), EnvFilter::try_new);
    let (filter, mistake) = match filter {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(default), Some(error)),
    };
    let filter = match format!("{FATAL_TARGET}=error").parse() {
        Ok(fatal) => filter.add_directive(fatal),
        Err(_) => filter,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(LogOutput { is_journal: screen.is_journal })
        // They are written to standard error, and where that is closed, writing panics.
        .log_internal_errors(false)
        .with_ansi(screen.err.paint == Paint::Colored)
        .with_span_events(FmtSpan::NONE)
        .with_target(true);
    // A program that embeds the command line may have a subscriber already; that one stays.
    drop(match format {
        LogFormat::Json => {
            let lines = subscriber.json().flatten_event(true).with_current_span(false).with_span_list(false);
            lines.try_init()
        }
        LogFormat::Human | LogFormat::Auto => subscriber.fmt_fields(PlainFields).try_init(),
    });
    let is_silent = !tracing::enabled!(target: "hookyard", tracing::Level::ERROR);
    if let Some(wanted) = wanted.filter(|wanted| is_silent && mistake.is_none() && !wanted.contains("off")) {
        let hint = format!("try a level alone, `{VARIABLE}=debug`, or with a target, `hookyard=debug`");
        screen.note(&format!("note: {VARIABLE}={wanted} turns all logs of hookyard off; {hint}"));
    }
    if let Some(error) = mistake {
        let hint = format!("try `{VARIABLE}=hookyard=debug`");
        screen.note(&format!("note: {VARIABLE} is not a valid filter: {error}; {hint}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_they_need_it() {
        for (value, expected) in [
            ("guard", "guard"),
            ("/a/b.yaml", "/a/b.yaml"),
            ("", "\"\""),
            ("a, b", "\"a, b\""),
            ("it said \"no\"", "\"it said \\\"no\\\"\""),
            ("a=b", "\"a=b\""),
        ] {
            assert_eq!(quoted(value.into()), expected, "{value}");
        }
    }
}
