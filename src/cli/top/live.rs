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
    feed::{self, MOST_NEWS, News, Source},
    ui::{Step, Ui},
    watch::Watch,
};
use crate::{
    cli::{
        exit::{Ending, Exit, Trouble},
        interrupt::Interrupt,
        screen::Screen,
    },
    daemon::Lines,
};

/// Between two pictures, unless a key is pressed.
const PERIOD: Duration = Duration::from_millis(250);

/// The terminal in the modes of a full screen, until it is dropped. A panic gives the modes back as well, before it
/// prints what happened.
struct Taken(DefaultTerminal);

impl Taken {
    fn take() -> io::Result<Self> {
        ratatui::try_init().map(Self).inspect_err(|_| ratatui::restore())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows the table until a key or a signal ends it.
pub(super) fn show(source: &Source, lines: Lines, screen: &Screen) -> Ending {
    let (sender, news) = sync_channel(MOST_NEWS);
    hear_signals(sender.clone())?;
    let mut terminal = Taken::take()
        .map_err(|error| Trouble::with_help(format!("the terminal cannot be used: {error}"), ONCE))?;
    source.clone().tell(lines, sender.clone());
    source.clone().watch(sender.clone());
    feed::listen(sender);
    follow(&mut terminal.0, &news, Ui::new(screen.out.paint))
}

const ONCE: &str = "`--once` prints one table and needs no terminal";

/// A signal that ends the program must not leave the terminal as it is.
fn hear_signals(news: SyncSender<News>) -> io::Result<()> {
    let mut interrupt = Interrupt::listen()?;
    tokio::spawn(async move {
        let exit = interrupt.next().await;
        // With nobody to take the news the end has come already.
        drop(tokio::task::spawn_blocking(move || news.send(News::Interrupted(exit))).await);
    });
    Ok(())
}

fn follow(terminal: &mut DefaultTerminal, news: &Receiver<News>, mut ui: Ui) -> Ending {
    let start = Instant::now();
    let mut watch = Watch::default();
    loop {
        let drawn = Instant::now();
        let is_held = ui.held.is_some();
        let picture = ui.held.clone().unwrap_or_else(|| watch.picture(start.elapsed()));
        terminal.draw(|frame| draw::draw(frame, &picture, &mut ui))?;
        loop {
            let left = PERIOD.saturating_sub(drawn.elapsed());
            if left.is_zero() {
                // Also when news keeps coming.
                break;
            }
            match news.recv_timeout(left) {
                Ok(News::Told(told)) => watch.told(told, start.elapsed()),
                Ok(News::Stream(state)) => watch.stream(state.err()),
                Ok(News::Look(look)) => watch.look(*look),
                Ok(News::Key(key)) => {
                    match ui.press(key) {
                        Step::Stay => {}
                        Step::Pause => ui.held = (!is_held).then_some(picture),
                        Step::Quit => return Ok(Exit::Done),
                        Step::Interrupt => return Ok(Exit::INTERRUPTED),
                    }
                    break;
                }
                Ok(News::Interrupted(exit)) => return Ok(exit),
                Ok(News::Deaf(why)) => {
                    return Err(Trouble::with_help(format!("no key can be read: {why}"), ONCE));
                }
                Ok(News::Resized) | Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Done),
            }
        }
    }
}
