//! Hooks that are closures of the test.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hookyard::{
    NativeHook,
    model::{EventKind, Reply},
};
use tokio::time::sleep;

/// A hook that counts how often it ran and then waits for a while.
pub(crate) fn counting(name: &str, kind: EventKind, wait: Duration) -> (NativeHook, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let hook = NativeHook::task(name, [kind], move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            sleep(wait).await;
            Ok(Reply::proceed())
        }
    });
    (hook, count)
}
