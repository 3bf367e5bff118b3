//! Plugins: packages with hooks that an agent installs beside its settings files. What is read of them is given as bytes.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::Value;

use super::labels::{TextKind, plain, short_label};
use crate::model::{PluginSource, PluginVariable};

/// How an agent has its plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PluginFormat {
    /// It has none that are read here.
    None,
    /// Plugins of Claude Code: settings files enable them, a registry says where each is installed, and marketplaces are
    /// catalogs of them.
    Plugins(&'static PluginFiles),
    /// Extensions of Gemini CLI: a directory each.
    Extensions(&'static ExtensionFiles),
}

impl PluginFormat {
    /// Whether a file is one of a plugin, by its path.
    pub(crate) fn has_file(self, file: &Path) -> bool {
        let (directory, hooks) = match self {
            Self::None => return false,
            Self::Plugins(files) => (files.directory, files.hooks),
            Self::Extensions(files) => (files.directory, files.hooks),
        };
        // A plugin may be anywhere, an extension is where extensions are.
        let is_below = file.ancestors().any(|above| above.ends_with(directory));
        let is_of_plugin =
            is_below || matches!(self, Self::Plugins(_)) && file.ends_with(hooks) && !is_extension(file);
        is_of_plugin || self.has_agent(file)
    }

    /// Whether a file is the text of an agent whose front matter may have hooks, by its path. Those of plugins have none that
    /// count.
    pub(crate) fn has_agent(self, file: &Path) -> bool {
        let Self::Plugins(files) = self else { return false };
        TextKind::Agent.takes(file) && file.ancestors().any(|above| above.ends_with(files.agents))
    }

    /// The directory with the texts of agents, below the home directory and in a project.
    pub(crate) fn agents(self) -> Option<&'static str> {
        match self {
            Self::Plugins(files) => Some(files.agents),
            Self::None | Self::Extensions(_) => None,
        }
    }

    /// The file below the home directory without which nobody knows which plugins there are.
    pub(crate) fn registry(self) -> Option<PathBuf> {
        match self {
            Self::Plugins(files) => Some(Path::new(files.directory).join(files.registry)),
            Self::None | Self::Extensions(_) => None,
        }
    }
}

/// Whether a file is of an extension of Gemini CLI.
fn is_extension(file: &Path) -> bool {
    file.ancestors().any(|above| above.ends_with(EXTENSIONS.directory))
}

/// Where the plugins of Claude Code are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PluginFiles {
    /// The key of settings files that enables plugins.
    pub(crate) enabled: &'static str,
    /// The directory of everything about plugins, below the home directory.
    pub(crate) directory: &'static str,
    /// The registry of installed plugins in it.
    pub(crate) registry: &'static str,
    /// The list of known marketplaces in it.
    pub(crate) marketplaces: &'static str,
    /// The catalog in the directory of a marketplace.
    pub(crate) catalog: &'static str,
    /// The manifest in the directory of a plugin, and the file with its hooks.
    pub(crate) manifest: &'static str,
    pub(crate) hooks: &'static str,
    /// The directory with texts that may have hooks in their front matter, below the home directory and in a project.
    pub(crate) texts_directory: &'static str,
    /// Where those of agents are.
    pub(crate) agents: &'static str,
    /// The directories of such texts in that and in plugins.
    pub(crate) texts: &'static [(&'static str, TextKind)],
}

/// Where the extensions of Gemini CLI are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExtensionFiles {
    /// The directory with a directory for each, below the home directory.
    pub(crate) directory: &'static str,
    /// The file in it that says where each is disabled.
    pub(crate) enablement: &'static str,
    /// The manifest of an extension, what is known of its installation, and the file with its hooks.
    pub(crate) manifest: &'static str,
    pub(crate) installation: &'static str,
    pub(crate) hooks: &'static str,
}

/// The plugins of Claude Code.
pub(in crate::dialect) static PLUGINS: PluginFiles = PluginFiles {
    enabled: "enabledPlugins",
    directory: ".claude/plugins",
    registry: "installed_plugins.json",
    marketplaces: "known_marketplaces.json",
    catalog: ".claude-plugin/marketplace.json",
    manifest: ".claude-plugin/plugin.json",
    hooks: "hooks/hooks.json",
    texts_directory: ".claude",
    agents: ".claude/agents",
    texts: &[("agents", TextKind::Agent), ("commands", TextKind::Command), ("skills", TextKind::Skill)],
};

/// The extensions of Gemini CLI.
pub(in crate::dialect) static EXTENSIONS: ExtensionFiles = ExtensionFiles {
    directory: ".gemini/extensions",
    enablement: "extension-enablement.json",
    manifest: "gemini-extension.json",
    installation: ".gemini-extension-install.json",
    hooks: "hooks/hooks.json",
};

/// The longest part of a hook's name that says of which plugin it is.
const LONGEST_LABEL: usize = 18;

