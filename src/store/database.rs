//! The file of the store: an SQLite database with a write-ahead log, which one process opens at a time.
//!
//! Every transaction is synced. What the log has after the last whole transaction is ignored, so a cut in it gives an
//! earlier state and never a mixture. The file itself says whether it was closed, and which log is its own: one that was not
//! closed needs its log, and no other log is read.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, config::DbConfig};

use super::{
    ENDED_REMEMBERED, StoredRuns,
    error::StoreError,
    location::{self, FileIdentity},
    outbox::table as outbox_table,
    pending::{ChangeBatch, RunChange},
    record::{RecordError, StoredRun},
};
use crate::{
    model::{RunId, RunKey, WorkspaceId},
    telemetry::StoreFailure,
};

/// Marks a database as hookyard's: the letters `hkyd`.
const APPLICATION: i64 = 0x686b_7964;

/// What makes each version of the format out of the one before, the first out of nothing.
const STEPS: [&str; 3] = [RUN_TABLES, outbox_table::TABLE, MARK_TABLE];

/// The version of the format: of the tables, and of the records in them.
pub(super) const VERSION: i64 = 3;

/// The size to which the write-ahead log is cut after it has grown, in bytes.
const KEPT_LOG: i64 = 16 << 20;

const RUN_TABLES: &str = "
    CREATE TABLE runs (
        workspace TEXT NOT NULL, run TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (workspace, run)
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE ended (number INTEGER PRIMARY KEY AUTOINCREMENT, workspace TEXT NOT NULL, run TEXT NOT NULL) STRICT;
";

const SAVE: &str = "INSERT INTO runs (workspace, run, state) VALUES (?1, ?2, ?3) \
    ON CONFLICT (workspace, run) DO UPDATE SET state = excluded.state";
const FORGET: &str = "DELETE FROM runs WHERE workspace = ?1 AND run = ?2";
const END: &str = "INSERT INTO ended (workspace, run) VALUES (?1, ?2)";
const TRIM: &str = "DELETE FROM ended WHERE number <= (SELECT max(number) FROM ended) - ?1";

/// The mark of a database: one row, or none before the first. Earlier versions had the first column only.
const MARK_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS in_use (is_open INTEGER NOT NULL) STRICT;
    ALTER TABLE in_use ADD COLUMN id INTEGER;
    ALTER TABLE in_use ADD COLUMN former_id INTEGER;
    ALTER TABLE in_use ADD COLUMN log INTEGER;
";

/// Marks a database that is open, with an id of this opening and that of the one before.
const MARK_OPEN: &str = "BEGIN IMMEDIATE;
    INSERT INTO in_use (is_open, id, former_id) VALUES (1, random(), (SELECT max(id) FROM in_use));
    DELETE FROM in_use WHERE rowid < (SELECT max(rowid) FROM in_use);
    COMMIT";

/// Notes the log in the mark, which then goes from the log into the file at once. The log is never without a whole
/// transaction from then on, until the database is closed.
const NOTE_LOG: &str = "UPDATE in_use SET log = ?1";
const STORE_MARK: &str = "PRAGMA wal_checkpoint(FULL)";
const MARK_CLOSED: &str = "UPDATE in_use SET is_open = 0";

/// How a database is opened.
const OPEN_FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE
    .union(OpenFlags::SQLITE_OPEN_NO_MUTEX)
    .union(OpenFlags::SQLITE_OPEN_NOFOLLOW)
    .union(OpenFlags::SQLITE_OPEN_EXRESCODE);

/// Why changes were not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// The path names another file or none.
    #[error("its file was moved away or replaced")]
    Replaced,
    /// The database says so.
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

impl WriteError {
    /// Whether there is no space on the disk.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Database(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull))
    }
}

/// The open database.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    path: PathBuf,
    identity: Option<FileIdentity>,
    /// Whether the file says that it is open.
    is_marked: bool,
    /// Whether it was made in the place of one that was gone.
    pub(super) is_former_gone: bool,
}

