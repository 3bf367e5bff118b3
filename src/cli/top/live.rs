//! The live view. It restores the terminal on every way out.

use std::{
    io,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::Duration,
};

use ratatui::DefaultTerminal;
use tokio::time::Instant;

use super::{
    draw,
    sources::{self, DaemonSource, EVENT_BUFFER, TopEvent},
    state::TopState,
    ui::{KeyAction, TopUi},
};
use crate::{
    cli::{
        exit::{CliError, CliResult, Exit},
        screen::Screen,
        session::StopSignals,
    },
    daemon::ResponseLines,
};

/// Between two frames, unless a key is pressed.
const PERIOD: Duration = Duration::from_millis(250);

/// RAII guard: the terminal in full-screen mode. A panic restores it as well, before it prints its message.
struct FullScreen(DefaultTerminal);

impl FullScreen {
    fn take() -> io::Result<Self> {
        ratatui::try_init().map(Self).inspect_err(|_| ratatui::restore())
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows the table until a key or a signal ends it.
pub(super) fn show(source: &DaemonSource, lines: ResponseLines, screen: &Screen) -> CliResult {
    let (sender, events) = sync_channel(EVENT_BUFFER);
    forward_signals(sender.clone())?;
    let mut terminal = FullScreen::take()
        .map_err(|error| CliError::with_help(format!("the terminal cannot be used: {error}"), ONCE))?;
    source.clone().spawn_stream_reader(lines, sender.clone());
    source.clone().spawn_poller(sender.clone());
    sources::spawn_key_reader(sender);
    run(&mut terminal.0, &events, TopUi::new(screen.out.paint))
}

const ONCE: &str = "`--once` prints one table and needs no terminal";

/// A signal must not leave the terminal in full-screen mode.
fn forward_signals(events: SyncSender<TopEvent>) -> io::Result<()> {
    let mut signals = StopSignals::listen()?;
    tokio::spawn(async move {
        let exit = signals.next().await;
        // If the receiver is gone, the program is ending already.
        drop(tokio::task::spawn_blocking(move || events.send(TopEvent::Interrupted(exit))).await);
    });
    Ok(())
}

fn run(terminal: &mut DefaultTerminal, events: &Receiver<TopEvent>, mut ui: TopUi) -> CliResult {
    let start = Instant::now();
    let mut state = TopState::default();
    loop {
        let drawn = Instant::now();
        let was_paused = ui.paused.is_some();
        let snapshot = ui.paused.clone().unwrap_or_else(|| state.snapshot(start.elapsed()));
        terminal.draw(|frame| draw::draw(frame, &snapshot, &mut ui))?;
        loop {
            let left = PERIOD.saturating_sub(drawn.elapsed());
            if left.is_zero() {
                // Draw also while updates keep coming.
                break;
            }
            match events.recv_timeout(left) {
                Ok(TopEvent::Event(event)) => state.apply(event, start.elapsed()),
                Ok(TopEvent::Stream(result)) => state.set_stream_error(result.err()),
                Ok(TopEvent::Poll(poll)) => state.apply_poll(*poll),
                Ok(TopEvent::Key(key)) => {
                    match ui.press(key) {
                        KeyAction::Stay => {}
                        KeyAction::TogglePause => ui.paused = (!was_paused).then_some(snapshot),
                        KeyAction::Quit => return Ok(Exit::Done),
                        KeyAction::Interrupt => return Ok(Exit::INTERRUPTED),
                    }
                    break;
                }
                Ok(TopEvent::Interrupted(exit)) => return Ok(exit),
                Ok(TopEvent::KeyboardLost(why)) => {
                    return Err(CliError::with_help(format!("the keyboard cannot be read: {why}"), ONCE));
                }
                Ok(TopEvent::Resized) | Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Done),
            }
        }
    }
}
