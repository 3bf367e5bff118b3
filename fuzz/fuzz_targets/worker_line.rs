//! Lines that a worker prints. Their reader is not public, so its source is compiled here, with what it uses.
#![no_main]

/// Only the reader, at the place that its visibilities name.
#[expect(dead_code, reason = "of the protocol, only the reader is searched")]
#[path = "../../src/handler"]
mod handler {
    pub mod command {
        pub mod worker {
            mod protocol;

            pub(crate) fn check(line: &[u8]) {
                protocol::check_worker_line(line);
            }
        }
    }
}

mod dialect {
    pub(crate) fn shorten(text: &str, most: usize) -> String {
        text.chars().take(most).collect()
    }
}

mod model {
    pub(crate) use hookyard::model::{Event, EventKind, RunId, SessionId};
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| handler::command::worker::check(bytes));
