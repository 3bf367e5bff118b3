//! The processor and the memory of the machine, as `sysinfo` has them.

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// The model of the processor, if it is known.
pub(crate) fn processor_model() -> Option<String> {
    let what = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let system = System::new_with_specifics(what).ok()?;
    let model = system.cpus().first().map(|cpu| cpu.brand().trim().to_owned());
    model.filter(|model| !model.is_empty())
}

/// The memory of the machine, in bytes.
pub(crate) fn memory_bytes() -> Option<u64> {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let total = System::new_with_specifics(what).ok()?.total_memory();
    (total > 0).then_some(total)
}
