//! Where the settings of `serve` came from.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::serve::ServeCommand;
use crate::config::{SetKey, Settings};

impl ServeCommand {
    /// Where the settings came from, with what flags of the command set.
    pub(super) fn set_keys(&self, mut set: Vec<SetKey>, settings: &Settings) -> Vec<SetKey> {
        let listen = &settings.listen;
        let path = |path: &Option<PathBuf>| path.as_deref().map(|path| path.display().to_string());
        let of_flags = [
            ("listen.socket", "--socket", self.socket.is_some(), path(&listen.socket)),
            (
                "listen.control_socket",
                "--control-socket",
                self.control_socket.is_some(),
                path(&listen.control_socket),
            ),
            ("listen.tcp", "--tcp", self.tcp.is_some(), listen.tcp.map(|address| address.to_string())),
            ("listen.token_file", "--token-file", self.token_file.is_some(), path(&listen.token_file)),
            (
                "listen.control_token_file",
                "--control-token-file",
                self.control_token_file.is_some(),
                path(&listen.control_token_file),
            ),
            ("home", "--home", self.settings.home.is_some(), path(&settings.home)),
            (
                "cluster.lifecycle",
                "hookyard work",
                self.lifecycle.is_some(),
                Some(settings.cluster.lifecycle.as_str().to_owned()),
            ),
        ];
        for (key, flag, is_given, value) in of_flags {
            if is_given {
                set.retain(|known| known.key != key);
                set.push(SetKey {
                    key: key.to_owned(),
                    value: value.into(),
                    source: flag.to_owned(),
                    line: None,
                });
            }
        }
        if !self.workspace.is_empty() {
            let roots = settings
                .workspaces
                .iter()
                .map(|(id, given)| (id.to_string(), json!({ "root": given.root.display().to_string() })));
            let known = set.iter().position(|known| known.key == "workspaces").map(|at| set.remove(at));
            let source =
                known.map_or("--workspace".to_owned(), |known| format!("{} and --workspace", known.source));
            let value = Value::Object(roots.collect());
            set.push(SetKey { key: "workspaces".to_owned(), value, source, line: None });
        }
        set
    }
}