/// A plugin as it is installed, for every project or for one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Installation {
    #[serde(default)]
    scope: String,
    #[serde(default)]
    project_path: Option<PathBuf>,
    /// Its directory.
    pub(crate) install_path: PathBuf,
}

impl Installation {
    /// Whether it counts in a project.
    pub(crate) fn is_for(&self, project: &Path) -> bool {
        matches!(self.scope.as_str(), "user" | "managed") || self.project_path.as_deref() == Some(project)
    }
}

/// What a registry says of each plugin, by its id. Entries that are none are left out.
pub(crate) fn read_registry(
    bytes: &[u8],
    directory: &Path,
) -> Result<BTreeMap<String, Vec<Installation>>, String> {
    #[derive(Deserialize)]
    struct Registry {
        #[serde(default = "first_version")]
        version: u64,
        plugins: BTreeMap<String, Value>,
    }
    let Registry { version, plugins } = parse(bytes)?;
    let installations = |(id, value): (String, Value)| {
        let found = if version == 1 {
            vec![in_cache(&id, &value, directory)?]
        } else {
            let entries = value.as_array()?.iter();
            entries.filter_map(|entry| Installation::deserialize(entry).ok()).collect()
        };
        Some((id, found))
    };
    Ok(plugins.into_iter().filter_map(installations).collect())
}

fn first_version() -> u64 {
    1
}

/// Where the first version of the registry has a plugin: at a place made of its names.
fn in_cache(id: &str, value: &Value, directory: &Path) -> Option<Installation> {
    let (name, marketplace) = names(id)?;
    let version = plain(value.get("version")?.as_str()?, "-_.");
    let install_path =
        directory.join("cache").join(plain(marketplace, "-_")).join(plain(name, "-_")).join(version);
    Some(Installation { scope: "user".to_owned(), project_path: None, install_path })
}

/// The name of a plugin and that of its marketplace.
pub(crate) fn names(id: &str) -> Option<(&str, &str)> {
    let (name, rest) = id.split_once('@')?;
    let marketplace = rest.split('@').next().unwrap_or_default();
    (!name.is_empty() && !marketplace.is_empty()).then_some((name, marketplace))
}

/// A catalog of plugins that the agent knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marketplace {
    /// Where its plugins are, if they are used where they are and not copied.
    pub(crate) is_local: bool,
    /// Its directory, or its catalog.
    pub(crate) location: PathBuf,
}

/// The marketplaces that an agent knows, by their names.
pub(crate) fn read_marketplaces(bytes: &[u8]) -> Result<BTreeMap<String, Marketplace>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Known {
        source: Source,
        install_location: PathBuf,
    }
    #[derive(Deserialize)]
    struct Source {
        source: String,
    }
    let written: BTreeMap<String, Value> = parse(bytes)?;
    let known = written.into_iter().filter_map(|(name, value)| {
        let Known { source, install_location } = Known::deserialize(value).ok()?;
        let is_local = matches!(source.source.as_str(), "directory" | "file");
        Some((name, Marketplace { is_local, location: install_location }))
    });
    Ok(known.collect())
}

/// What a catalog says of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CatalogEntry {
    /// Its directory, relative to that of the marketplace, if it is there.
    pub(crate) directory: Option<String>,
    /// Whether the entry has hooks of its own.
    pub(crate) has_hooks: bool,
}

/// The entry of a plugin in a catalog.
pub(crate) fn read_catalog(bytes: &[u8], name: &str) -> Result<Option<CatalogEntry>, String> {
    #[derive(Deserialize)]
    struct Catalog {
        #[serde(default)]
        plugins: Vec<Value>,
    }
    let Catalog { plugins } = parse(bytes)?;
    let entry = plugins.into_iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(name));
    Ok(entry.map(|entry| CatalogEntry {
        directory: entry.get("source").and_then(Value::as_str).map(str::to_owned),
        has_hooks: entry.get("hooks").is_some_and(|hooks| !hooks.is_null()),
    }))
}

/// What the manifest of a plugin says of its hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ManifestHooks {
    /// Further files with hooks, relative to the directory of the plugin.
    pub(crate) files: Vec<String>,
    /// Whether the manifest itself has hooks.
    pub(crate) is_inline: bool,
    /// How many sets of hooks stand in a list, where they are not read.
    pub(crate) unread: usize,
}

/// Reads what a manifest says of hooks.
pub(crate) fn read_manifest(bytes: &[u8]) -> Result<ManifestHooks, String> {
    #[derive(Deserialize)]
    struct Manifest {
        hooks: Option<Value>,
    }
    let Manifest { hooks } = parse(bytes)?;
    Ok(match hooks {
        None | Some(Value::Null) => ManifestHooks::default(),
        Some(Value::String(file)) => ManifestHooks { files: vec![file], ..ManifestHooks::default() },
        Some(Value::Array(items)) => {
            let files: Vec<_> = items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
            ManifestHooks { unread: items.len() - files.len(), files, is_inline: false }
        }
        Some(_) => ManifestHooks { is_inline: true, ..ManifestHooks::default() },
    })
}

