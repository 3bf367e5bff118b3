//! Status messages to the service manager, in the protocol of systemd's `Type=notify`, and its watchdog.

use std::{
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    task::JoinSet,
    time::{interval, timeout},
};

use crate::platform::address_of;

/// The variable with the address of the service manager's socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// The variables with the time after which the service manager ends a service that has not sent a sign of life, and with
/// the process that it expects them from.
const WATCHDOG_TIME: &str = "WATCHDOG_USEC";
const WATCHDOG_PROCESS: &str = "WATCHDOG_PID";

/// The request by which the daemon is asked whether it answers.
const PROBE: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: hookyard\r\nconnection: close\r\n\r\n";

/// What every response begins with, also one that says that there are too many connections.
const RESPONSE: &[u8] = b"HTTP/1.1 ";

/// Sends a state such as `READY=1`, if there is a service manager.
pub(super) fn notify(state: &str) {
    let Some(address) = std::env::var_os(VARIABLE) else { return };
    let sent = address_of(&address)
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, state, "the service manager could not be notified");
    }
}

/// Sends signs of life for as long as the result lives, if the service manager expects them: twice in its time, and only
/// while the daemon answers at this socket. One that hangs is restarted.
pub(super) fn feed_watchdog(socket: &Path) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let variable = |name| std::env::var(name).ok();
    let process = variable(WATCHDOG_PROCESS);
    if let Some(time) = variable(WATCHDOG_TIME).and_then(|time| watchdog_time(&time, process.as_deref())) {
        tasks.spawn(feed(socket.to_owned(), time / 2));
    }
    tasks
}

/// The time of the watchdog, if it watches this process.
fn watchdog_time(microseconds: &str, process: Option<&str>) -> Option<Duration> {
    let is_other = process.is_some_and(|process| process.parse() != Ok(std::process::id()));
    let time = microseconds.parse().ok().filter(|time| *time > 0 && !is_other)?;
    Some(Duration::from_micros(time))
}

async fn feed(socket: PathBuf, pause: Duration) {
    let mut ticks = interval(pause);
    loop {
        ticks.tick().await;
        if timeout(pause, answers(&socket)).await == Ok(true) {
            notify("WATCHDOG=1");
        }
    }
}

/// Whether the daemon answers a request. Over its limit of connections it closes some without a response, and lives.
async fn answers(socket: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket).await else { return false };
    let mut response = [0; RESPONSE.len()];
    stream.write_all(PROBE).await.is_ok()
        && stream.read_exact(&mut response).await.is_ok()
        && response == RESPONSE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_of_another_process_is_not_fed() {
        let own = std::process::id().to_string();
        assert_eq!(watchdog_time("30000000", None), Some(Duration::from_secs(30)));
        assert_eq!(watchdog_time("1000", Some(&own)), Some(Duration::from_millis(1)));
        for (time, process) in [("30000000", Some("1")), ("0", None), ("soon", None), ("9", Some(""))] {
            assert_eq!(watchdog_time(time, process), None, "{time} {process:?}");
        }
    }
}
