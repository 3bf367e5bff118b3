//! Looks at the store of a directory as a start would, and leaves all as it is.

use std::path::Path;

use rusqlite::TransactionBehavior;

use super::{database, error::StoreError, location};

/// What a daemon would find that keeps its state in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreCheck {
    Usable,
    /// The file was there before.
    Gone,
}

/// Whether a daemon could keep its state in a directory. Nothing there is made or changed.
pub(crate) fn check(directory: &Path) -> Result<StoreCheck, StoreError> {
    if location::has_file(directory) {
        return check_file(directory).map(|()| StoreCheck::Usable);
    }
    location::check_absent(directory)?;
    let is_gone = location::has_trace(&location::file_in(directory));
    Ok(if is_gone { StoreCheck::Gone } else { StoreCheck::Usable })
}

/// Reads a database as a start would. What a start would upgrade is upgraded in a transaction that is rolled back.
fn check_file(directory: &Path) -> Result<(), StoreError> {
    let path = location::prepare(directory)?;
    let of_database = |error: rusqlite::Error| StoreError::of_database(&path, &error);
    let has_log = location::has_log(&path);
    let _log = location::AbsentLog::of(&path);
    let mut connection = database::connect(&path).map_err(of_database)?;
    let found = database::known_version(&connection, &path)?;
    database::check_length(&connection, &path)?;
    // Fails if the file cannot be written.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(of_database)?;
    database::check_closed(&transaction, &path, has_log)?;
    location::check_log(&transaction, &path, has_log)?;
    if found < database::VERSION {
        database::upgrade(&transaction, found).map_err(of_database)?;
    }
    database::read_all(&transaction, &path).map(drop)
}
