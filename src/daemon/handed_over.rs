//! Listening sockets that another process has opened and hands over: the service manager at the start, or the daemon that
//! this one replaces.

#[cfg(feature = "cli")]
use std::env;
use std::{
    fs::File,
    io,
    net::{SocketAddr, TcpListener as StdTcpListener},
    os::{
        fd::AsFd,
        unix::{fs::MetadataExt, net::UnixListener as StdUnixListener},
    },
    path::{Path, PathBuf},
};

#[cfg(feature = "cli")]
use listenfd::ListenFd;

use super::socket::default_control_socket;
use crate::{config::ListenSettings, platform::is_listening};

/// The most sockets that are handed over: one of each role.
const MAX_SOCKETS: usize = 5;

/// The number of sockets that the service manager hands over.
#[cfg(feature = "cli")]
const COUNT_VARIABLE: &str = "LISTEN_FDS";

/// The process that the sockets are for.
#[cfg(feature = "cli")]
const PROCESS_VARIABLE: &str = "LISTEN_PID";

/// The names of the sockets, separated by colons: `FileDescriptorName=` of their units.
#[cfg(feature = "cli")]
const NAMES_VARIABLE: &str = "LISTEN_FDNAMES";

/// Why a socket that was handed over cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandedOverError {
    /// The number of sockets is not a number, or there are too many.
    #[error(
        "`LISTEN_FDS` is {0:?}; hookyard takes at most {MAX_SOCKETS} sockets: events, control, lines, tcp and metrics"
    )]
    Count(String),
    /// It is not a listening stream socket.
    #[error(
        "the socket {number} that was handed over, {name:?}, {why}; use `ListenStream=` with a path or an address"
    )]
    Kind {
        /// Its place among the sockets, from 1.
        number: usize,
        /// Its name, if it has one.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// Two sockets are for the same.
    #[error("two sockets for {0} were handed over; hand over one, or name them by `FileDescriptorName=`")]
    Twice(&'static str),
    /// One socket is for two things: what may only send events would control the daemon.
    #[error("one socket was handed over for {0} and for {1}; hand over one for each, at places of their own")]
    Shared(&'static str, &'static str),
    /// The socket is at another place than the settings say.
    #[error(
        "the socket for {role} that was handed over is at {found}, but the settings say {expected}; make them agree"
    )]
    Elsewhere {
        /// What it is for.
        role: &'static str,
        /// Its place.
        found: String,
        /// What the settings say.
        expected: String,
    },
    /// Nothing says what the socket is for.
    #[error(
        "the socket {0} that was handed over is neither the event socket nor the control socket nor that of lines; name \
         it by `FileDescriptorName=`: events, control, lines, tcp or metrics"
    )]
    Role(String),
}

/// What a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerRole {
    Events,
    Control,
    Lines,
    Tcp,
    Metrics,
}

impl ListenerRole {
    const ALL: [Self; MAX_SOCKETS] = [Self::Events, Self::Control, Self::Lines, Self::Tcp, Self::Metrics];

    /// The name in `FileDescriptorName=`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Control => "control",
            Self::Lines => "lines",
            Self::Tcp => "tcp",
            Self::Metrics => "metrics",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    fn is_unix(self) -> bool {
        matches!(self, Self::Events | Self::Control | Self::Lines)
    }
}

/// Whether a listener goes on when the daemon ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerOwner {
    Daemon,
    /// The next daemon gets it, and answers what waits in it.
    ServiceManager,
}

/// A listening socket of either family.
#[derive(Debug)]
pub(super) enum StdListener {
    Unix(StdUnixListener, PathBuf),
    Tcp(StdTcpListener, SocketAddr),
}

impl StdListener {
    /// The place of the socket, for people.
    fn place(&self) -> String {
        match self {
            Self::Unix(_, path) => path.display().to_string(),
            Self::Tcp(_, address) => address.to_string(),
        }
    }
}

/// The sockets that were handed over, by their names.
#[derive(Debug, Default)]
pub(crate) struct HandedOver {
    sockets: Vec<(String, StdListener)>,
}

