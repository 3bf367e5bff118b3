//! What leaves hookyard, and what it starts: the files that start processes or open connections, and those that make the
//! proof which both need.

use std::collections::{BTreeMap, BTreeSet};

use syn::{ItemUse, UseTree, visit::Visit};

use super::{
    assert_none,
    source::{Source, sources},
};

/// What starts processes, opens connections or asks a name server. A path counts with all that is below it.
const OUTLETS: [&str; 29] = [
    "hyper::client",
    "hyper_util::client",
    "libc",
    "nix::sched",
    "nix::spawn",
    "nix::sys::socket::connect",
    "nix::sys::socket::socket",
    "nix::unistd::execv",
    "nix::unistd::execve",
    "nix::unistd::execvp",
    "nix::unistd::fork",
    "reqwest::Client::builder",
    "reqwest::Client::default",
    "reqwest::Client::new",
    "reqwest::ClientBuilder",
    "reqwest::blocking",
    "reqwest::get",
    "rustix::net",
    "rustix::runtime",
    "std::net::TcpStream",
    "std::net::ToSocketAddrs",
    "std::net::UdpSocket",
    "std::os::unix::net::UnixDatagram",
    "std::os::unix::net::UnixStream",
    "std::process::Command",
    "tokio::net",
    "tokio::process",
    "std::os::unix::process::CommandExt",
    "h2::client",
];

/// What is below an outlet and is none: it takes connections, and opens none.
const LISTENERS: [&str; 3] = ["tokio::net::TcpListener", "tokio::net::UnixListener", "tokio::net::unix"];

/// The files with outlets, and why.
const OUTLET_FILES: [(&str, &str); 29] = [
    (
        "src/cli/bench/target/address.rs",
        "connects a load generator to the daemon that its command line names",
    ),
    ("src/cli/bench/target/null_server.rs", "makes a pair of sockets, both of which are its own"),
    ("src/cli/bench/target/lines.rs", "reads and writes on a connection of the first, for all senders"),
    ("src/cli/bench/target/stream.rs", "reads and writes on the connections of the first"),
    ("src/cli/connect/on_demand.rs", "starts the daemon itself, as the person has recorded it, and no hook"),
    (
        "src/cli/connect/service.rs",
        "has the service manager of the person start the daemon, when they connect an agent",
    ),
    ("src/cli/relay.rs", "ends standard output, which may be a socket of the agent"),
    (
        "src/cli/small_relay.rs",
        "becomes the program `hookyard` beside it, with the arguments that it was given",
    ),
    ("src/cli/ui.rs", "has the browser of the person open the page, when they ask for it"),
    ("src/cli/sd_notify.rs", "tells the service manager, at the address it gave, that the daemon is ready"),
    ("src/daemon/client.rs", "the commands' connection to the daemon, whose process is checked"),
    ("src/daemon/connections.rs", "takes connections that wait in a listener, and opens none"),
    ("src/daemon/handover/forward.rs", "forwards requests to the daemon that has taken over, at its socket"),
    ("src/daemon/lines/buffer.rs", "reads from a connection that a listener has taken"),
    ("src/daemon/lines/connection.rs", "reads from it and writes to it, and opens none"),
    (
        "src/daemon/handover/predecessor.rs",
        "offers the listeners to a daemon that is to take over, and checks it",
    ),
    ("src/daemon/handover/wire.rs", "takes the connection of the daemon that is to be replaced"),
    ("src/daemon/handover/wire.rs", "what both say on that connection"),
    ("src/daemon/server_identity.rs", "checks who serves that connection"),
    ("src/daemon/socket.rs", "asks whether another daemon serves the socket"),
    ("src/daemon/sse.rs", "reads the daemon's answers from that connection"),
    ("src/handler/command/sandbox/launcher.rs", "becomes the program that was approved"),
    ("src/handler/command/spawn.rs", "starts every program"),
    ("src/handler/http/targets.rs", "looks up the names of servers, and checks their addresses"),
    ("src/handler/http_client.rs", "makes every client"),
    (
        "src/handler/own_listeners.rs",
        "binds an address to see whether it is of this machine, and sends nothing",
    ),
    (
        "src/platform/linux/sockets.rs",
        "asks about sockets that others have, and makes one that its caller connects",
    ),
    ("src/platform/portable/sockets.rs", "the same"),
    ("src/store/queue/tests/mod.rs", "starts the server of its tests"),
];