impl Database {
    /// Opens the database in a directory, made if it is missing, and reads all of it.
    pub(super) fn open(directory: &Path) -> Result<(Self, StoredRuns), StoreError> {
        let (mut database, stored) = Self::read(directory)?;
        match database.mark() {
            // A daemon whose disk is full is better than none. The mark is made once something can be written.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                tracing::warn!(%error, "the state of runs can be read and not written");
            }
            marked => marked.map_err(|error| StoreError::of_database(&database.path, &error))?,
        }
        Ok((database, stored))
    }

    /// Marks the database as open.
    fn mark(&mut self) -> rusqlite::Result<()> {
        let marked = self.connection.execute_batch(MARK_OPEN);
        if marked.is_err() && !self.connection.is_autocommit() {
            // What it returns says nothing more.
            self.connection.execute_batch("ROLLBACK").ok();
        }
        marked?;
        self.connection.execute(NOTE_LOG, [location::log_id(&self.path)])?;
        self.connection.execute_batch(STORE_MARK)?;
        keep_log_when_closed(&self.connection, false)?;
        self.is_marked = true;
        Ok(())
    }

    /// Opens the database and reads it, without a mark that says so.
    fn read(directory: &Path) -> Result<(Self, StoredRuns), StoreError> {
        let path = location::prepare(directory)?;
        let is_new = location::make_file(&path, create)?;
        let is_former_gone = is_new && location::has_trace(&path);
        if is_former_gone {
            StoreFailure::Gone.emit();
            let path = path.display();
            tracing::warn!(%path, "the state of runs is gone: its file was there before, and halts in it are forgotten");
        } else if is_new {
            let path = path.display();
            tracing::info!(%path, "the state of runs begins anew: nothing is known of former ones");
        }
        let has_log = location::has_log(&path);
        let of_database = |error: rusqlite::Error| StoreError::of_database(&path, &error);
        let mut connection = connect(&path).map_err(of_database)?;
        let found = known_version(&connection, &path)?;
        if found < VERSION {
            let transaction = connection.transaction().map_err(of_database)?;
            upgrade(&transaction, found).and_then(|()| transaction.commit()).map_err(of_database)?;
        }
        check_length(&connection, &path)?;
        use_log(&connection).map_err(of_database)?;
        check_closed(&connection, &path, has_log)?;
        location::check_log(&connection, &path, has_log)?;
        let identity = FileIdentity::at(&path);
        let stored = read_all(&connection, &path)?;
        location::leave_trace(&path);
        Ok((Self { connection, path, identity, is_marked: false, is_former_gone }, stored))
    }

    /// Writes changes in one transaction and syncs it.
    pub(super) fn write(&mut self, batch: &ChangeBatch) -> Result<Written, WriteError> {
        if FileIdentity::at(&self.path) != self.identity {
            return Err(WriteError::Replaced);
        }
        if !self.is_marked {
            self.mark()?;
        }
        let before = self.connection.total_changes();
        let transaction = self.connection.transaction()?;
        write_runs(&transaction, batch)?;
        write_ended(&transaction, &batch.ended)?;
        outbox_table::write(&transaction, &batch.outbox)?;
        transaction.commit()?;
        let has_changed = self.connection.total_changes() != before;
        Ok(if has_changed { Written::ToDisk } else { Written::Nothing })
    }
}

/// What a batch of changes did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    ToDisk,
    /// There was nothing to change, so nothing is known of the disk.
    Nothing,
}

/// Makes a database out of an empty file.
fn create(path: &Path) -> Result<(), StoreError> {
    let of_database = |error: rusqlite::Error| StoreError::of_database(path, &error);
    let mut connection = Connection::open_with_flags(path, OPEN_FLAGS).map_err(of_database)?;
    // Nobody sees it before it is whole.
    connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(())).map_err(of_database)?;
    let transaction = connection.transaction().map_err(of_database)?;
    upgrade(&transaction, 0).and_then(|()| transaction.commit()).map_err(of_database)
}

/// Opens a database for this process alone. What is refused is left as it is, with its log.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OPEN_FLAGS)?;
    connection.busy_timeout(Duration::ZERO)?;
    keep_log_when_closed(&connection, true)?;
    restrict(&connection)?;
    Ok(connection)
}

/// Returns an error if the file ends in the middle of a page.
pub(super) fn check_length(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let page = connection.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0));
    let page = page.map_err(|error| StoreError::of_database(path, &error))?;
    location::check_length(path, u64::try_from(page).unwrap_or_default())
}

/// Returns an error if the database needs its log, and that is gone.
pub(super) fn check_closed(connection: &Connection, path: &Path, has_log: bool) -> Result<(), StoreError> {
    let is_open = is_marked_open(connection).map_err(|error| StoreError::of_database(path, &error))?;
    if is_open && !has_log { Err(StoreError::NotClosed { path: path.to_owned() }) } else { Ok(()) }
}

/// A database that is closed needs no log.
impl Drop for Database {
    fn drop(&mut self) {
        if self.connection.execute_batch(MARK_CLOSED).is_err() {
            // Only a connection that is closed already refuses.
            keep_log_when_closed(&self.connection, true).ok();
        }
    }
}

/// Sets whether closing the database leaves its log there, and in it what is not in the file yet.
fn keep_log_when_closed(connection: &Connection, keeps: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps).map(drop)
}

/// Whether the database was not closed by whoever opened it last.
fn is_marked_open(connection: &Connection) -> rusqlite::Result<bool> {
    connection.table_exists(None, "in_use").and_then(|exists| {
        let marks = "SELECT EXISTS (SELECT 1 FROM in_use WHERE is_open)";
        Ok(exists && connection.query_row(marks, (), |row| row.get(0))?)
    })
}

