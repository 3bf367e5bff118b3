//! `hookyard schema`: JSON Schemas of hook files, settings, events, outcomes and agents.

#[expect(dead_code, reason = "only the schema of these types is used")]
mod agent;
#[expect(dead_code, reason = "only the schema of these types is used")]
mod event;
#[expect(dead_code, reason = "only the schema of these types is used")]
mod handler;
#[expect(dead_code, reason = "only the schema of these types is used")]
mod hook_file;
#[expect(dead_code, reason = "only the schema of these types is used")]
mod outcome;
#[expect(dead_code, reason = "only the schema of these types is used")]
mod shape;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::{
    exit::{CliResult, Exit},
    flags::JsonFlag,
    page::Page,
    screen::Screen,
    wrap,
};

/// The schema of the settings, which is generated from their declaration.
const SETTINGS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/schema/hookyard-settings.schema.json"));

const FOOTER: &str = "\
Examples:
  hookyard schema
  hookyard schema hook-file > .openharness/hooks/resources/openharness-hook.schema.json
  hookyard schema settings > hookyard-settings.schema.json
  hookyard schema event outcome | jq '.outcome.properties.verdict'

An editor with the YAML language server reads the schema that the first line of a file names, by a relative path or a \
URL:
  # yaml-language-server: $schema=resources/openharness-hook.schema.json

One name prints the schema, several names print an object of schemas, no name lists them.";

/// Print JSON Schemas of hook files, settings, events and outcomes
///
/// With a schema, an editor completes and explains keys and marks mistakes. `hookyard check` also finds mistakes that
/// depend on the machine, such as a missing program.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct SchemaCommand {
    /// Schemas to print
    #[arg(value_name = "NAME")]
    names: Vec<SchemaName>,

    #[command(flatten)]
    output: JsonFlag,
}

/// The schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaName {
    /// OpenHarness hook file: `.openharness/hooks/*.yaml`
    HookFile,
    /// Settings of hookyard: `hookyard.yaml`
    Settings,
    /// Canonical event, as `fire` and `replay` read it
    Event,
    /// Canonical outcome, as `fire --json` prints it
    Outcome,
    /// Front matter of an agent: `.openharness/agents/NAME.md`
    Agent,
}

impl SchemaName {
    fn as_str(self) -> &'static str {
        match self {
            Self::HookFile => "hook-file",
            Self::Settings => "settings",
            Self::Event => "event",
            Self::Outcome => "outcome",
            Self::Agent => "agent",
        }
    }

    /// The description in the help.
    fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    /// The schema as JSON text.
    ///
    /// Returns an error if it cannot be written as JSON.
    fn text(self) -> serde_json::Result<String> {
        match self {
            Self::HookFile => laid_out(&shape::generate::<hook_file::HookFileSchema>()),
            Self::Settings => Ok(SETTINGS.to_owned()),
            Self::Event => laid_out(&event::schema()),
            Self::Outcome => laid_out(&shape::generate::<outcome::OutcomeSchema>()),
            Self::Agent => laid_out(&shape::generate::<agent::AgentSchema>()),
        }
    }
}

/// The schema of hook files, as it is printed.
///
/// Returns an error if it cannot be written as JSON.
pub(super) fn of_hook_files() -> serde_json::Result<String> {
    SchemaName::HookFile.text()
}

impl SchemaCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let text = match self.names.as_slice() {
            [] if self.output.json => object_of(SchemaName::value_variants()),
            [] => Ok(listing(screen)),
            [name] => name.text(),
            names => object_of(names),
        };
        let text = text.map_err(|error| super::exit::CliError::new(format!("no schema: {error}")))?;
        screen.print(&text)?;
        Ok(Exit::Done)
    }
}

/// The schemas by their names, as one JSON object.
fn object_of(names: &[SchemaName]) -> serde_json::Result<String> {
    let schemas: serde_json::Result<Map<String, Value>> = names
        .iter()
        .map(|name| Ok((name.as_str().to_owned(), serde_json::from_str(&name.text()?)?)))
        .collect();
    laid_out(&schemas?)
}

/// Indented JSON, also when it is not printed on a terminal: people keep and compare these files.
fn laid_out(value: &impl serde::Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn listing(screen: &Screen) -> String {
    const INDENT: usize = 11;
    let mut page = Page::default();
    for name in SchemaName::value_variants() {
        let about = wrap::hanging(&name.about(), screen.table_width(), INDENT);
        let gap = " ".repeat(INDENT - name.as_str().len());
        page.line(&format!("{}{gap}{about}", screen.out.paint.bold(name.as_str())));
    }
    page.into_text()
}
