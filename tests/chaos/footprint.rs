//! What a daemon takes: memory, descriptors, threads, processes and files.

use std::{fs, path::Path};

use crate::support::daemon::Daemon;

/// How much memory may be taken more: that of the runs that are remembered, and what an allocator keeps.
const MORE_MEMORY_KIB: u64 = 64 << 10;

/// How many descriptors and threads may be taken more, such as those of a worker that is being replaced.
const MORE_DESCRIPTORS: usize = 12;

/// How many threads may be taken more: those for blocking work end after a while without any.
const MORE_THREADS: usize = 48;

/// The most files in the directory of the data.
const MOST_DATA_FILES: usize = 12;

/// What a daemon takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Footprint {
    pid: u32,
    memory_kib: u64,
    descriptors: usize,
    threads: usize,
    processes: usize,
    data_files: usize,
}

fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

impl Footprint {
    pub(crate) fn of(daemon: &Daemon) -> Self {
        let pid = daemon.pid();
        let process = Path::new("/proc").join(pid.to_string());
        let status = fs::read_to_string(process.join("status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Self {
            pid,
            memory_kib: memory.trim().trim_end_matches(" kB").parse().unwrap(),
            descriptors: entries(&process.join("fd")),
            threads: entries(&process.join("task")),
            processes: daemon.processes().len(),
            data_files: entries(&daemon.path().join("data")),
        }
    }

    /// Whether the other one has as many descriptors and processes.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.descriptors, self.processes) == (other.descriptors, other.processes)
    }

    /// What has grown since.
    pub(crate) fn growth_since(&self, before: &Self) -> Vec<String> {
        assert_eq!(self.pid, before.pid, "one process is measured");
        println!("at first {before:?}\nat last  {self:?}");
        let mut grown = Vec::new();
        let mut check = |what: &str, is_fine: bool| {
            if !is_fine {
                grown.push(format!("{what} grew: {before:?}, then {self:?}"));
            }
        };
        check("memory", self.memory_kib <= before.memory_kib + MORE_MEMORY_KIB);
        check("descriptors", self.descriptors <= before.descriptors + MORE_DESCRIPTORS);
        check("threads", self.threads <= before.threads + MORE_THREADS);
        check("processes", self.processes <= before.processes + 1);
        check("files", self.data_files <= MOST_DATA_FILES);
        grown
    }
}