/// Nothing that a file contains runs, and the locks of the first transaction are kept until the database is closed.
fn restrict(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))
}

/// Writes a log ahead, syncs every transaction, and takes the database for this process alone.
fn use_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update_and_check(None, "journal_size_limit", KEPT_LOG, |_| Ok(()))?;
    connection.execute_batch("BEGIN IMMEDIATE; COMMIT")
}

/// The version of a database that can be used or upgraded.
pub(super) fn known_version(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let of_database = |error: rusqlite::Error| StoreError::of_database(path, &error);
    let number = |connection: &Connection, pragma: &str| {
        connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).map_err(of_database)
    };
    let application = number(connection, "application_id")?;
    let version = number(connection, "user_version")?;
    match (application, version) {
        (APPLICATION, found) if found > VERSION => {
            Err(StoreError::Newer { path: path.to_owned(), found, known: VERSION })
        }
        (APPLICATION, found) if found > 0 => Ok(found),
        _ => Err(StoreError::unusable(path, "it is no file of hookyard's; move it away")),
    }
}

/// Makes the tables that a database of this version lacks.
pub(super) fn upgrade(transaction: &Transaction<'_>, version: i64) -> rusqlite::Result<()> {
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or_default()) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)
}

pub(super) fn read_all(connection: &Connection, path: &Path) -> Result<StoredRuns, StoreError> {
    let of_database = |error: rusqlite::Error| StoreError::of_database(path, &error);
    let damaged = |workspace: &str, run: &str, why: String| {
        StoreError::damaged(path, format!("the record of the run {run:?} in {workspace:?}: {why}"))
    };
    let mut stored = StoredRuns::default();
    let mut last: Option<WorkspaceId> = None;
    let mut states = StateReader::default();
    let mut statement = connection.prepare("SELECT workspace, run, state FROM runs").map_err(of_database)?;
    let mut rows = statement.query(()).map_err(of_database)?;
    while let Some(row) = rows.next().map_err(of_database)? {
        let text = |column: usize| {
            let value = row.get_ref(column)?;
            value.as_str().map_err(rusqlite::Error::from)
        };
        let (workspace, run) = (text(0).map_err(of_database)?, text(1).map_err(of_database)?);
        let state = states.read(text(2).map_err(of_database)?);
        let state = state.map_err(|error| damaged(workspace, run, error.to_string()))?;
        let key =
            run_key(&mut last, workspace, run).ok_or_else(|| damaged(workspace, run, "no id".into()))?;
        stored.runs.push((key, state));
    }
    let ended = "SELECT workspace, run FROM ended ORDER BY number";
    let mut statement = connection.prepare(ended).map_err(of_database)?;
    let mut rows = statement.query(()).map_err(of_database)?;
    while let Some(row) = rows.next().map_err(of_database)? {
        let workspace: String = row.get(0).map_err(of_database)?;
        let run: String = row.get(1).map_err(of_database)?;
        let key = run_key(&mut last, &workspace, &run);
        stored.ended.push(key.ok_or_else(|| damaged(&workspace, &run, "no id".into()))?);
    }
    stored.outbox = outbox_table::read(connection, path)?;
    Ok(stored)
}

/// Reads the states of runs. Those that follow each other and are alike, as halts of one hook often are, share their texts.
#[derive(Default)]
struct StateReader {
    last: Option<(String, StoredRun)>,
}

impl StateReader {
    fn read(&mut self, text: &str) -> Result<StoredRun, RecordError> {
        if let Some((_, run)) = self.last.as_ref().filter(|(last, _)| last == text) {
            return Ok(run.clone());
        }
        let run = StoredRun::decode(text)?;
        self.last = Some((text.to_owned(), run.clone()));
        Ok(run)
    }
}

/// The key of a run. Runs of one workspace, which follow each other, share its id.
fn run_key(last: &mut Option<WorkspaceId>, workspace: &str, run: &str) -> Option<RunKey> {
    if last.as_ref().is_none_or(|last| last.as_str() != workspace) {
        *last = Some(WorkspaceId::new(workspace).ok()?);
    }
    Some(RunKey { workspace: last.clone()?, run: RunId::new(run).ok()? })
}

fn write_runs(transaction: &Transaction<'_>, batch: &ChangeBatch) -> rusqlite::Result<()> {
    let mut save = transaction.prepare(SAVE)?;
    let mut forget = transaction.prepare(FORGET)?;
    for (key, change) in batch.urgent.iter().chain(&batch.later) {
        let (workspace, run) = (key.workspace.as_str(), key.run.as_str());
        match change {
            RunChange::Save(state) => save.execute((workspace, run, state.encode()))?,
            RunChange::Forget => forget.execute((workspace, run))?,
        };
    }
    Ok(())
}

