//! The table that stays on the terminal. Owns the terminal's modes, which are given back on every way out; refuses to wait
//! for the daemon, which its threads do.

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
        interrupt::StopSignals,
        screen::Screen,
    },
    daemon::ResponseLines,
};

/// Between two pictures, unless a key is pressed.
const PERIOD: Duration = Duration::from_millis(250);

/// The terminal in the modes of a full screen, until it is dropped. A panic gives the modes back as well, before it
/// prints what happened.
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
    follow(&mut terminal.0, &events, TopUi::new(screen.out.paint))
}

const ONCE: &str = "`--once` prints one table and needs no terminal";

/// A signal that ends the program must not leave the terminal as it is.
fn forward_signals(events: SyncSender<TopEvent>) -> io::Result<()> {
    let mut interrupt = StopSignals::listen()?;
    tokio::spawn(async move {
        let exit = interrupt.next().await;
        // With nobody to take the news the end has come already.
        drop(tokio::task::spawn_blocking(move || events.send(TopEvent::Interrupted(exit))).await);
    });
    Ok(())
}

fn follow(terminal: &mut DefaultTerminal, events: &Receiver<TopEvent>, mut ui: TopUi) -> CliResult {
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
                // Also when news keeps coming.
                break;
            }
            match events.recv_timeout(left) {
                Ok(TopEvent::Event(event)) => state.apply(event, start.elapsed()),
                Ok(TopEvent::Stream(result)) => state.set_stream_error(result.err()),
                Ok(TopEvent::Poll(poll)) => state.apply_poll(*poll),
                Ok(TopEvent::Key(key)) => {
                    match ui.press(key) {
                        KeyAction::Stay => {}
                        KeyAction::Pause => ui.paused = (!was_paused).then_some(snapshot),
                        KeyAction::Quit => return Ok(Exit::Done),
                        KeyAction::Interrupt => return Ok(Exit::INTERRUPTED),
                    }
                    break;
                }
                Ok(TopEvent::Interrupted(exit)) => return Ok(exit),
                Ok(TopEvent::KeyboardLost(why)) => {
                    return Err(CliError::with_help(format!("no key can be read: {why}"), ONCE));
                }
                Ok(TopEvent::Resized) | Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Done),
            }
        }
    }
}
