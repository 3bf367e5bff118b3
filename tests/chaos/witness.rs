//! Which hooks ran for which events, as the hooks themselves say through a named pipe, which no disk can be too full for.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead, BufReader, Write},
    path::Path,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// The line after which nothing comes.
const END: &str = "end";

/// How often a hook ran for each event, by the id of the event.
pub(crate) type Runs = HashMap<String, u32>;

/// Reads what hooks say.
pub(crate) struct Witness {
    /// Its other end; the directory may be gone before the last line is read.
    pipe: File,
    runs: Arc<Mutex<Runs>>,
    reading: JoinHandle<()>,
}

impl Witness {
    /// Makes the pipe, and reads it.
    pub(crate) fn start(path: &Path) -> Self {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // Open in both directions, so that it neither waits for a first hook nor ends with the last one.
        let pipe = File::options().read(true).write(true).open(path).unwrap();
        let other_end = pipe.try_clone().unwrap();
        let runs = Arc::<Mutex<Runs>>::default();
        let of_reader = Arc::clone(&runs);
        Self { pipe: other_end, runs, reading: thread::spawn(move || read(pipe, &of_reader)) }
    }

    /// Everything that hooks have said.
    pub(crate) fn finish(mut self) -> Runs {
        writeln!(self.pipe, "{END}").unwrap();
        self.reading.join().expect("a reader");
        std::mem::take(&mut *self.runs.lock().unwrap())
    }

    /// Whether a hook has run for an event.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.runs.lock().unwrap().contains_key(id)
    }
}

fn read(pipe: File, runs: &Mutex<Runs>) {
    for line in BufReader::new(pipe).lines() {
        let line = line.unwrap();
        if line == END {
            break;
        }
        *runs.lock().unwrap().entry(line).or_default() += 1;
    }
}
