//! The processor and the memory of the machine, as `/proc` has them.

use std::fs;

/// The model of the processor, if it is known.
pub(crate) fn processor_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    // As the architectures that have one call it.
    let names = ["model name", "cpu model", "Hardware", "cpu"];
    let value =
        |name: &str| text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name);
    names.into_iter().find_map(value).map(|(_, model)| model.trim().to_owned())
}

/// The memory of the machine, in bytes.
pub(crate) fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
