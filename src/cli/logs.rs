//! Logs: to standard error, filtered by `HOOKYARD_LOG`, as text or as JSON.

use std::fmt;

use clap::ValueEnum;
use tracing::field::Field;
use tracing_subscriber::{
    EnvFilter,
    field::MakeExt,
    fmt::format::{FmtSpan, Writer, debug_fn},
};

use super::{
    escape,
    paint::Paint,
    screen::{FATAL_TARGET, Screen},
};

/// The variable with the filter, in the syntax of `tracing-subscriber`.
const VARIABLE: &str = "HOOKYARD_LOG";

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
            Self::Warnings => "warn,ractor=warn,hookyard::events=off,hookyard::orchestrator=off",
            #[cfg(feature = "daemon")]
            Self::Events => "warn,hookyard=info,ractor=warn",
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

/// Writes one field of a log line, with the control characters of its value escaped.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = format!("{value:?}");
    let text = escape::line(&text);
    match field.name() {
        "message" => write!(writer, "{text}"),
        name if writer.has_ansi_escapes() => write!(writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{text}"),
        name => write!(writer, "{name}={text}"),
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
        .with_writer(std::io::stderr)
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
        LogFormat::Human | LogFormat::Auto => {
            // File names and texts of others stand in fields: a line is a line whatever they have in them.
            subscriber.fmt_fields(debug_fn(write_field).delimited(" ")).try_init()
        }
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