impl HandedOver {
    /// The sockets of the service manager, if it has started this process with any. They are taken out of the environment,
    /// so call it once, before there are other threads.
    ///
    /// Returns an error if one is no listening stream socket, or if there are too many.
    #[cfg(feature = "cli")]
    pub(crate) fn from_service_manager() -> Result<Self, HandedOverError> {
        let Ok(count) = env::var(COUNT_VARIABLE) else { return Ok(Self::default()) };
        // Without the process, the variables are what another service has left in the environment.
        let process = env::var(PROCESS_VARIABLE).ok().and_then(|text| text.parse().ok());
        if process != Some(std::process::id()) {
            return Ok(Self::default());
        }
        if !count.parse().is_ok_and(|count: usize| count <= MAX_SOCKETS) {
            return Err(HandedOverError::Count(count));
        }
        let names = env::var(NAMES_VARIABLE).unwrap_or_default();
        let mut names = names.split(':');
        let mut descriptors = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..descriptors.len() {
            let name = names.next().unwrap_or_default().to_owned();
            let listener = take(&mut descriptors, index).map_err(|why| HandedOverError::Kind {
                number: index + 1,
                name: name.clone(),
                why,
            })?;
            sockets.push((name, listener));
        }
        Ok(Self { sockets })
    }

    #[cfg(feature = "cli")]
    pub(crate) fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Sorts the sockets by what they are for: by their names, or else by their places.
    ///
    /// Returns an error if two are for the same, or if one is not where the settings say.
    pub(super) fn assign(
        self,
        listen: &ListenSettings,
        default_event_socket: &Path,
    ) -> Result<AssignedListeners, HandedOverError> {
        let mut assigned = AssignedListeners::default();
        let expected = listen.socket.clone().unwrap_or_else(|| default_event_socket.to_owned());
        let control = listen.control_socket.clone().unwrap_or_else(|| default_control_socket(&expected));
        for (name, listener) in self.sockets {
            let role = match (&listener, ListenerRole::named(&name)) {
                (_, Some(role)) => role,
                (StdListener::Unix(_, path), None) if *path == control => ListenerRole::Control,
                (StdListener::Unix(_, path), None) if *path == expected => ListenerRole::Events,
                (StdListener::Unix(_, path), None) if listen.lines.as_ref() == Some(path) => {
                    ListenerRole::Lines
                }
                (StdListener::Unix(..), None) => return Err(HandedOverError::Role(listener.place())),
                (StdListener::Tcp(_, address), None) if listen.metrics == Some(*address) => {
                    ListenerRole::Metrics
                }
                (StdListener::Tcp(..), None) => ListenerRole::Tcp,
            };
            assigned.add((role, ListenerOwner::ServiceManager, listener), listen)?;
        }
        assigned.check_apart()?;
        Ok(assigned)
    }
}

/// A socket that was handed over, its place and its owner.
pub(super) type Assigned<L, P> = Option<(L, P, ListenerOwner)>;

/// The sockets that were handed over, by what they are for.
#[derive(Debug, Default)]
pub(super) struct AssignedListeners {
    pub(super) events: Assigned<StdUnixListener, PathBuf>,
    pub(super) control: Assigned<StdUnixListener, PathBuf>,
    pub(super) lines: Assigned<StdUnixListener, PathBuf>,
    pub(super) tcp: Assigned<StdTcpListener, SocketAddr>,
    pub(super) metrics: Assigned<StdTcpListener, SocketAddr>,
}

impl AssignedListeners {
    /// Adds a socket that is where the settings say.
    ///
    /// Returns an error if it is not, or if there is one already.
    pub(super) fn add(
        &mut self,
        (role, owner, listener): (ListenerRole, ListenerOwner, StdListener),
        listen: &ListenSettings,
    ) -> Result<(), HandedOverError> {
        check_place(role, &listener, listen)?;
        let is_new = match (role, listener) {
            (ListenerRole::Events, StdListener::Unix(listener, path)) => {
                self.events.replace((listener, path, owner)).is_none()
            }
            (ListenerRole::Control, StdListener::Unix(listener, path)) => {
                self.control.replace((listener, path, owner)).is_none()
            }
            (ListenerRole::Lines, StdListener::Unix(listener, path)) => {
                self.lines.replace((listener, path, owner)).is_none()
            }
            (ListenerRole::Tcp, StdListener::Tcp(listener, address)) => {
                self.tcp.replace((listener, address, owner)).is_none()
            }
            (ListenerRole::Metrics, StdListener::Tcp(listener, address)) => {
                self.metrics.replace((listener, address, owner)).is_none()
            }
            (role, listener) => return Err(wrong_family(role, &listener)),
        };
        if is_new { Ok(()) } else { Err(HandedOverError::Twice(role.as_str())) }
    }

