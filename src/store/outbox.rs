//! What is kept of lifecycle events until they are delivered, and of those that could not be: rows, and their changes
//! that are not on disk yet.

use std::{collections::BTreeMap, fmt, sync::Arc};

use tokio::sync::oneshot;

use super::{
    event_record,
    record::{DeliveryProgress, RecordError},
};
use crate::model::{Event, WorkspaceId};

/// Is notified when a row is on disk, or why it is not.
#[cfg(feature = "daemon")]
pub(crate) type RowReceiver = oneshot::Receiver<Result<(), Arc<str>>>;

/// Keeps lifecycle events until they are delivered. None of its methods waits for a disk. Changes of one row are kept in
/// their order.
pub(crate) trait OutboxStore: fmt::Debug + Send + Sync {
    /// Adds a row within a second.
    fn add(&self, row: OutboxRow);

    /// Adds a row at once. The receiver is notified when it is on disk. If it cannot be written, it is not added.
    fn add_now(&self, row: OutboxRow) -> oneshot::Receiver<Result<(), Arc<str>>>;

    /// Replaces what is known of the deliveries of a row, within a second.
    fn update(&self, id: u64, progress: &DeliveryProgress);

    /// Replaces it at once. The receiver is notified when it is on disk or cannot be written.
    fn update_now(&self, id: u64, progress: &DeliveryProgress) -> oneshot::Receiver<Result<(), Arc<str>>>;

    /// Removes a row within a second.
    fn remove(&self, id: u64);
}

/// An event in the outbox.
#[derive(Debug, Clone)]
pub(crate) struct OutboxRow {
    pub(crate) id: u64,
    pub(crate) workspace: WorkspaceId,
    /// The event as it was accepted.
    pub(crate) event: Arc<Event>,
    /// Its record.
    pub(crate) text: Arc<str>,
    pub(crate) progress: DeliveryProgress,
}

impl OutboxRow {
    /// Reads a row.
    pub(crate) fn decode(
        id: u64,
        workspace: WorkspaceId,
        text: Arc<str>,
        progress: &str,
    ) -> Result<Self, RecordError> {
        let event = Arc::new(event_record::decode(&text)?);
        Ok(Self { id, workspace, event, text, progress: DeliveryProgress::decode(progress)? })
    }
}

impl PartialEq for OutboxRow {
    fn eq(&self, other: &Self) -> bool {
        let parts = |row: &Self| (row.id, row.workspace.clone(), Arc::clone(&row.text), row.progress.clone());
        parts(self) == parts(other)
    }
}

impl Eq for OutboxRow {}

/// All rows that a store has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredOutbox {
    /// In the order in which the events were accepted.
    pub(crate) rows: Vec<OutboxRow>,
    /// The highest id of all rows that ever were.
    pub(crate) last_id: u64,
}

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutboxChange {
    /// It is added.
    Add { workspace: WorkspaceId, event: Arc<str>, progress: String },
    /// What is known of its deliveries is replaced.
    Update(String),
    /// It is removed.
    Remove,
}

impl OutboxChange {
    pub(crate) fn added(row: OutboxRow) -> Self {
        Self::Add { workspace: row.workspace, event: row.text, progress: row.progress.encode() }
    }
}

/// Who waits for a row to be written.
type RowWaiter = (u64, oneshot::Sender<Result<(), Arc<str>>>);

/// The changes that are not on disk yet, at most one for each row.
#[derive(Debug, Default)]
pub(super) struct OutboxChanges {
    pub(super) changes: BTreeMap<u64, OutboxChange>,
    waiters: Vec<RowWaiter>,
}

impl OutboxChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.waiters.is_empty()
    }

    /// Whether somebody waits for a row.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Adds a row.
    pub(super) fn add(&mut self, row: OutboxRow) {
        self.changes.insert(row.id, OutboxChange::added(row));
    }

    /// Replaces what is known of the deliveries of a row.
    pub(super) fn update(&mut self, id: u64, progress: String) {
        match self.changes.get_mut(&id) {
            Some(OutboxChange::Add { progress: former, .. } | OutboxChange::Update(former)) => {
                *former = progress;
            }
            Some(OutboxChange::Remove) => {}
            None => drop(self.changes.insert(id, OutboxChange::Update(progress))),
        }
    }

    /// Removes a row. One that is not on disk yet never will be.
    pub(super) fn remove(&mut self, id: u64) {
        match self.changes.get(&id) {
            Some(OutboxChange::Add { .. }) => drop(self.changes.remove(&id)),
            _ => drop(self.changes.insert(id, OutboxChange::Remove)),
        }
    }

    /// A receiver that is notified when a row is on disk.
    pub(super) fn wait_for(&mut self, id: u64) -> oneshot::Receiver<Result<(), Arc<str>>> {
        let (sender, receiver) = oneshot::channel();
        self.waiters.push((id, sender));
        receiver
    }

    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Takes back changes that could not be written. Changes that came meanwhile are newer.
    pub(super) fn put_back(&mut self, failed: Self) {
        for (id, change) in failed.changes {
            match (self.changes.remove(&id), change) {
                (None, change) => drop(self.changes.insert(id, change)),
                (Some(OutboxChange::Remove), OutboxChange::Add { .. }) => {}
                (Some(OutboxChange::Update(progress)), OutboxChange::Add { workspace, event, .. }) => {
                    self.changes.insert(id, OutboxChange::Add { workspace, event, progress });
                }
                (Some(newer), _) => drop(self.changes.insert(id, newer)),
            }
        }
    }

    /// Says what became of a batch to all who wait for it. Rows that somebody waits for are not added later: their
    /// events are refused.
    pub(super) fn settle(&mut self, error: Option<&str>) -> Vec<SettledRow> {
        let result = error.map_or(Ok(()), |error| Err(Arc::from(error)));
        let waiters = std::mem::take(&mut self.waiters);
        for (id, _) in waiters.iter().filter(|_| result.is_err()) {
            if matches!(self.changes.get(id), Some(OutboxChange::Add { .. })) {
                self.changes.remove(id);
            }
        }
        waiters.into_iter().map(|(_, sender)| SettledRow { sender, result: result.clone() }).collect()
    }
}

