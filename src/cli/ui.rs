//! `ui`: open the daemon's page in a browser.

use std::{
    env,
    fs::{self, OpenOptions},
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use clap::Args;
use serde::{Deserialize, Serialize};
use url::Position;

use super::{
    daemon_flag::ControlSocketFlags,
    exit::{CliError, CliResult, Exit},
    flags::JsonFlag,
    screen::Screen,
    units::coarse_duration,
};
use crate::model::Address;

const FOOTER: &str = "\
Examples:
  hookyard ui
  hookyard ui --control
  hookyard ui --no-open --url https://hooks.example.com

The link signs in once, within two minutes. The page is served at `listen.tcp` of the settings.

Exit codes: 0 there is a link; 1 no daemon runs, or it has no address for browsers that is safe without `--url`.";

/// Programs that open a link in the person's browser.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// Open the daemon's page in a browser
///
/// Prints a link that signs in once, and opens it if this machine has a screen.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct UiCommand {
    /// Permit the page to change the daemon too: to cancel runs and to show the payloads of events
    #[arg(long)]
    control: bool,

    /// Print the link, and open no browser
    #[arg(long)]
    no_open: bool,

    /// Where browsers reach the daemon, if that is not its own TCP address: `https://…`, or `http://…` on this machine
    #[arg(long, value_name = "URL", value_parser = page_base)]
    url: Option<String>,

    #[command(flatten)]
    sockets: ControlSocketFlags,

    #[command(flatten)]
    output: JsonFlag,
}

/// What is asked of the daemon before it makes a link.
#[derive(Debug, Deserialize)]
struct PagePlace {
    tcp: Option<SocketAddr>,
}

/// A link, as the daemon makes it.
#[derive(Debug, Deserialize)]
struct MadeLink {
    path: String,
    address: SocketAddr,
    right: String,
    lifetime_ms: u64,
}

/// A link, as it is printed.
#[derive(Debug, Serialize)]
struct ShownLink {
    url: String,
    right: String,
    lifetime_ms: u64,
}

impl UiCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let (client, path) = if self.control {
            (self.sockets.interactive_client(), "/v1/page/control-link")
        } else {
            (self.sockets.event_socket.interactive_client(), "/v1/page/link")
        };
        if self.url.is_none() {
            // A link that nobody gets is a secret all the same. Of a page that is not there, the daemon says what to do.
            let place: PagePlace = client.ask("GET", "/v1/status", None)?;
            place.tcp.map(own_base).transpose()?;
        }
        let link: MadeLink = client.ask("POST", path, None)?;
        let base = match &self.url {
            Some(base) => base.clone(),
            None => own_base(link.address)?,
        };
        let url = format!("{base}{}", link.path);
        if self.output.json {
            screen.print_json(&ShownLink { url, right: link.right, lifetime_ms: link.lifetime_ms })?;
            return Ok(Exit::Done);
        }
        screen.print(&url)?;
        let lifetime = coarse_duration(std::time::Duration::from_millis(link.lifetime_ms));
        screen.note(&format!("the link signs in once, within {lifetime}, with the right to {}", link.right));
        if !self.no_open && has_screen() && !open(&url) {
            screen.note("no browser was opened: copy the link");
        }
        Ok(Exit::Done)
    }
}

/// Reads where a page is: scheme, host and port, which is what secrets are sent to.
fn page_base(text: &str) -> Result<String, String> {
    const USAGE: &str = "give scheme and host, such as `https://hooks.example.com`";
    let address = Address::parse(text).map_err(|error| format!("{error}; {USAGE}"))?;
    let url = address.url();
    if address.socket().is_some() || !matches!(&url[Position::AfterPort..], "" | "/") {
        return Err(format!("the address of a page has nothing else; {USAGE}"));
    }
    if !address.is_safe_on_the_way() {
        return Err(
            "over `http://`, secrets are sent to this machine only; use `https://`, or forward the port with `ssh -L`, and \
             give `--url http://127.0.0.1:PORT`"
                .to_owned(),
        );
    }
    Ok(url.origin().ascii_serialization())
}

