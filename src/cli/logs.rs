//! Where logs go: to standard error, as much as `HOOKYARD_LOG` asks for, for a person or for a program. Refuses to mix
//! them into results.

use clap::ValueEnum;
use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};

use super::screen::{FATAL_TARGET, Screen};

/// The variable with the filter, in the syntax of `tracing-subscriber`.
const VARIABLE: &str = "HOOKYARD_LOG";

/// How much is logged where nobody asks for anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultLogs {
    /// Nothing: standard error belongs to a host, which takes what it finds there for the answer.
    Nothing,
    /// What went wrong.
    Warnings,
    /// What a service did, too.
    #[cfg(feature = "daemon")]
    Events,
}

impl DefaultLogs {
    /// The filter, without the frequent words of the actor library about its own life. What single events came to is
    /// the result of other commands, which show it themselves.
    fn filter(self) -> &'static str {
        match self {
            Self::Nothing => "off",
            Self::Warnings => "warn,ractor=warn,hookyard::events=off",
            #[cfg(feature = "daemon")]
            Self::Events => "warn,hookyard=info,ractor=warn",
        }
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum LogFormat {
    /// For a person on a terminal, else in JSON
    #[default]
    Auto,
    /// For a person
    Human,
    /// A JSON object a line
    Json,
}

impl LogFormat {
    /// The form that is meant on this screen.
    pub(super) fn on(self, screen: &Screen) -> Self {
        match self {
            Self::Auto if screen.err.is_terminal => Self::Human,
            Self::Auto => Self::Json,
            form => form,
        }
    }
}

/// Starts to log.
pub(super) fn start(screen: &Screen, usual: DefaultLogs, form: LogFormat) {
    let usual = usual.filter();
    let wanted = std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let filter = wanted.as_deref().map_or_else(|| Ok(EnvFilter::new(usual)), EnvFilter::try_new);
    let (filter, mistake) = match filter {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(usual), Some(error)),
    };
    let filter = match format!("{FATAL_TARGET}=error").parse() {
        Ok(fatal) => filter.add_directive(fatal),
        Err(_) => filter,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // They are told on standard error, and where that is gone the telling panics.
        .log_internal_errors(false)
        .with_ansi(screen.err.paint == super::paint::Paint::Colored)
        .with_span_events(FmtSpan::NONE)
        .with_target(true);
    // A program that embeds the command line may have a subscriber of its own; that one stays.
    drop(match form {
        LogFormat::Json => {
            let lines = subscriber.json().flatten_event(true).with_current_span(false).with_span_list(false);
            lines.try_init()
        }
        LogFormat::Human | LogFormat::Auto => subscriber.try_init(),
    });
    let is_silent = !tracing::enabled!(target: "hookyard", tracing::Level::ERROR);
    if let Some(wanted) = wanted.filter(|wanted| is_silent && mistake.is_none() && !wanted.contains("off")) {
        let hint = format!("a level alone, such as `{VARIABLE}=debug`, or one for it, `hookyard=debug`");
        screen.note(&format!("note: {VARIABLE}={wanted} lets hookyard say nothing; try {hint}"));
    }
    if let Some(error) = mistake {
        screen.note(&format!("note: {VARIABLE} is not a filter: {error}; try `{VARIABLE}=hookyard=debug`"));
    }
}