/// Somebody who is to hear what became of a row.
#[derive(Debug)]
pub(super) struct SettledRow {
    sender: oneshot::Sender<Result<(), Arc<str>>>,
    result: Result<(), Arc<str>>,
}

impl SettledRow {
    pub(super) fn notify(self) {
        // A send fails only if whoever waited has given up.
        self.sender.send(self.result).ok();
    }
}

/// The table of the outbox in the database.
#[cfg(feature = "store")]
pub(super) mod table {
    use std::path::Path;

    use rusqlite::{Connection, Transaction};

    use super::{super::error::StoreError, OutboxChange, OutboxChanges, OutboxRow, StoredOutbox};
    use crate::model::WorkspaceId;

    /// What makes the table.
    pub(in crate::store) const TABLE: &str = "
        CREATE TABLE outbox (
            id INTEGER PRIMARY KEY AUTOINCREMENT, workspace TEXT NOT NULL, event TEXT NOT NULL, progress TEXT NOT NULL
        ) STRICT;
    ";

    const ADD: &str =
        "INSERT OR REPLACE INTO outbox (id, workspace, event, progress) VALUES (?1, ?2, ?3, ?4)";
    const UPDATE: &str = "UPDATE outbox SET progress = ?2 WHERE id = ?1";
    const REMOVE: &str = "DELETE FROM outbox WHERE id = ?1";

    /// Makes changes of rows.
    pub(in crate::store) fn write(
        transaction: &Transaction<'_>,
        changes: &OutboxChanges,
    ) -> rusqlite::Result<()> {
        if changes.changes.is_empty() {
            return Ok(());
        }
        let mut add = transaction.prepare(ADD)?;
        let mut update = transaction.prepare(UPDATE)?;
        let mut remove = transaction.prepare(REMOVE)?;
        for (id, change) in &changes.changes {
            let id = i64::try_from(*id).unwrap_or(i64::MAX);
            match change {
                OutboxChange::Add { workspace, event, progress } => {
                    add.execute((id, workspace.as_str(), &**event, progress))?
                }
                OutboxChange::Update(progress) => update.execute((id, progress))?,
                OutboxChange::Remove => remove.execute([id])?,
            };
        }
        Ok(())
    }

    /// Reads all rows.
    pub(in crate::store) fn read(connection: &Connection, path: &Path) -> Result<StoredOutbox, StoreError> {
        let of_database = |error: rusqlite::Error| StoreError::of_database(path, &error);
        let mut stored = StoredOutbox::default();
        let all = "SELECT id, workspace, event, progress FROM outbox ORDER BY id";
        let mut statement = connection.prepare(all).map_err(of_database)?;
        let mut rows = statement.query(()).map_err(of_database)?;
        while let Some(row) = rows.next().map_err(of_database)? {
            let text = |column: usize| row.get::<_, String>(column).map_err(of_database);
            let id: i64 = row.get(0).map_err(of_database)?;
            let damaged = |why: &dyn std::fmt::Display| {
                StoreError::damaged(path, format!("the event {id} in the outbox: {why}"))
            };
            let (workspace, event, progress) = (text(1)?, text(2)?, text(3)?);
            let row_id = u64::try_from(id).map_err(|error| damaged(&error))?;
            let workspace = WorkspaceId::new(workspace).map_err(|_| damaged(&"no workspace"))?;
            let row = OutboxRow::decode(row_id, workspace, event.into(), &progress);
            stored.rows.push(row.map_err(|error| damaged(&error))?);
        }
        let last = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox'";
        let last: i64 = connection.query_row(last, (), |row| row.get(0)).map_err(of_database)?;
        stored.last_id = u64::try_from(last).unwrap_or_default();
        Ok(stored)
    }
}