/// Where the page of a daemon at an address is, for browsers on this machine: elsewhere, the secret of a link would be on the way.
fn own_base(address: SocketAddr) -> Result<String, CliError> {
    let here = reachable(address);
    if here.ip().is_loopback() {
        return Ok(format!("http://{here}"));
    }
    Err(CliError::with_help(
        format!(
            "the daemon serves its page at {address}, where a link would show its secret to everybody on the way"
        ),
        format!(
            "give the address of the proxy with TLS before it, as in `--url https://hooks.example.com`; or forward a port with \
             `ssh -L 8787:{address} HOST`, and give `--url http://127.0.0.1:8787`"
        ),
    ))
}

/// An address that a browser on this machine can ask.
fn reachable(address: SocketAddr) -> SocketAddr {
    let here = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(here, address.port())
}

/// Whether a browser of this machine has a screen to show itself on.
fn has_screen() -> bool {
    let is_remote = env::var_os("SSH_CONNECTION").is_some();
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some());
    has_display || (!is_remote && env::var_os("__CFBundleIdentifier").is_some())
}

/// How long a browser may take to read the file that leads it to the page.
const READ_PATIENCE: Duration = Duration::from_secs(3);

/// Opens the link in the person's browser. Returns whether a program took it.
fn open(url: &str) -> bool {
    let Ok(file) = redirecting_file(url) else { return false };
    let is_open = start_opener(&file);
    if is_open {
        // The browser reads it once. It must not stay: whoever can read it first has the session.
        std::thread::sleep(READ_PATIENCE);
    }
    // It is in a directory of this user, and good for two minutes.
    fs::remove_file(file).ok();
    is_open
}

/// Writes a file that only this person can read, and that leads a browser to the link: everybody can see the arguments of a
/// process.
fn redirecting_file(url: &str) -> io::Result<PathBuf> {
    let directory = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
    let file = directory.join(format!("hookyard-ui-{}.html", std::process::id()));
    let escaped = url.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let text = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={escaped}\">");
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(&file)?.write_all(text.as_bytes())?;
    Ok(file)
}

#[allow(clippy::disallowed_methods, reason = "the person's own browser is no hook")]
fn start_opener(file: &Path) -> bool {
    OPENERS.iter().any(|opener| {
        let mut command = std::process::Command::new(opener);
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_goes_to_a_page_only() {
        for (url, base) in [
            ("https://hooks.example.com", "https://hooks.example.com"),
            ("https://hooks.example.com:8443/", "https://hooks.example.com:8443"),
            ("http://127.0.0.1:8787/", "http://127.0.0.1:8787"),
            ("http://localhost:8787", "http://localhost:8787"),
            ("http://[::1]:8787", "http://[::1]:8787"),
        ] {
            assert_eq!(page_base(url).as_deref(), Ok(base), "{url}");
        }
        for url in [
            "",
            "hooks.example.com",
            "ftp://x",
            "https://",
            "https://x/?a=",
            "https://a@b",
            "https://x/y",
            "unix:/s:/",
        ] {
            assert!(page_base(url).is_err(), "{url}");
        }
        let refused = page_base("http://10.0.0.1:8787").unwrap_err();
        assert!(refused.ends_with("and give `--url http://127.0.0.1:PORT`"), "{refused}");
    }

    #[test]
    fn an_address_for_all_is_reached_at_this_machine() {
        let shown = |address: &str| reachable(address.parse().unwrap()).to_string();
        assert_eq!(shown("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(shown("[::]:1"), "[::1]:1");
        assert_eq!(shown("10.0.0.1:1"), "10.0.0.1:1");
    }

    #[test]
    fn a_link_of_its_own_leads_to_this_machine_only() {
        for (address, base) in [
            ("127.0.0.1:1", Some("http://127.0.0.1:1")),
            ("127.8.8.8:1", Some("http://127.8.8.8:1")),
            ("[::1]:1", Some("http://[::1]:1")),
            ("0.0.0.0:1", Some("http://127.0.0.1:1")),
            ("[::]:1", Some("http://[::1]:1")),
            ("10.0.0.1:1", None),
            ("[fe80::1]:1", None),
            ("[::ffff:127.0.0.1]:1", None),
        ] {
            assert_eq!(own_base(address.parse().unwrap()).ok().as_deref(), base, "{address}");
        }
    }
}
