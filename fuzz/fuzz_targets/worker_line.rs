//! Lines that a worker prints. Their reader is not public, so its source is compiled here, with what it uses.
#![no_main]

#[path = "../../src/handler/command/worker/protocol.rs"]
mod protocol;

mod dialect {
    pub(crate) fn shorten(text: &str, most: usize) -> String {
        text.chars().take(most).collect()
    }
}

mod model {
    pub(crate) use hookyard::model::TraceParent;
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| protocol::check_worker_line(bytes));