/// The functions that make an approval, and the files that may call them.
const APPROVALS: [(&str, &[&str]); 7] = [
    ("managed", &["src/config/trust/apply.rs", "src/orchestrator/native_hook.rs"]),
    ("of_copy", &["src/config/trust/apply.rs"]),
    ("in_place", &["src/config/trust/apply.rs"]),
    ("trust_is_off", &["src/config/trust/apply.rs"]),
    ("of_launcher", &["src/handler/command/sandbox/launcher.rs"]),
    ("of_bundle", &["src/config/bundle/hooks.rs"]),
    (
        "of_settings",
        &[
            "src/cli/bundle/push.rs",
            "src/cli/remote_relay.rs",
            "src/daemon/bundle/fetch.rs",
            "src/daemon/cluster.rs",
            "src/daemon/ship/request.rs",
            "src/daemon/traces/exporter.rs",
        ],
    ),
];

/// The paths that a file writes, with the names that it imports written out.
fn paths(source: &Source) -> BTreeSet<String> {
    let file = syn::parse_file(&source.text).expect("a parsed file");
    let mut written = WrittenPaths::default();
    for item in super::source::without_tests(file.items) {
        written.visit_item(&item);
    }
    let WrittenPaths { imported, code } = written;
    let in_full = code.into_iter().flat_map(|path| {
        let (first, rest) = path.split_once("::").map_or((path.as_str(), ""), |(first, rest)| (first, rest));
        let targets = imported.get(first).cloned().unwrap_or_else(|| BTreeSet::from([first.to_owned()]));
        let joined = move |target: String| if rest.is_empty() { target } else { format!("{target}::{rest}") };
        targets.into_iter().map(joined).collect::<Vec<_>>()
    });
    let mut all: BTreeSet<String> = in_full.collect();
    all.extend(imported.into_values().flatten());
    all
}

/// The paths of code and of `use` declarations, those inside of functions and macros among them.
#[derive(Default)]
struct WrittenPaths {
    /// What each imported name stands for.
    imported: BTreeMap<String, BTreeSet<String>>,
    code: BTreeSet<String>,
}

impl WrittenPaths {
    fn import(&mut self, tree: &UseTree, before: &str) {
        let below = |name: &dyn ToString| match before {
            "" => name.to_string(),
            _ => format!("{before}::{}", name.to_string()),
        };
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &below(&path.ident)),
            UseTree::Name(name) if name.ident == "self" => {
                let own = before.rsplit("::").next().unwrap_or_default();
                self.imported.entry(own.to_owned()).or_default().insert(before.to_owned());
            }
            UseTree::Name(name) => {
                let path = below(&name.ident);
                self.imported.entry(name.ident.to_string()).or_default().insert(path);
            }
            UseTree::Rename(rename) => {
                let is_self = rename.ident == "self";
                let path = if is_self { before.to_owned() } else { below(&rename.ident) };
                self.imported.entry(rename.rename.to_string()).or_default().insert(path);
            }
            UseTree::Glob(_) => {
                self.imported.entry("*".to_owned()).or_default().insert(below(&"*"));
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, before)),
        }
    }
}

impl<'ast> Visit<'ast> for WrittenPaths {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, "");
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.code.insert(segments.join("::"));
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        // The tokens of a path stand together: only the blanks between them are taken out.
        let text = invocation.tokens.to_string().replace(" :: ", "::");
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        self.code.extend(text.split(|c| !is_part(c)).filter(|word| word.contains("::")).map(str::to_owned));
        syn::visit::visit_macro(self, invocation);
    }
}