    /// Returns an error if one socket, or one place, is for two things.
    pub(super) fn check_apart(&self) -> Result<(), HandedOverError> {
        let unix = [
            (ListenerRole::Events, &self.events),
            (ListenerRole::Control, &self.control),
            (ListenerRole::Lines, &self.lines),
        ];
        let unix = unix.into_iter().filter_map(|(role, assigned)| {
            assigned.as_ref().map(|(listener, path, _)| (role, open_file(listener), file_at(path)))
        });
        let tcp = [(ListenerRole::Tcp, &self.tcp), (ListenerRole::Metrics, &self.metrics)];
        let tcp = tcp.into_iter().filter_map(|(role, assigned)| {
            assigned.as_ref().map(|(listener, ..)| (role, open_file(listener), None))
        });
        let all: Vec<_> = unix.chain(tcp).collect();
        for (index, (role, socket, file)) in all.iter().enumerate() {
            for (other, other_socket, other_file) in &all[..index] {
                if socket == other_socket || (file.is_some() && file == other_file) {
                    return Err(HandedOverError::Shared(other.as_str(), role.as_str()));
                }
            }
        }
        Ok(())
    }
}

/// The identity of an open socket; none only if the system does not tell, and then it may be any other such.
fn open_file(socket: impl AsFd) -> Option<(u64, u64)> {
    let file = File::from(socket.as_fd().try_clone_to_owned().ok()?);
    let metadata = file.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// The identity of the file at a path.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn wrong_family(role: ListenerRole, listener: &StdListener) -> HandedOverError {
    let expected = if role.is_unix() { "a Unix socket with a path" } else { "a TCP address" };
    HandedOverError::Elsewhere { role: role.as_str(), found: listener.place(), expected: expected.to_owned() }
}

/// Returns an error if the settings name another place for the socket.
fn check_place(
    role: ListenerRole,
    listener: &StdListener,
    listen: &ListenSettings,
) -> Result<(), HandedOverError> {
    let expected = match (role, listener) {
        (ListenerRole::Events, StdListener::Unix(_, path)) => other_path(listen.socket.as_deref(), path),
        (ListenerRole::Control, StdListener::Unix(_, path)) => {
            other_path(listen.control_socket.as_deref(), path)
        }
        (ListenerRole::Lines, StdListener::Unix(_, path)) => other_path(listen.lines.as_deref(), path),
        (ListenerRole::Tcp, StdListener::Tcp(_, address)) => other_address(listen.tcp, *address),
        (ListenerRole::Metrics, StdListener::Tcp(_, address)) => other_address(listen.metrics, *address),
        _ => None,
    };
    match expected {
        Some(expected) => {
            Err(HandedOverError::Elsewhere { role: role.as_str(), found: listener.place(), expected })
        }
        None => Ok(()),
    }
}

fn other_path(expected: Option<&Path>, found: &Path) -> Option<String> {
    expected.filter(|expected| *expected != found).map(|expected| expected.display().to_string())
}

/// The port 0 of the settings agrees with any port.
fn other_address(expected: Option<SocketAddr>, found: SocketAddr) -> Option<String> {
    let agrees = |expected: &SocketAddr| {
        expected.ip() == found.ip() && (expected.port() == 0 || expected.port() == found.port())
    };
    expected.filter(|expected| !agrees(expected)).map(|expected| expected.to_string())
}

/// Takes a socket out of the list.
///
/// Returns what is wrong with it.
#[cfg(feature = "cli")]
fn take(descriptors: &mut ListenFd, index: usize) -> Result<StdListener, String> {
    if let Ok(Some(listener)) = descriptors.take_unix_listener(index) {
        return unix_listener(listener);
    }
    match descriptors.take_tcp_listener(index) {
        Ok(Some(listener)) => tcp_listener(listener),
        _ => Err("is not a stream socket".to_owned()),
    }
}

/// A Unix socket that was handed over, with its path.
///
/// Returns what is wrong with it.
#[cfg(any(feature = "cli", test))]
fn unix_listener(listener: StdUnixListener) -> Result<StdListener, String> {
    check_listening(&listener)?;
    let address = listener.local_addr().map_err(|error| crate::model::io_reason(&error))?;
    let path = address.as_pathname().filter(|path| path.is_absolute()).map(Path::to_owned);
    path.map(|path| StdListener::Unix(listener, path)).ok_or_else(|| "has no absolute path".to_owned())
}

