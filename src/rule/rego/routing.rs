//! Which events a package wants: `custom.routing` in its `# METADATA`, as policies of Cupcake have it.

use serde::Deserialize;

/// The line that begins the metadata of a package.
const BEGINNING: &str = "# METADATA";

/// The longest metadata that is read, in bytes.
const LONGEST: usize = 16 << 10;

/// Which events a package wants. One that says nothing wants all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Routing {
    events: Vec<String>,
    tools: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    custom: Custom,
}

#[derive(Deserialize, Default)]
struct Custom {
    #[serde(default)]
    routing: Option<WrittenRouting>,
}

#[derive(Deserialize)]
struct WrittenRouting {
    #[serde(default)]
    required_events: Vec<String>,
    #[serde(default)]
    required_tools: Vec<String>,
}

impl Routing {
    /// Reads the metadata before the line of the package.
    ///
    /// Returns what is wrong with it, and its line, if it cannot be read.
    pub(super) fn read(text: &str, package_line: usize) -> Result<Self, (usize, String)> {
        let before: Vec<&str> = text.lines().take(package_line.saturating_sub(1)).collect();
        let Some(first) = before.iter().rposition(|line| line.trim_end() == BEGINNING) else {
            return Ok(Self::default());
        };
        let comments = before[first + 1..].iter().map_while(|line| line.strip_prefix('#'));
        let yaml: String = comments.flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"]).collect();
        if yaml.len() > LONGEST {
            return Err((first + 1, format!("the metadata is longer than {LONGEST} bytes")));
        }
        let metadata: Metadata = serde_yaml::from_str(&yaml)
            .map_err(|error| (first + 1, format!("the metadata cannot be read: {error}")))?;
        let is_of_package =
            metadata.scope.as_deref().is_none_or(|scope| matches!(scope, "package" | "subpackages"));
        let written = metadata.custom.routing.filter(|_| is_of_package);
        Ok(written.map_or_else(Self::default, |written| Self {
            events: written.required_events,
            tools: written.required_tools.into_iter().filter(|tool| tool != "*").collect(),
        }))
    }

    /// The names of the events that it wants; none if it wants all.
    pub(super) fn events(&self) -> impl Iterator<Item = &str> {
        self.events.iter().map(String::as_str)
    }

    /// Whether the package wants an event with one of these names, and this tool.
    pub(super) fn wants(&self, events: &[&str], tool: Option<&str>) -> bool {
        let has = |known: &[String], name: &str| known.iter().any(|known| known == name);
        (self.events.is_empty() || events.iter().any(|event| has(&self.events, event)))
            && (self.tools.is_empty() || tool.is_some_and(|tool| has(&self.tools, tool)))
    }
}