/// The outlets among some paths.
fn outlets(paths: &BTreeSet<String>) -> Vec<String> {
    let is_at_or_below = |path: &str, outer: &str| {
        path == outer || path.strip_prefix(outer).is_some_and(|rest| rest.starts_with("::"))
    };
    let is_outlet = |path: &&String| {
        let glob = path.strip_suffix("::*");
        OUTLETS.iter().any(|outlet| {
            is_at_or_below(path, outlet) || glob.is_some_and(|above| is_at_or_below(outlet, above))
        }) && !LISTENERS.iter().any(|listener| is_at_or_below(path, listener))
    };
    paths.iter().filter(is_outlet).cloned().collect()
}

#[test]
fn processes_are_started_and_connections_opened_in_few_files() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for source in sources() {
        let found = outlets(&paths(source));
        if OUTLET_FILES.iter().any(|(file, _)| *file == source.path) {
            used.extend((!found.is_empty()).then_some(source.path.as_str()));
        } else {
            wrong.extend(found.into_iter().map(|path| format!("{} uses {path}", source.path)));
        }
    }
    let unused = OUTLET_FILES.iter().filter(|(file, _)| !used.contains(file));
    wrong.extend(unused.map(|(file, _)| format!("{file} is listed and has no outlet")));
    assert_none(
        "what starts or asks something takes an `Approval`; see handler/command and handler/http_client",
        &wrong,
    );
}

#[test]
fn an_approval_is_made_where_it_may_be() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for source in sources().iter().filter(|source| source.path != "src/model/trust.rs") {
        for path in paths(source) {
            let Some((_, made)) = path.rsplit_once("Approval::") else { continue };
            let files = APPROVALS.iter().find(|(name, _)| *name == made).map_or(&[][..], |(_, files)| files);
            if files.contains(&source.path.as_str()) {
                used.insert((made.to_owned(), source.path.as_str()));
            } else if made != "outlasts_changes" {
                wrong.push(format!("{} calls Approval::{made}", source.path));
            }
        }
    }
    for (name, files) in APPROVALS {
        let unused = files.iter().filter(|file| !used.contains(&(name.to_owned(), **file)));
        wrong.extend(unused.map(|file| format!("{file} is listed and does not call Approval::{name}")));
    }
    assert_none("only the check of trust says what may run", &wrong);
}

#[test]
fn an_outlet_is_seen_however_it_is_written() {
    let found = |text: &str| outlets(&paths(&super::source::parse("src/x.rs", text.to_owned())));
    for text in [
        "fn f() { std::process::Command::new(\"x\"); }",
        "use std::process::Command as Start; fn f() { Start::new(\"x\"); }",
        "use std::process; fn f() { process::Command::new(\"x\"); }",
        "use std::process::*; fn f() { Command::new(\"x\"); }",
        "use std::process::{self as p}; fn f() { p::Command::new(\"x\"); }",
        "fn f() { use std::process::Command; Command::new(\"x\"); }",
        "mod inner { use std::{net::TcpStream, io}; }",
        "fn f() { g!(tokio::process::Command::new(\"x\")); }",
        "use tokio::net; async fn f() { net::UnixStream::connect(\"x\").await; }",
        "fn f() { reqwest::Client::builder(); }",
        "use reqwest::Client; fn f() { Client::new(); }",
        "fn f(c: impl std::os::unix::process::CommandExt) {}",
    ] {
        assert!(!found(text).is_empty(), "{text}");
    }
    for text in [
        "use tokio::net::{TcpListener, unix::UCred}; fn f() { TcpListener::bind(\"x\"); }",
        "use reqwest::Client; fn f(client: Client) {}",
        "use std::process::ExitCode; fn f() { std::process::id(); }",
        "#[cfg(test)] mod tests { use std::process::Command; }",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text}");
    }
}
