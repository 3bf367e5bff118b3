//! Where logs go: to standard error, as much as `HOOKYARD_LOG` asks for. Refuses to mix them into results.

use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};

use super::screen::Screen;

/// The variable with the filter, in the syntax of `tracing-subscriber`.
const VARIABLE: &str = "HOOKYARD_LOG";

/// How much is logged where nobody asks for anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usual {
    /// Nothing: standard error belongs to a host, which takes what it finds there for the answer.
    Nothing,
    /// What went wrong.
    Warnings,
    /// What a service did, too.
    #[cfg(feature = "daemon")]
    Events,
}

impl Usual {
    /// The filter, without the frequent words of the actor library about its own life.
    fn filter(self) -> &'static str {
        match self {
            Self::Nothing => "off",
            Self::Warnings => "warn,ractor=warn",
            #[cfg(feature = "daemon")]
            Self::Events => "warn,hookyard=info,ractor=warn",
        }
    }
}

/// Starts to log.
pub(super) fn start(screen: &Screen, usual: Usual) {
    let usual = usual.filter();
    let wanted = std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let filter = wanted.as_deref().map_or_else(|| Ok(EnvFilter::new(usual)), EnvFilter::try_new);
    let filter = filter.unwrap_or_else(|error| {
        screen.note(&format!("note: {VARIABLE} is not a filter: {error}; try `{VARIABLE}=hookyard=debug`"));
        EnvFilter::new(usual)
    });
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(screen.err.paint == super::paint::Paint::Colored)
        .with_span_events(FmtSpan::NONE)
        .with_target(true);
    // A program that embeds the command line may have a subscriber of its own; that one stays.
    drop(subscriber.try_init());
}
