//! `stop`: end the daemon once its events are done.

use std::{io, time::Duration};

use clap::Args;

use super::{
    daemon_flag::ControlSocketFlags,
    exit::{CliError, CliResult, Exit},
    screen::Screen,
};
use crate::{daemon::DaemonStatus, model::io_reason, platform::ProcessHandle};

/// How long its end is waited for.
const LONGEST_WAIT: Duration = Duration::from_mins(2);

const FOOTER: &str = "\
Examples:
  hookyard stop

A daemon that is started on demand, or by the sockets of a service, starts again with the next event of a connected \
agent. `hookyard disconnect` ends that.

Exit codes: 0 it has ended; 1 no daemon runs, or it still waits for its events.";

/// Stop the daemon
///
/// Like SIGTERM: the daemon first finishes its events, for at most `shutdown_deadline`.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct StopCommand {
    #[command(flatten)]
    sockets: ControlSocketFlags,
}

impl StopCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let client = self.sockets.interactive_client();
        let status: DaemonStatus = client.ask("GET", "/v1/status", None)?;
        let pid = status.pid;
        // Not its socket, with which a service manager would start the next one.
        let process = open_process(pid).map_err(|error| {
            CliError::new(format!(
                "the daemon is pid {pid}, which cannot be waited for: {}",
                io_reason(&error)
            ))
        })?;
        let answer = client.send("POST", "/v1/drain", None)?;
        if !(200..300).contains(&answer.status) {
            return Err(answer.error_response().into());
        }
        wait_for_end(&process, pid)?;
        screen.print(&format!("stopped hookyard {}, pid {pid}", status.version))?;
        Ok(Exit::Done)
    }
}

fn open_process(pid: u32) -> io::Result<ProcessHandle> {
    ProcessHandle::open(i32::try_from(pid).map_err(io::Error::other)?)
}

fn wait_for_end(process: &ProcessHandle, pid: u32) -> Result<(), CliError> {
    if process.wait(LONGEST_WAIT) {
        return Ok(());
    }
    let help = "`hookyard status` shows them; SIGTERM ends them at once";
    Err(CliError::with_help(format!("pid {pid} still waits for its events"), help))
}