/// A path that stays below the directory it is relative to.
pub(crate) fn path_below(relative: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in Path::new(relative).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => path.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// The variables that only hooks of plugins have.
pub(super) const PLUGIN_VARIABLES: [&str; 2] = ["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"];

/// How a command refers to an option that a person has set for a plugin.
pub(super) const PLUGIN_OPTION: &str = "${user_config.";

/// The source of the hooks of a plugin of Claude Code in a directory.
pub(crate) fn plugin_source(id: &str, root: &Path, directory: &Path) -> PluginSource {
    let data = directory.join("data").join(plain(id, "-_"));
    let variable = |(name, path): (&'static str, &Path)| PluginVariable {
        name,
        value: path.to_string_lossy().into_owned(),
        is_set: true,
    };
    let variables = PLUGIN_VARIABLES.into_iter().zip([root, &data]).map(variable).collect();
    PluginSource {
        id: id.into(),
        label: label(id).into(),
        variables,
        listed_in: Vec::new(),
        replaces_texts: false,
    }
}

/// The source of the hooks of an extension of Gemini CLI in a directory.
pub(crate) fn extension_source(name: &str, root: &Path, project: &Path) -> PluginSource {
    let variable = |name: &'static str, value: String| PluginVariable { name, value, is_set: false };
    PluginSource {
        id: name.into(),
        label: label(name).into(),
        variables: vec![
            variable("extensionPath", root.to_string_lossy().into_owned()),
            variable("workspacePath", project.to_string_lossy().into_owned()),
            variable("/", "/".to_owned()),
            variable("pathSeparator", "/".to_owned()),
        ],
        listed_in: Vec::new(),
        replaces_texts: true,
    }
}

/// The part of a hook's name that says of which plugin it is. Two plugins never have the same one.
fn label(id: &str) -> String {
    short_label(id, LONGEST_LABEL)
}

/// Where an extension of Gemini CLI is installed, by its manifest and what is known of its installation. One that is linked
/// is where its source is.
pub(crate) fn read_extension(
    manifest: &[u8],
    installation: Option<&[u8]>,
) -> Result<(String, Option<PathBuf>), String> {
    #[derive(Deserialize)]
    struct Manifest {
        name: String,
    }
    #[derive(Deserialize)]
    struct Metadata {
        r#type: String,
        #[serde(default)]
        source: PathBuf,
    }
    let Manifest { name } = parse(manifest)?;
    let link = match installation.map(parse::<Metadata>).transpose()? {
        Some(Metadata { r#type, source }) if r#type == "link" => Some(source),
        _ => None,
    };
    Ok((name, link))
}

/// The value of a JSON text of another program.
pub(in crate::dialect) fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| format!("is not what the agent writes: {error}"))
}

/// A text with the values of variables in it.
pub(super) fn with_values(text: &str, source: &PluginSource) -> Option<Arc<str>> {
    if !text.contains("${") {
        return None;
    }
    let replace = |text: String, variable: &PluginVariable| {
        text.replace(&format!("${{{}}}", variable.name), &variable.value)
    };
    Some(source.variables.iter().fold(text.to_owned(), replace).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_tell_plugins_apart() {
        assert_eq!(label("p1@mk"), "p1_mk");
        assert_eq!(label("fmt"), "fmt");
        let ids = [
            "a_b@c",
            "a@b_c",
            "security-guidance@claude-plugins-official",
            "security-guidance@other-market",
            "ä@b",
            "ö@b",
            "",
        ];
        let mut labels: Vec<String> = ids.iter().map(|id| label(id)).collect();
        for label in &labels {
            assert!(label.len() <= LONGEST_LABEL, "{label}");
            assert!(label.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{label}");
        }
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), ids.len());
    }

    #[test]
    fn both_versions_of_the_registry_are_read() {
        let home = Path::new("/h");
        let first = br#"{"plugins": {"a@b c": {"version": "1.0/2"}, "bad": {}}}"#;
        let found = read_registry(first, home).unwrap();
        assert_eq!(found["a@b c"][0].install_path, Path::new("/h/cache/b-c/a/1.0-2"));
        assert!(found["a@b c"][0].is_for(Path::new("/p")) && !found.contains_key("bad"));
        let second = br#"{"version": 2, "plugins": {"a@b": [{"scope": "project", "projectPath": "/p", "installPath": "/x"}, 7]}}"#;
        let found = read_registry(second, home).unwrap();
        let [installation] = found["a@b"].as_slice() else { panic!("{found:?}") };
        assert!(installation.is_for(Path::new("/p")) && !installation.is_for(Path::new("/q")));
        assert!(read_registry(b"{", home).is_err() && read_registry(b"[]", home).is_err());
    }

    #[test]
    fn paths_of_a_plugin_stay_in_it() {
        assert_eq!(path_below("./a/../b"), Some(PathBuf::from("b")));
        for outside in ["..", "../x", "a/../../x", "/etc/passwd"] {
            assert_eq!(path_below(outside), None, "{outside}");
        }
    }
}
