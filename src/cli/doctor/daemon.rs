//! What `doctor` finds about the daemon.

use std::path::Path;

use super::super::{
    connect::OnDemandDaemon, daemon_flag::how_to_restart, escape, paths::display_path, units::coarse_duration,
};
use crate::{
    config::{ConnectionRecord, ConnectionStore, DaemonStart},
    daemon::{Client, ClientError, DaemonStatus, StartFinding},
};

const SUBJECT: &str = "daemon";

/// Whether the daemon is up and well, or starts with the next event.
pub(super) fn findings(
    client: &Client,
    status: &Result<DaemonStatus, ClientError>,
    record: &ConnectionRecord,
    store: Option<&ConnectionStore>,
) -> Vec<StartFinding> {
    match (status, store) {
        (Err(ClientError::Down { .. }), Some(store)) if starts_on_demand(record, client.socket()) => {
            vec![not_started_yet(store)]
        }
        _ => of_status(client, status, record),
    }
}

/// Whether events start the daemon at a socket.
fn starts_on_demand(record: &ConnectionRecord, socket: &Path) -> bool {
    let daemon = record.daemon.as_ref().filter(|daemon| daemon.start == DaemonStart::OnDemand);
    daemon.is_some_and(|daemon| daemon.socket == socket) && !record.connections.is_empty()
}

/// A daemon that the next event starts, or has tried to.
fn not_started_yet(store: &ConnectionStore) -> StartFinding {
    let daemon = OnDemandDaemon::new(store.directory());
    match daemon.last_failure() {
        None => StartFinding::ok(SUBJECT, "it does not run; the next event of an agent starts it"),
        Some(why) => {
            let text = format!("events could not start it: {}", escape::line(&why));
            let help = format!("correct this; its log is {}", display_path(&daemon.log()));
            StartFinding::error(SUBJECT, text).help(help)
        }
    }
}

/// What is wrong with a daemon that no event starts.
fn of_status(
    client: &Client,
    status: &Result<DaemonStatus, ClientError>,
    record: &ConnectionRecord,
) -> Vec<StartFinding> {
    let status = match status {
        Ok(status) => status,
        Err(error @ ClientError::Down { .. }) => {
            const START: &str =
                "start it with `hookyard serve`, or as a service of your user (docs/hosts.md)";
            let text = error.to_string();
            return vec![if record.connections.is_empty() {
                let connect = "connect an agent, as by `hookyard connect claude`, which has it started; or";
                StartFinding::warning(SUBJECT, text).help(format!("{connect} {START}"))
            } else {
                StartFinding::error(SUBJECT, text).help(START)
            }];
        }
        Err(error) => return vec![StartFinding::error(SUBJECT, error.to_string())],
    };
    let up = coarse_duration(std::time::Duration::from_millis(status.uptime_ms));
    let socket = client.socket().display();
    let text = format!("hookyard {}, pid {}, up {up}, at {socket}", status.version, status.pid);
    let mut findings = vec![StartFinding::ok(SUBJECT, text)];
    let own = env!("CARGO_PKG_VERSION");
    if status.version != own {
        let text = format!("the daemon is version {}, and this program is {own}", status.version);
        let known = record.daemon.as_ref().filter(|daemon| daemon.socket == client.socket());
        let help = how_to_restart(known.map(|daemon| daemon.start));
        findings.push(StartFinding::warning(SUBJECT, text).help(help));
    }
    if status.phase != "ready" {
        findings.push(StartFinding::warning(SUBJECT, format!("it is {}", status.phase)));
    }
    findings.extend(status.broken.iter().map(|broken| {
        let text = format!("files of workspace {} are broken: {}", broken.id, broken.first);
        StartFinding::error(SUBJECT, text).help("`hookyard status` shows them, and what is in force")
    }));
    findings.extend(status.not_loaded.iter().map(|known| {
        StartFinding::error(SUBJECT, format!("workspace {} is not loaded: {}", known.id, known.why))
            .help("its events are refused until it is")
    }));
    findings.extend(status.required_missing.iter().map(|missing| {
        let text = format!(
            "required hook {} of {} is not in force: {}",
            missing.hook, missing.workspace, missing.why
        );
        StartFinding::error(SUBJECT, text)
    }));
    if let Some(bundle) = status.bundle.as_ref().filter(|bundle| !bundle.is_well()) {
        let error = bundle.error.as_deref().unwrap_or("publish a newer one, or see to its server");
        let text = format!("the signed bundle is {}: {error}", bundle.standing);
        findings.push(StartFinding::error("bundle", text).help("`hookyard status` shows what is in force"));
    }
    findings.extend(status.degraded_workers.iter().map(|known| {
        let text = format!("workers of {} in {} do not serve: {}", known.hook, known.workspace, known.why);
        StartFinding::warning(SUBJECT, text).help("`hookyard check` starts one and shows what it says")
    }));
    findings
}
