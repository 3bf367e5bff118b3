//! Whether a load met a limit of the process or the machine, such as that of open files. What could not be read then says
//! nothing about the files: it is neither a mistake in them nor their removal.

use std::{cell::Cell, io};

use rustix::io::Errno;

thread_local! {
    /// Whether the load on this thread met such a limit. Errors become texts at the places where files are opened, far
    /// below whoever decides about the load.
    static MET: Cell<bool> = const { Cell::new(false) };
}

/// Loads something. Returns also whether that met a limit.
pub(crate) fn noting_shortage<T>(load: impl FnOnce() -> T) -> (T, bool) {
    MET.set(false);
    let loaded = load();
    (loaded, was_met())
}

/// Whether the load on this thread has met a limit.
pub(super) fn was_met() -> bool {
    MET.get()
}

/// Takes note of an error, if a limit is its cause.
pub(super) fn note(error: &io::Error) {
    let limits = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    if Errno::from_io_error(error).is_some_and(|errno| limits.contains(&errno)) {
        MET.set(true);
    }
}
