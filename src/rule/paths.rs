//! Paths and addresses, by their text alone.

use url::Url;

use crate::model::is_certainly_private;

/// A path without `.`, `..` and doubled slashes, from a directory on where it is relative.
pub(crate) fn normalized(path: &str, directory: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let from = if path.starts_with('/') { "" } else { directory };
    for part in from.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether a path is a directory, or something in it. A relative path is one from that directory on.
pub(super) fn is_within(path: &str, directory: &str) -> bool {
    let directory = normalized(directory, "/");
    let path = normalized(path, &directory);
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
