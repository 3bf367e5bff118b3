//! Checks of settings that concern more than one key.

use std::{collections::BTreeMap, path::PathBuf};

use super::{
    boundaries::ListenSettings,
    bundle::SHORTEST_POLL,
    cluster::{FEWEST_STRICT, HaltSharing, LifecyclePlace, SHORTEST_SILENCE, SHORTEST_STALE},
    data::DataDirectory,
    table::Settings,
};
use crate::dialect::{Mapping, Value};

impl ListenSettings {
    /// Whether `tcp` is open to other machines, and no token is required.
    pub fn is_open(&self) -> bool {
        self.token_file.is_none()
            && self.tcp.is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }
}

impl Settings {
    /// Records what is wrong with keys together, in the last of the layers that has one of them.
    pub(super) fn check(&self, layers: &[Mapping<'_>]) {
        if self.default_timeout > self.max_timeout
            && let Some(value) = last_of(layers, [&["default_timeout"], &["max_timeout"]])
        {
            let message = "`default_timeout` is longer than `max_timeout`";
            value.error("timeout", message, "shorten the one or raise the other");
        }
        if self.listen.is_open()
            && let Some(value) = last_of(layers, [&["listen", "tcp"], &["listen", "token_file"]])
        {
            let message = "`tcp` is reachable from other machines, but `token_file` is missing";
            value.error("listen", message, "set `token_file`, or listen on `127.0.0.1`");
        }
        if self.ship.url.is_some()
            && self.data == DataDirectory::Memory
            && let Some(value) = last_of(layers, [&["ship", "url"], &["data"]])
        {
            let message = "`ship.url` needs `data`, where lines wait until they are sent";
            value.error("ship", message, "set `data: auto`, or remove `ship.url`");
        }
        self.check_bundle(layers);
        if self.cluster.enabled
            && !self.workspace_roots.is_empty()
            && let Some(value) = last_of(layers, [&["workspace_roots"], &["cluster", "enabled"]])
        {
            let message = "a node of a cluster registers no workspaces below `workspace_roots`";
            value.warn("cluster", message, "name each workspace in `workspaces`, and in the events");
        }
        self.check_store(layers);
        for layer in layers {
            warn_of_shared_roots(layer);
        }
    }
}

impl Settings {
    fn check_store(&self, layers: &[Mapping<'_>]) {
        let cluster = &self.cluster;
        if cluster.worker_silence < SHORTEST_SILENCE
            && let Some(value) = last_of(layers, [&["cluster", "worker_silence"], &["cluster"]])
        {
            value.error("cluster", "`cluster.worker_silence` is shorter than `1s`", "write `30s`, say");
        }
        if !cluster.is_shared() {
            if cluster.lifecycle == LifecyclePlace::Queue
                && let Some(value) = last_of(layers, [&["cluster", "lifecycle"], &["cluster"]])
            {
                let message = "`cluster.lifecycle: queue` needs `cluster.store`, where the queue is";
                value.error("cluster", message, "name the servers of NATS, or write `lifecycle: here`");
            }
            return;
        }
        let Some(value) = last_of(layers, [&["cluster", "store"], &["cluster"]]) else { return };
        if cluster.stale_after < SHORTEST_STALE
            && let Some(value) = last_of(layers, [&["cluster", "stale_after"], &["cluster"]])
        {
            value.error("cluster", "`cluster.stale_after` is shorter than `1s`", "write `2s`, say");
        }
        if cluster.halts == HaltSharing::Strict && cluster.replicas.get() < FEWEST_STRICT {
            let message = "`cluster.halts: strict` needs a store of at least 3 servers";
            value.error("cluster", message, "set `cluster.replicas: 3`, or `cluster.halts: watch`");
        }
        if self.data == DataDirectory::Memory {
            let message = "`cluster.store` needs `data`, where halts are kept until the store has them";
            value.error("cluster", message, "set `data: auto`, or remove `cluster.store`");
        }
    }

    fn check_bundle(&self, layers: &[Mapping<'_>]) {
        if self.bundle.url.is_some()
            && self.bundle.keys.is_empty()
            && let Some(value) = last_of(layers, [&["bundle", "keys"], &["bundle", "url"]])
        {
            let message = "`bundle.url` is set, and `bundle.keys` names no key that may sign the bundle";
            value.error("bundle", message, "add the public key that `hookyard bundle keygen` printed");
        }
        if self.bundle.poll < SHORTEST_POLL
            && let Some(value) = last_of(layers, [&["bundle", "poll"], &["bundle", "url"]])
        {
            value.error("bundle", "`bundle.poll` is shorter than `100ms`", "write `30s`, say");
        }
        if self.bundle.is_configured()
            && self.data == DataDirectory::Memory
            && let Some(value) = last_of(layers, [&["data"], &["bundle", "keys"]])
        {
            let message = "a bundle is kept in `data`, which is `null`";
            value.error("bundle", message, "set `data` to `auto` or to a directory");
        }
    }
}

/// Warns of each workspace that has the root of one before it.
fn warn_of_shared_roots(layer: &Mapping<'_>) {
    let Some(workspaces) = layer.get("workspaces").and_then(|value| value.as_mapping()) else { return };
    let mut ids: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for workspace in workspaces.values() {
        let root = workspace.as_mapping().and_then(|keys| keys.get("root"));
        let Some(root) = root.and_then(|root| root.as_text()) else { continue };
        if let Some(twin) = ids.insert(PathBuf::from(root), workspace.name()) {
            let message = format!("the workspaces `{twin}` and `{}` have the same root", workspace.name());
            workspace.warn("workspaces", message, "keep one of the two, unless hosts use both ids");
        }
    }
}

/// The value at the first of the paths that the last possible layer has.
fn last_of<'d>(layers: &[Mapping<'d>], paths: [&[&str]; 2]) -> Option<Value<'d>> {
    layers.iter().rev().find_map(|layer| paths.iter().find_map(|path| value_at(layer, path)))
}

fn value_at<'d>(mapping: &Mapping<'d>, path: &[&str]) -> Option<Value<'d>> {
    let (key, rest) = path.split_first()?;
    let value = mapping.get(key)?;
    if rest.is_empty() { Some(value) } else { value_at(&value.as_mapping()?, rest) }
}