fn write_ended(transaction: &Transaction<'_>, ended: &[RunKey]) -> rusqlite::Result<()> {
    if ended.is_empty() {
        return Ok(());
    }
    let mut end = transaction.prepare(END)?;
    for key in ended {
        end.execute((key.workspace.as_str(), key.run.as_str()))?;
    }
    transaction.execute(TRIM, [i64::try_from(ENDED_REMEMBERED).unwrap_or(i64::MAX)])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        fs,
        os::unix::fs::{PermissionsExt, symlink},
        sync::Arc,
    };

    use tempfile::TempDir;

    use super::*;
    use crate::{
        model::{Event, EventKind, HookName, SessionId},
        store::{DeliveryProgress, OutboxRow, StoredHalt, encode_event, pending::PendingChanges},
    };

    type Runs = BTreeMap<RunKey, StoredRun>;

    fn key(run: &str) -> RunKey {
        RunKey { workspace: WorkspaceId::new("shop").unwrap(), run: RunId::new(run).unwrap() }
    }

    fn halted(reason: &str) -> StoredRun {
        let halt = StoredHalt { reason: Some(reason.into()), by: HookName::new("guard").ok() };
        StoredRun { halt: Some(halt), ..StoredRun::default() }
    }

    fn save(run: &str, state: StoredRun) -> ChangeBatch {
        ChangeBatch { urgent: vec![(key(run), RunChange::Save(state))], ..ChangeBatch::default() }
    }

    /// A directory that only this user may write.
    fn directory() -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        directory
    }

    fn file(directory: &TempDir) -> PathBuf {
        directory.path().join("runs.db")
    }

    fn log_file(directory: &TempDir) -> PathBuf {
        directory.path().join("runs.db-wal")
    }

    fn open(directory: &TempDir) -> Result<StoredRuns, StoreError> {
        Database::open(directory.path()).map(|(_, stored)| stored)
    }

    fn refusal(directory: &TempDir) -> String {
        open(directory).expect_err("it is refused").to_string()
    }

    /// A database with small pages, so that its files are short, and the states that it went through.
    fn history(directory: &TempDir) -> (Database, Vec<Runs>) {
        let path = location::prepare(directory.path()).unwrap();
        location::make_file(&path, create).unwrap();
        Connection::open(&path).unwrap().execute_batch("PRAGMA page_size = 512; VACUUM").unwrap();
        let (mut database, stored) = Database::open(directory.path()).unwrap();
        assert_eq!(stored, StoredRuns::default());
        let mut states = vec![Runs::new()];
        let changes = [
            save("a", halted("spent")),
            save("b", StoredRun { stops_blocked: 3, ..StoredRun::default() }),
            save("b", halted("late")),
            ChangeBatch {
                later: vec![(key("a"), RunChange::Forget)],
                ended: vec![key("a")],
                ..ChangeBatch::default()
            },
            save("c", halted("last")),
        ];
        for batch in changes {
            let mut runs = states.last().unwrap().clone();
            for (key, change) in batch.urgent.iter().chain(&batch.later) {
                match change {
                    RunChange::Save(run) => drop(runs.insert(key.clone(), run.clone())),
                    RunChange::Forget => drop(runs.remove(key)),
                }
            }
            states.push(runs);
            database.write(&batch).unwrap();
        }
        (database, states)
    }

    /// A directory with some files, as a process leaves it that is killed.
    fn directory_with(files: &[(&str, &[u8])]) -> TempDir {
        let directory = directory();
        for (name, bytes) in files {
            let path = directory.path().join(name);
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        directory
    }

    /// Opens a copy of some files. Returns which of the states it has.
    fn state_of(files: &[(&str, &[u8])], states: &[Runs]) -> Result<usize, StoreError> {
        let copy = directory_with(files);
        let (database, stored) = Database::read(copy.path())?;
        // Closing thousands of copies need not sync any.
        database.connection.pragma_update(None, "synchronous", "OFF").unwrap();
        let runs: Runs = stored.runs.into_iter().collect();
        let number = states.iter().position(|state| *state == runs);
        Ok(number.unwrap_or_else(|| panic!("no state of the history: {runs:?}")))
    }

    fn outbox_row(id: u64) -> OutboxRow {
        let session = SessionId::new("s").unwrap();
        let event = Event::new(EventKind::RunCompleted, session, RunId::new(format!("r{id}")).unwrap());
        OutboxRow {
            id,
            workspace: WorkspaceId::new("shop").unwrap(),
            text: encode_event(&event).into(),
            event: Arc::new(event),
            progress: DeliveryProgress::first(),
        }
    }

    fn write_outbox(database: &mut Database, change: impl FnOnce(&mut PendingChanges)) {
        let mut pending = PendingChanges::default();
        change(&mut pending);
        database.write(&pending.take(1)).unwrap();
    }

    #[test]
    fn an_outbox_that_is_cut_anywhere_has_an_earlier_state() {
        let live = directory();
        let (mut database, _) = history(&live);
        let failed =
            DeliveryProgress { tries: 2, error: Some("refused".into()), ..DeliveryProgress::first() };
        write_outbox(&mut database, |pending| pending.outbox.add(outbox_row(1)));
        write_outbox(&mut database, |pending| pending.outbox.add(outbox_row(2)));
        write_outbox(&mut database, |pending| pending.outbox.update(1, failed.encode()));
        write_outbox(&mut database, |pending| pending.outbox.remove(2));
        let states = [
            Vec::new(),
            vec![outbox_row(1)],
            vec![outbox_row(1), outbox_row(2)],
            vec![OutboxRow { progress: failed.clone(), ..outbox_row(1) }, outbox_row(2)],
            vec![OutboxRow { progress: failed, ..outbox_row(1) }],
        ];
        let (whole, log) = (fs::read(file(&live)).unwrap(), fs::read(log_file(&live)).unwrap());
        drop(database);
        let mut reached = 0;
        for cut in (0..log.len()).step_by(7).chain([log.len()]) {
            let copy = directory_with(&[("runs.db", &whole), ("runs.db-wal", &log[..cut])]);
            let (database, stored) = match Database::read(copy.path()) {
                Ok(read) => read,
                // The log has lost its head.
                Err(StoreError::NotClosed { .. }) if reached == 0 => continue,
                Err(error) => panic!("{cut}: {error}"),
            };
            database.connection.pragma_update(None, "synchronous", "OFF").unwrap();
            let rows = stored.outbox.rows;
            let state = states.iter().position(|state| *state == rows).expect("a state of the history");
            assert!(state >= reached, "{cut}: state {state} after state {reached}");
            reached = state;
        }
        assert_eq!(reached, states.len() - 1);
    }

    /// The names and contents of all files in the directory.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    fn contents(directory: &TempDir) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// A database without tables.
    fn new_connection(directory: &TempDir) -> Connection {
        fs::write(file(directory), "").unwrap();
        fs::set_permissions(file(directory), fs::Permissions::from_mode(0o600)).unwrap();
        Connection::open(file(directory)).unwrap()
    }

    /// A database of the first version, which has no outbox.
    fn of_first_version() -> TempDir {
        let old = directory();
        let connection = new_connection(&old);
        connection.execute_batch(RUN_TABLES).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
        old
    }

    #[cfg(all(feature = "cli", feature = "daemon"))]
    #[test]
    fn a_check_changes_nothing_and_finds_what_a_start_finds() {
        use crate::store::check;

        let live = directory();
        let (database, _) = history(&live);
        let in_use = check(live.path());
        assert!(matches!(in_use, Err(StoreError::InUse { .. })), "{in_use:?}");
        let (whole, log) = (fs::read(file(&live)).unwrap(), fs::read(log_file(&live)).unwrap());
        drop(database);
        let usable = [
            ("closed", live),
            ("killed", directory_with(&[("runs.db", &whole), ("runs.db-wal", &log)])),
            ("of the first version", of_first_version()),
        ];
        for (what, directory) in &usable {
            let before = contents(directory);
            let found = check(directory.path());
            assert!(found.is_ok(), "{what}: {found:?}");
            assert!(contents(directory) == before, "{what}: {:?}", contents(directory).keys());
            assert!(open(directory).is_ok(), "{what}");
        }
        let cut = directory_with(&[("runs.db", &whole)]);
        let emptied = directory_with(&[("runs.db", b"")]);
        let lost = directory_with(&[("runs.db-wal", &log)]);
        let damaged = &usable[0].1;
        Connection::open(file(damaged)).unwrap().execute_batch("UPDATE runs SET state = '{'").unwrap();
        let newer = of_first_version();
        Connection::open(file(&newer)).unwrap().pragma_update(None, "user_version", 99).unwrap();
        for directory in [&cut, &emptied, &lost, damaged, &newer] {
            let before = contents(directory);
            let found = check(directory.path()).expect_err("it is refused").to_string();
            assert!(contents(directory) == before, "{found}: {:?}", contents(directory).keys());
            assert_eq!(found, refusal(directory));
        }
    }

    #[test]
    fn a_database_of_the_first_version_gets_an_outbox() {
        let old = of_first_version();
        let (mut database, stored) = Database::open(old.path()).unwrap();
        assert_eq!(stored, StoredRuns::default());
        write_outbox(&mut database, |pending| pending.outbox.add(outbox_row(7)));
        drop(database);
        let stored = open(&old).unwrap().outbox;
        assert_eq!((stored.rows, stored.last_id), (vec![outbox_row(7)], 7));
    }

    #[test]
    fn a_log_that_is_cut_anywhere_gives_an_earlier_state() {
        let live = directory();
        let (database, states) = history(&live);
        let (whole, log) = (fs::read(file(&live)).unwrap(), fs::read(log_file(&live)).unwrap());
        drop(database);
        let mut reached = 0;
        // Its head, and one page with what precedes it, are always there.
        let head = 32 + 24 + 512;
        for cut in 0..head {
            let error = state_of(&[("runs.db", &whole), ("runs.db-wal", &log[..cut])], &states);
            assert!(matches!(error, Err(StoreError::NotClosed { .. })), "{cut}: {error:?}");
        }
        for cut in head..=log.len() {
            let state = state_of(&[("runs.db", &whole), ("runs.db-wal", &log[..cut])], &states).unwrap();
            assert!(state >= reached, "{cut}: state {state} after state {reached}");
            reached = state;
        }
        assert_eq!(reached, states.len() - 1);

        // A daemon that is killed again and again loses nothing, and finds its log each time.
        let mut left = directory_with(&[("runs.db", &whole), ("runs.db-wal", &log)]);
        for _ in 0..5 {
            let (_database, stored) = Database::open(left.path()).unwrap();
            assert_eq!(stored.runs.into_iter().collect::<Runs>(), states[states.len() - 1]);
            let (whole, log) = (fs::read(file(&left)).unwrap(), fs::read(log_file(&left)).unwrap());
            left = directory_with(&[("runs.db", &whole), ("runs.db-wal", &log)]);
        }
    }

    #[test]
    fn a_log_that_is_missing_or_lost_its_head_is_noticed_and_left_there() {
        let live = directory();
        let (database, states) = history(&live);
        let whole = fs::read(file(&live)).unwrap();
        let log = fs::read(log_file(&live)).unwrap();
        drop(database);
        let flipped = |at: usize| {
            let mut log = log.clone();
            log[at] ^= 1 << 6;
            log
        };
        let damaged = [
            Vec::new(),
            flipped(0),
            flipped(24),
            flipped(32 + 8),
            log[32..].to_vec(),
            log[1000..].to_vec(),
            vec![0; log.len()],
        ];
        for bytes in damaged {
            let copy = directory_with(&[("runs.db", &whole), ("runs.db-wal", &bytes)]);
            let text = refusal(&copy);
            assert!(text.contains("was not closed, and its log"), "{text}");
            assert_eq!(fs::read(file(&copy)).unwrap(), whole);
            assert_eq!(fs::read(log_file(&copy)).unwrap(), bytes);
            // What the message says to do, after which the log is not needed.
            Connection::open(file(&copy)).unwrap().execute_batch("DELETE FROM in_use").unwrap();
            assert_eq!(open(&copy).unwrap(), StoredRuns::default());
        }
        let error = state_of(&[("runs.db", &whole)], &states);
        assert!(matches!(error, Err(StoreError::NotClosed { .. })), "{error:?}");
    }

    #[test]
    fn a_log_of_another_file_is_refused_and_both_are_left_there() {
        let live = directory();
        let now = || (fs::read(file(&live)).unwrap(), fs::read(log_file(&live)).unwrap_or_default());
        drop(history(&live));
        let (older, _) = now();
        let (mut database, _) = Database::open(live.path()).unwrap();
        database.write(&save("d", halted("spent"))).unwrap();
        drop(database);
        let (closed, _) = now();
        let (mut database, _) = Database::open(live.path()).unwrap();
        let (open_file, first_log) = now();
        database.write(&save("e", halted("spent"))).unwrap();
        let (_, log) = now();
        drop(database);
        let other = directory();
        let (database, _) = history(&other);
        let (other_open, other_log) = (fs::read(file(&other)).unwrap(), fs::read(log_file(&other)).unwrap());
        drop(database);
        let other_closed = fs::read(file(&other)).unwrap();
        for (what, bytes, log) in [
            ("an older file", &older, &log),
            ("an older file beside a log with nothing but a mark", &older, &first_log),
            ("the file before it was opened, beside a log that has begun anew", &closed, &log),
            ("the file of another store", &other_closed, &log),
            ("the file of another store that was not closed", &other_open, &log),
            ("the log of another store", &open_file, &other_log),
            ("the log of another store beside a closed file", &closed, &other_log),
        ] {
            let copy = directory_with(&[("runs.db", bytes), ("runs.db-wal", log)]);
            let before = contents(&copy);
            let text = refusal(&copy);
            assert!(text.contains("runs.db-wal is not the log of"), "{what}: {text}");
            assert!(contents(&copy) == before, "{what}");
            // What the message says to do, where the file was closed.
            if [&older, &closed, &other_closed].contains(&bytes) {
                fs::remove_file(log_file(&copy)).unwrap();
                assert!(open(&copy).is_ok(), "{what}");
            }
        }
    }

    #[test]
    fn whoever_is_killed_while_the_file_is_opened_or_closed_leaves_its_log_to_the_next() {
        let live = directory();
        let (database, states) = history(&live);
        drop(database);
        for _ in 0..2 {
            let closed = fs::read(file(&live)).unwrap();
            let (database, _) = Database::open(live.path()).unwrap();
            let (marked, log) = (fs::read(file(&live)).unwrap(), fs::read(log_file(&live)).unwrap());
            // The log, and then the file, as far as they were written.
            for cut in 0..=log.len() {
                let left = [("runs.db", &*closed), ("runs.db-wal", &log[..cut])];
                assert_eq!(state_of(&left, &states).unwrap(), states.len() - 1, "{cut}");
            }
            for cut in (0..=marked.len()).step_by(512) {
                let half = [&marked[..cut], closed.get(cut..).unwrap_or_default()].concat();
                let left = [("runs.db", &*half), ("runs.db-wal", &log)];
                assert_eq!(state_of(&left, &states).unwrap(), states.len() - 1, "{cut}");
            }
            drop(database);
            let closed = fs::read(file(&live)).unwrap();
            let left = [("runs.db", &*closed), ("runs.db-wal", &log)];
            assert_eq!(state_of(&left, &states).unwrap(), states.len() - 1);
        }
    }

    #[test]
    fn a_log_that_begins_anew_is_whole_at_each_moment() {
        let live = directory();
        let (mut database, mut states) = history(&live);
        let log_now = || fs::read(log_file(&live)).unwrap();
        for round in 0..3 {
            database.connection.query_row("PRAGMA wal_checkpoint(FULL)", (), |_| Ok(())).unwrap();
            let whole = fs::read(file(&live)).unwrap();
            let before = log_now();
            let mut runs = states.last().unwrap().clone();
            runs.insert(key("d"), halted(&round.to_string()));
            states.push(runs);
            database.write(&save("d", halted(&round.to_string()))).unwrap();
            let after = log_now();
            let written = (0..after.len()).rfind(|at| before.get(*at) != Some(&after[*at])).unwrap() + 1;
            assert_ne!(before[..32], after[..32], "the log began anew");
            // The head is written at once, then that of the first page, then the rest.
            for cut in [32].into_iter().chain((56..=written).step_by(37)) {
                let log = [&after[..cut], before.get(cut..).unwrap_or_default()].concat();
                let state = state_of(&[("runs.db", &whole), ("runs.db-wal", &log)], &states).unwrap();
                assert!(state >= states.len() - 2, "{cut}: {state}");
            }
        }
    }

    #[test]
    fn a_file_that_is_cut_anywhere_gives_an_error() {
        let live = directory();
        let (database, states) = history(&live);
        drop(database);
        assert!(!log_file(&live).exists(), "closing it leaves one file");
        let whole = fs::read(file(&live)).unwrap();
        assert_eq!(state_of(&[("runs.db", &whole)], &states).unwrap(), states.len() - 1);
        for cut in 0..whole.len() {
            let error = state_of(&[("runs.db", &whole[..cut])], &states).expect_err("a cut file");
            let text = error.to_string();
            assert!(text.contains("damaged") || text.contains("no file of hookyard's"), "{cut}: {text}");
        }
    }

    #[test]
    fn what_is_no_store_is_refused_and_left_alone() {
        let other = directory();
        fs::write(file(&other), "what somebody else wrote, longer than the head of a database".repeat(4))
            .unwrap();
        fs::set_permissions(file(&other), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(refusal(&other).contains("damaged"));
        assert!(fs::read_to_string(file(&other)).unwrap().starts_with("what somebody"));

        let foreign = directory();
        new_connection(&foreign).execute_batch("CREATE TABLE t (a)").unwrap();
        assert!(refusal(&foreign).contains("it is no file of hookyard's"));

        let newer = directory();
        drop(history(&newer));
        Connection::open(file(&newer)).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
        assert!(
            refusal(&newer).contains(&format!("has the format 99, and this hookyard knows {VERSION}")),
            "{}",
            refusal(&newer)
        );

        let damaged = directory();
        drop(history(&damaged));
        let update = r#"UPDATE runs SET state = '{"v":1,"halt' WHERE run = 'c'"#;
        Connection::open(file(&damaged)).unwrap().execute_batch(update).unwrap();
        let text = refusal(&damaged);
        assert!(text.contains(r#"the record of the run "c" in "shop": it is damaged"#), "{text}");
    }

    #[test]
    fn every_transaction_is_synced_however_the_database_was_opened() {
        let (new, killed) = (directory(), directory());
        let (database, _) = history(&killed);
        let (whole, log) = (fs::read(file(&killed)).unwrap(), fs::read(log_file(&killed)).unwrap());
        drop(database);
        let left = directory_with(&[("runs.db", &whole), ("runs.db-wal", &log)]);
        let cases =
            [("new", new), ("closed", killed), ("killed", left), ("of version 1", of_first_version())];
        for (what, directory) in cases {
            let (mut database, _) = Database::open(directory.path()).unwrap();
            database.write(&save("a", halted("spent"))).unwrap();
            let level: i64 =
                database.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
            let journal: String =
                database.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
            // 2 is FULL: the log is synced before a transaction counts as committed.
            assert_eq!((level, &*journal), (2, "wal"), "{what}");
        }
    }

    #[test]
    fn one_opens_it_at_a_time() {
        let shared = directory();
        let (first, _) = Database::open(shared.path()).unwrap();
        assert!(matches!(open(&shared), Err(StoreError::InUse { .. })));
        drop(first);
        assert_eq!(open(&shared).unwrap(), StoredRuns::default());
    }

    #[test]
    fn what_others_can_reach_is_refused() {
        let writable = directory();
        fs::set_permissions(&writable, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(refusal(&writable).contains("others may write to it"));

        let readable = directory();
        drop(open(&readable));
        fs::set_permissions(file(&readable), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refusal(&readable).contains("others may read or write it"));

        let (linked, elsewhere) = (directory(), directory());
        drop(open(&elsewhere));
        symlink(file(&elsewhere), file(&linked)).unwrap();
        assert!(refusal(&linked).contains("it is a symbolic link"));

        let no_directory = directory();
        fs::write(no_directory.path().join("file"), "").unwrap();
        let error = Database::open(&no_directory.path().join("file/below")).unwrap_err();
        assert!(error.to_string().contains("not a directory"), "{error}");
        assert!(error.to_string().contains("which forgets the halts"), "{error}");
    }

    #[test]
    fn a_file_that_is_replaced_is_not_written_unnoticed() {
        let moved = directory();
        let (mut database, _) = Database::open(moved.path()).unwrap();
        database.write(&save("a", halted("spent"))).unwrap();
        fs::rename(file(&moved), moved.path().join("old.db")).unwrap();
        let error = database.write(&save("b", halted("spent"))).unwrap_err();
        assert_eq!(error.to_string(), "its file was moved away or replaced");
    }

    #[test]
    fn a_full_disk_is_an_error_and_no_end() {
        let small = directory();
        let (mut database, _) = Database::open(small.path()).unwrap();
        let pages: i64 =
            database.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        let limit = |database: &Database, pages: i64| {
            let connection = &database.connection;
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        };
        limit(&database, pages);
        let large = halted(&"spent ".repeat(10_000));
        assert!(database.write(&save("a", large.clone())).unwrap_err().is_full());
        // What changes nothing can be done on a full disk, and proves nothing.
        let mut pending = PendingChanges::default();
        pending.outbox.remove(7);
        assert_eq!(database.write(&pending.take(1)).unwrap(), Written::Nothing);
        limit(&database, pages + 1000);
        assert_eq!(database.write(&save("a", large.clone())).unwrap(), Written::ToDisk);
        drop(database);
        assert_eq!(open(&small).unwrap().runs, [(key("a"), large)]);
    }

    #[test]
    fn a_disk_that_is_full_at_the_start_keeps_the_mark_for_later() {
        let full = directory();
        let (mut database, _) = Database::read(full.path()).unwrap();
        let limit = |database: &Database, pages: i64| {
            let connection = &database.connection;
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        };
        // A mark so long that it needs another page.
        let filler = format!("ALTER TABLE in_use ADD COLUMN filler TEXT DEFAULT '{}'", "x".repeat(10_000));
        database.connection.execute_batch(&filler).unwrap();
        limit(&database, 1);
        let error = WriteError::from(database.mark().unwrap_err());
        assert!(error.is_full() && !database.is_marked, "{error}");
        assert!(database.write(&save("a", halted("spent"))).unwrap_err().is_full());
        limit(&database, 1000);
        database.write(&save("a", halted("spent"))).unwrap();
        assert!(database.is_marked);
        let whole = fs::read(file(&full)).unwrap();
        let left = directory_with(&[("runs.db", &whole)]);
        assert!(refusal(&left).contains("was not closed"));
        drop(database);
        assert_eq!(open(&full).unwrap().runs, [(key("a"), halted("spent"))]);
    }

    #[test]
    fn the_last_runs_that_ended_are_kept_in_their_order() {
        let directory = directory();
        let (mut database, _) = Database::open(directory.path()).unwrap();
        for start in [0, 3000] {
            let ended = (start..start + 3000).map(|number| key(&number.to_string())).collect();
            database.write(&ChangeBatch { ended, ..ChangeBatch::default() }).unwrap();
        }
        drop(database);
        let ended = open(&directory).unwrap().ended;
        assert_eq!((ended.len(), &ended[0], &ended[4095]), (4096, &key("1904"), &key("5999")));
    }
}
