//! The thread that writes audit lines. Owns when they are written and synced, and what is said of those that could not
//! be; refuses to stop because of one.

use std::{
    io,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Order, Tally,
    line::{self, Entry},
    outlet::Outlet,
};
use crate::config::{AuditPatches, AuditSync};

/// How much is written at once.
const BATCH: usize = 64 << 10;

/// How often the writer looks around when there is nothing to do, and whether its file is still there.
const LOOK: Duration = Duration::from_secs(1);

/// How lines are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriterBounds {
    pub(super) sync: AuditSync,
    pub(super) patches: AuditPatches,
}

/// What the thread knows.
#[derive(Debug)]
pub(super) struct Writer {
    outlet: Box<dyn Outlet>,
    bounds: WriterBounds,
    tally: Arc<Tally>,
    /// Whole lines that are not written yet.
    batch: Vec<u8>,
    /// How many lines that are.
    lines: u64,
    /// Whether the outlet ends in the middle of a line.
    torn: bool,
    /// When lines that may not be on the disk were written first.
    unsynced: Option<Instant>,
    looked: Instant,
    /// What went wrong last.
    error: Option<io::Error>,
}

impl Writer {
    pub(super) fn new(outlet: Box<dyn Outlet>, bounds: WriterBounds, tally: Arc<Tally>) -> Self {
        Self {
            outlet,
            bounds,
            tally,
            batch: Vec::new(),
            lines: 0,
            torn: false,
            unsynced: None,
            looked: Instant::now(),
            error: None,
        }
    }

    /// Writes until nobody can send anything any more, and all of it is written.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(self.pause()) {
                Ok(order) => {
                    self.obey(order);
                    while self.batch.len() < BATCH
                        && let Ok(order) = orders.try_recv()
                    {
                        self.obey(order);
                    }
                    self.write();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.look_around();
        }
        if self.unsynced.is_some() {
            self.sync();
        }
        self.tally.complain_at_last(&mut self.error);
    }

    fn pause(&self) -> Duration {
        let due = match (self.bounds.sync, self.unsynced) {
            (AuditSync::Every(period), Some(since)) => period.saturating_sub(since.elapsed()),
            _ => LOOK,
        };
        due.min(LOOK)
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Line(entry, weight) => {
                self.take(&entry);
                drop(entry);
                self.tally.leave(weight);
                if self.bounds.sync == AuditSync::Always {
                    self.write();
                }
            }
            Order::Look => {
                self.write();
                self.look();
            }
        }
    }

    /// Takes in a line. One that has no room beside those before it comes after them, maybe in another file.
    fn take(&mut self, entry: &Entry) {
        let start = self.batch.len();
        if let Err(error) = line::write(entry, self.bounds.patches, &mut self.batch) {
            return self.lose(1, error.into());
        }
        if start > 0 && self.batch.len() as u64 > self.outlet.room() {
            let line = self.batch.split_off(start);
            self.write();
            self.batch = line;
        }
        self.lines += 1;
    }

    /// Writes the lines that are there; those that cannot be written are lost.
    fn write(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let (mut batch, lines) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.lines));
        let (put, error) = match self.outlet.make_room(batch.len()).and_then(|()| self.mend()) {
            Ok(()) => self.put(&batch),
            Err(error) => (0, Some(error)),
        };
        let whole = memchr::memrchr(b'\n', &batch[..put]).map_or(0, |end| end + 1);
        let kept = memchr::memchr_iter(b'\n', &batch[..whole]).count() as u64;
        if put > whole {
            self.torn = !self.outlet.take_back(put - whole);
        }
        self.tally.written.fetch_add(kept, Ordering::Relaxed);
        if let Some(error) = error {
            self.lose(lines.saturating_sub(kept), error);
        }
        if kept > 0 && self.bounds.sync != AuditSync::Never {
            self.unsynced.get_or_insert_with(Instant::now);
        }
        if self.bounds.sync == AuditSync::Always {
            self.sync();
        }
        batch.clear();
        // A large line keeps no memory once it is written.
        batch.shrink_to(BATCH * 2);
        self.batch = batch;
    }

    /// Ends the line that was torn, so that the next begins at its beginning.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            let (put, error) = self.put(b"\n");
            self.torn = put == 0;
            error.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Writes bytes, as many as can be, and tells how many that were.
    fn put(&mut self, bytes: &[u8]) -> (usize, Option<io::Error>) {
        let mut put = 0;
        while put < bytes.len() {
            match self.outlet.write(&bytes[put..]) {
                Ok(0) => return (put, Some(io::ErrorKind::WriteZero.into())),
                Ok(some) => put += some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (put, Some(error)),
            }
        }
        (put, None)
    }

    fn look_around(&mut self) {
        if self.looked.elapsed() >= LOOK {
            self.look();
        }
        if let (AuditSync::Every(period), Some(since)) = (self.bounds.sync, self.unsynced)
            && since.elapsed() >= period
        {
            self.sync();
        }
        self.tally.complain(&mut self.error);
    }

    fn look(&mut self) {
        self.looked = Instant::now();
        if let Err(error) = self.outlet.look() {
            self.error = Some(error);
        }
    }

    fn sync(&mut self) {
        self.unsynced = None;
        if let Err(error) = self.outlet.sync() {
            tracing::error!(%error, "audit lines could not be put on the disk");
        }
    }

    fn lose(&mut self, lines: u64, error: io::Error) {
        self.tally.lost(lines);
        self.error = Some(error);
    }
}
