//! The machine that a report is of.

use std::num::NonZeroUsize;

use rustix::system::uname;
use serde::{Deserialize, Serialize};

use crate::platform;

/// The machine that a report is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Machine {
    /// The model of its processor.
    pub(super) cpu: Option<String>,
    /// How many threads may run at once.
    pub(super) cores: usize,
    pub(super) memory_bytes: Option<u64>,
    /// The system and its version.
    pub(super) kernel: String,
}

impl Machine {
    /// The machine that this runs on.
    pub(super) fn this() -> Self {
        let system = uname();
        let [name, release, kind] =
            [system.sysname(), system.release(), system.machine()].map(|text| text.to_string_lossy());
        Self {
            cpu: platform::processor_model(),
            cores: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            memory_bytes: platform::memory_bytes(),
            kernel: format!("{name} {release} {kind}"),
        }
    }

    /// The same in words.
    pub(super) fn describe(&self) -> String {
        let cpu = self.cpu.as_deref().unwrap_or("unknown processor");
        let cores = if self.cores == 1 { "1 core".to_owned() } else { format!("{} cores", self.cores) };
        let memory = self.memory_bytes.map(|bytes| format!(", {:.1} GiB", gibibytes(bytes)));
        format!("{cpu}, {cores}{}, {}", memory.unwrap_or_default(), self.kernel)
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with one digit")]
fn gibibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
