//! Paths and addresses: their texts, and what is known of links.

use std::path::Path;

use url::Url;

use crate::model::{DirectoryName, KnownLinks, LinkGap, PathEntry, follow, is_certainly_private};

/// A path without `.`, `..` and doubled slashes, from a directory on where it is relative.
#[cfg(feature = "rego")]
pub(crate) fn normalized(path: &str, directory: &str) -> String {
    normalized_among(path, directory, &[])
}

/// The same, with directories for names that have links in them.
pub(super) fn normalized_among(path: &str, directory: &str, names: &[DirectoryName]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let from = if path.starts_with('/') { "" } else { directory };
    for part in from.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => {
                parts.push(part);
                // Before the next part: `..` leads to what is above the directory, not above the link.
                let is_here = |known: &&DirectoryName| parts_of(&known.name).eq(parts.iter().copied());
                if let Some(known) = names.iter().find(is_here) {
                    parts = parts_of(&known.directory).collect();
                }
            }
        }
    }
    format!("/{}", parts.join("/"))
}

/// The parts of an absolute path.
fn parts_of(path: &Path) -> impl Iterator<Item = &str> {
    path.iter().skip(1).map(|part| part.to_str().unwrap_or("/"))
}

/// Where a path leads, from a directory on where it is relative: with links followed as far as they are known, and the names.
///
/// Returns why that is not known of a part of it.
pub(super) fn leads(
    path: &str,
    directory: &str,
    names: &[DirectoryName],
    links: Option<&KnownLinks>,
) -> Result<String, LinkGap> {
    follow(path, directory, &mut |at| {
        if let Some(known) = names.iter().find(|known| known.name.as_os_str() == at) {
            return Ok(PathEntry::Link(known.directory.to_string_lossy().into()));
        }
        links.map_or(Ok(PathEntry::Plain), |links| links.entry(at).cloned())
    })
}

/// Whether a normalised path is a normalised directory, or something in it.
pub(super) fn is_in(path: &str, directory: &str) -> bool {
    directory == "/"
        || path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path is a directory, or something in it, by their texts. A relative path is one from that directory on.
pub(super) fn is_written_within(path: &str, directory: &str, names: &[DirectoryName]) -> bool {
    let directory = normalized_among(directory, "/", names);
    is_in(&normalized_among(path, &directory, names), &directory)
}

/// Whether a path leads into a directory, or to it.
pub(super) fn leads_within(
    path: &str,
    directory: &str,
    names: &[DirectoryName],
    links: Option<&KnownLinks>,
) -> Result<bool, LinkGap> {
    let led = leads(path, directory, names, links)?;
    Ok(is_in(&led, &leads(directory, "/", names, links)?))
}

pub(super) fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// The host of an address in lower case, without port, user and password; empty if it has none.
pub(super) fn url_host(address: &str) -> String {
    Url::parse(address.trim()).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// Names of servers that tell a machine in a cloud who it is.
const METADATA_NAMES: [&str; 3] = ["metadata", "metadata.google.internal", "instance-data"];

/// Whether a host is this machine, or an address that is not of the public Internet, however it is spelt.
pub(super) fn is_private_host(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_lowercase();
    let is_literal = host.matches(':').count() > 1 && !host.starts_with('[');
    let address = if is_literal { format!("http://[{host}]/") } else { format!("http://{host}/") };
    METADATA_NAMES.contains(&host.as_str())
        || Url::parse(&address).is_ok_and(|url| is_certainly_private(&url))
}
