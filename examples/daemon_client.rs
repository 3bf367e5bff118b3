//! A host that asks the daemon over its Unix socket, with nothing but the standard library and a JSON library: what a
//! host in another language does as well.
//!
//! ```sh
//! cargo run --example daemon_client
//! ```
//!
//! It asks the daemon at `$HOOKYARD_LISTEN_SOCKET`; without that variable it starts one for itself, on the hooks in
//! `examples/workspace`.

use std::{
    env,
    error::Error,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use hookyard::{
    config::{DataDirectory, Settings, WorkspaceSettings},
    daemon::Daemon,
    model::WorkspaceId,
};
use serde_json::{Value, json};

/// Longer than hooks may take, or their verdict would come too late.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if let Some(socket) = env::var_os("HOOKYARD_LISTEN_SOCKET") {
        return ask_about_pushes(Path::new(&socket));
    }
    let directory = tempfile::tempdir()?;
    let daemon = start_daemon(directory.path().join("hookyard.sock")).await?;
    let socket = daemon.socket().to_owned();
    let asked = tokio::task::spawn_blocking(move || ask_about_pushes(&socket).map_err(|e| e.to_string()));
    let result = asked.await?;
    daemon.stop(Duration::from_secs(5)).await;
    Ok(result?)
}

/// The host: says what is about to happen, and does as the verdict says.
fn ask_about_pushes(socket: &Path) -> Result<(), Box<dyn Error>> {
    for command in ["git push origin main", "git push --force origin main"] {
        let input = json!({ "command": command });
        let event = json!({
            "event": "before_tool_dispatch", "session_id": "session-1", "run_id": "run-1",
            "tool_name": "Bash", "tool_input": input,
        });
        let outcome = dispatch(socket, &event)?;
        let reason = outcome["reason"].as_str().unwrap_or_default();
        match outcome["verdict"].as_str() {
            Some("proceed" | "allow") => {
                let input = outcome["patched"].get("tool_input").unwrap_or(&input);
                println!("{command}: run it with {input}");
            }
            Some("ask") => println!("{command}: ask a person: {reason}"),
            Some("block") => println!("{command}: tell the model: {reason}"),
            // A verdict that this host does not know is none that lets it go on.
            _ => println!("{command}: end the run: {reason}"),
        }
    }
    Ok(())
}

/// Sends one event and returns its outcome.
///
/// Returns an error if nobody listens or the daemon answers with an error. That is no verdict: a host decides
/// beforehand whether it then goes on.
fn dispatch(socket: &Path, event: &Value) -> Result<Value, Box<dyn Error>> {
    let body = event.to_string();
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    write!(
        stream,
        "POST /v1/events HTTP/1.1\r\nhost: hookyard\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (head, body) = response.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("no HTTP response"))?;
    let answer: Value = serde_json::from_str(body)?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(format!("{}; {}", answer["error"]["message"], answer["error"]["hint"]).into());
    }
    Ok(answer)
}

async fn start_daemon(socket: PathBuf) -> Result<Daemon, Box<dyn Error>> {
    let mut settings = Settings::default();
    settings.listen.socket = Some(socket);
    // An example keeps nothing, and another daemon may use the default directory.
    settings.data = DataDirectory::Memory;
    let workspace = WorkspaceSettings::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/workspace"));
    settings.workspaces.insert(WorkspaceId::new("example")?, workspace);
    Ok(Daemon::start(settings, &|name| env::var(name).ok()).await?)
}
