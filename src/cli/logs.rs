//! Where logs go: to standard error, as much as `HOOKYARD_LOG` asks for. Refuses to mix them into results.

use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};

use super::screen::Screen;

/// The variable with the filter, in the syntax of `tracing-subscriber`.
const VARIABLE: &str = "HOOKYARD_LOG";

/// Warnings, without the frequent ones of the actor library about its own life.
const USUAL: &str = "warn,ractor=warn";

/// Whether standard error belongs to the host, which takes what it finds there for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quiet {
    /// Logs only if they are asked for.
    Yes,
    /// The usual logs.
    No,
}

/// Starts to log.
pub(super) fn start(screen: &Screen, quiet: Quiet) {
    let usual = if quiet == Quiet::Yes { "off" } else { USUAL };
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