/// A Unix socket that was handed over, at this path.
///
/// Returns what is wrong with it.
pub(super) fn unix_listener_at(listener: StdUnixListener, path: &Path) -> Result<StdListener, String> {
    check_listening(&listener)?;
    Ok(StdListener::Unix(listener, path.to_owned()))
}

/// A TCP socket that was handed over, with its address.
///
/// Returns what is wrong with it.
pub(super) fn tcp_listener(listener: StdTcpListener) -> Result<StdListener, String> {
    check_listening(&listener)?;
    let address = listener.local_addr().map_err(|error| crate::model::io_reason(&error))?;
    Ok(StdListener::Tcp(listener, address))
}

fn check_listening(socket: impl AsFd) -> Result<(), String> {
    match is_listening(&socket) {
        Ok(true) => Ok(()),
        Ok(false) => Err("does not listen".to_owned()),
        Err(error) => Err(crate::model::io_reason(&io::Error::from(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(directory: &Path, name: &str) -> StdListener {
        unix_listener(StdUnixListener::bind(directory.join(name)).unwrap()).unwrap()
    }

    fn tcp() -> StdListener {
        tcp_listener(StdTcpListener::bind("127.0.0.1:0").unwrap()).unwrap()
    }

    fn handed(sockets: impl IntoIterator<Item = (&'static str, StdListener)>) -> HandedOver {
        HandedOver { sockets: sockets.into_iter().map(|(name, socket)| (name.to_owned(), socket)).collect() }
    }

    #[test]
    fn sockets_have_roles_by_their_names_or_their_places() {
        let place = tempfile::tempdir().unwrap();
        let here = place.path();
        let default = here.join("hookyard.sock");
        let sockets = [
            ("hookyard.socket", unix(here, "hookyard.sock")),
            ("", unix(here, "hookyard-control.sock")),
            ("unknown", tcp()),
            ("metrics", tcp()),
        ];
        let assigned = handed(sockets).assign(&ListenSettings::default(), &default).unwrap();
        assert_eq!(assigned.events.unwrap().1, default);
        assert_eq!(assigned.control.unwrap().1, here.join("hookyard-control.sock"));
        assert!(assigned.tcp.is_some() && assigned.metrics.is_some());
        let named = handed([("control", unix(here, "c"))]);
        assert_eq!(
            named.assign(&ListenSettings::default(), &default).unwrap().control.unwrap().1,
            here.join("c")
        );
    }

    #[test]
    fn sockets_that_contradict_the_settings_or_each_other_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let here = place.path();
        let default = here.join("hookyard.sock");
        let error = |sockets: Vec<(&'static str, StdListener)>, listen: &ListenSettings| {
            handed(sockets).assign(listen, &default).unwrap_err().to_string()
        };
        let settings = ListenSettings::default();
        let twice = error(vec![("events", unix(here, "a")), ("events", unix(here, "b"))], &settings);
        assert!(twice.contains("two sockets for events"), "{twice}");
        assert!(error(vec![("tcp", tcp()), ("", tcp())], &settings).contains("two sockets for tcp"));
        assert!(error(vec![("", unix(here, "else"))], &settings).contains("neither"));
        assert!(error(vec![("tcp", unix(here, "t"))], &settings).contains("a TCP address"));
        assert!(error(vec![("control", tcp())], &settings).contains("a Unix socket"));
        let both = StdUnixListener::bind(here.join("both")).unwrap();
        let again = both.try_clone().unwrap();
        let both = vec![("events", unix_listener(both).unwrap()), ("control", unix_listener(again).unwrap())];
        assert!(error(both, &settings).contains("one socket was handed over for events and for control"));
        let shared = StdTcpListener::bind("127.0.0.1:0").unwrap();
        let again = shared.try_clone().unwrap();
        let shared = vec![("tcp", tcp_listener(shared).unwrap()), ("metrics", tcp_listener(again).unwrap())];
        assert!(error(shared, &settings).contains("one socket was handed over for tcp and for metrics"));
        let listen = ListenSettings { socket: Some(here.join("mine")), ..ListenSettings::default() };
        assert!(error(vec![("events", unix(here, "yours"))], &listen).contains("the settings say"));
        let listen = ListenSettings { tcp: "127.0.0.1:1".parse().ok(), ..ListenSettings::default() };
        assert!(error(vec![("", tcp())], &listen).contains("127.0.0.1:1"));
        let listen = ListenSettings { tcp: "127.0.0.1:0".parse().ok(), ..ListenSettings::default() };
        assert!(handed([("", tcp())]).assign(&listen, &default).is_ok());
    }
}
