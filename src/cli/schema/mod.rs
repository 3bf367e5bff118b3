//! `hookyard schema`: JSON Schemas of hook files, settings, events, outcomes, agents and scenarios.
//!
//! The program prints the files in `config/schema`. Those of the settings are generated from their table, the others from
//! the types in this folder, which are compiled for tests only.

#[cfg(test)]
#[expect(dead_code, reason = "only the schema of these types is used")]
mod event;
#[cfg(test)]
mod generated;
#[cfg(test)]
#[expect(dead_code, reason = "only the schema of these types is used")]
mod handler;
#[cfg(test)]
#[expect(dead_code, reason = "only the schema of these types is used")]
mod hook_file;
#[cfg(test)]
#[expect(dead_code, reason = "only the schema of these types is used")]
mod outcome;
#[cfg(test)]
#[expect(dead_code, reason = "only the schema of these types is used")]
mod rego;
#[cfg(test)]
#[expect(dead_code, reason = "only the schema of these types is used")]
mod rule;
#[cfg(test)]
#[expect(dead_code, reason = "only the schema of these types is used")]
mod scenario;
#[cfg(test)]
#[expect(dead_code, reason = "only the schema of these types is used")]
mod shape;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::{
    exit::{CliResult, Exit},
    flags::JsonFlag,
    screen::Screen,
    table::Page,
    wrap,
};

/// The text of a file in `config/schema`.
macro_rules! schema_file {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/schema/", $name))
    };
}

/// The schema of hook files.
pub(super) const HOOK_FILES: &str = schema_file!("openharness-hook.schema.json");

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
    /// Scenario of `hookyard bench`
    Scenario,
}

impl SchemaName {
    fn as_str(self) -> &'static str {
        match self {
            Self::HookFile => "hook-file",
            Self::Settings => "settings",
            Self::Event => "event",
            Self::Outcome => "outcome",
            Self::Agent => "agent",
            Self::Scenario => "scenario",
        }
    }

    /// The description in the help.
    fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    /// The schema as JSON text.
    fn text(self) -> &'static str {
        match self {
            Self::HookFile => HOOK_FILES,
            Self::Settings => schema_file!("hookyard-settings.schema.json"),
            Self::Event => schema_file!("canonical-event.schema.json"),
            Self::Outcome => schema_file!("canonical-outcome.schema.json"),
            Self::Agent => schema_file!("openharness-agent.schema.json"),
            Self::Scenario => schema_file!("hookyard-scenario.schema.json"),
        }
    }
}

impl SchemaCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let text = match self.names.as_slice() {
            [] if self.output.json => object_of(SchemaName::value_variants()),
            [] => Ok(listing(screen)),
            [name] => Ok(name.text().to_owned()),
            names => object_of(names),
        };
        let text = text.map_err(|error| super::exit::CliError::new(format!("no schema: {error}")))?;
        screen.print(&text)?;
        Ok(Exit::Done)
    }
}

/// The schemas by their names, as one JSON object.
fn object_of(names: &[SchemaName]) -> serde_json::Result<String> {
    let schemas: serde_json::Result<Map<String, Value>> =
        names.iter().map(|name| Ok((name.as_str().to_owned(), serde_json::from_str(name.text())?))).collect();
    // Indented, also when it is not printed on a terminal: people keep and compare these files.
    Ok(serde_json::to_string_pretty(&schemas?)? + "\n")
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
