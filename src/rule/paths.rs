//! Paths and addresses, by their text alone.

use std::path::Path;

use url::Url;

use crate::model::{DirectoryName, is_certainly_private};

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

/// Whether a path is a directory, or something in it. A relative path is one from that directory on.
pub(super) fn is_within(path: &str, directory: &str, names: &[DirectoryName]) -> bool {
    let directory = normalized_among(directory, "/", names);
    let path = normalized_among(path, &directory, names);
    directory == "/"
        || path.strip_prefix(&directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
