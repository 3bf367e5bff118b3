//! Puts hookyard beside what else runs hooks, in turns, in one run, on one machine. Rows can be named: `cargo bench
//! --bench peers -- gemini runtime loops claude`. Refuses to judge: it fails nothing but a hook that fails.
//!
//! - `gemini`: command hooks of Gemini CLI's own hook system, in a Node process with the package as its users have it, beside
//!   those of hookyard in a Rust host. Each side makes the event, writes it to the hook as JSON, takes what the hook says and
//!   merges it into an answer. Gemini CLI starts hooks with `bash -c`, and so does hookyard where they are in its file.
//! - `runtime`: five hooks that are functions and have no opinion. In Gemini CLI all run at once, as is its default; in
//!   hookyard one after the other, each with the changes of those before it. Node has one thread here, hookyard two.
//! - `loops`: the least that starts a process for each hook, with no plan, timeout or answer to merge.
//! - `claude`: tool calls of Claude Code against a model of this bench, from one answer of the model to the next request. All ways
//!   run the same shell script once for each call; hookyard starts it anew, as Claude Code does.
//!
//! A ratio says how many times as fast hookyard is. Packages come from npm once, without their scripts, into the cache of this user. What is missing is a row that says so.
#![allow(clippy::cast_precision_loss, reason = "figures are printed with three digits")]
#![allow(clippy::disallowed_methods, reason = "programs are started as their users start them")]

mod claude;
#[path = "../common/mod.rs"]
mod common;
mod daemon;
mod host;
mod model;
mod programs;
mod runners;

/// Pairs of rounds; the median of the pairs' ratios is what counts.
const PAIRS: usize = 11;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let runtime = common::runtime();
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |rows: &str| named.is_empty() || named.iter().any(|name| name == rows);
    println!("{}\n", versions(wanted("gemini") || wanted("runtime"), wanted("claude")));
    println!("| what | hookyard | beside | ratio | goal |");
    println!("| --- | --- | --- | --- | --- |");
    runtime.block_on(async {
        tokio::select! {
            () = rows(&wanted) => {}
            () = told_to_end() => eprintln!("ended by a signal"),
        }
    });
}

async fn rows(wanted: &impl Fn(&str) -> bool) {
    if wanted("gemini") {
        runners::gemini().await;
    }
    if wanted("runtime") {
        runners::runtime().await;
    }
    if wanted("loops") {
        runners::loops().await;
    }
    if wanted("claude") {
        claude::print().await;
    }
}

/// Returns at a signal that ends programs, so that what was started is ended first.
async fn told_to_end() {
    let signal = |kind| tokio::signal::unix::signal(kind).expect("a handler");
    let mut terminate = signal(tokio::signal::unix::SignalKind::terminate());
    let mut interrupt = signal(tokio::signal::unix::SignalKind::interrupt());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// What is compared, in one line.
fn versions(with_gemini: bool, with_claude: bool) -> String {
    let mut found = vec![("Node", programs::node()), ("Python", programs::python())];
    if with_gemini {
        found.push(("Gemini CLI", programs::gemini()));
    }
    if with_claude {
        found.push(("Claude Code", programs::claude()));
    }
    let mut parts = vec![format!("hookyard {}", env!("CARGO_PKG_VERSION"))];
    for (name, found) in found {
        parts.push(found.map_or_else(|_| format!("no {name}"), |found| format!("{name} {}", found.version)));
    }
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{}; {} {}, {cores} cores", parts.join(", "), std::env::consts::OS, std::env::consts::ARCH)
}

/// A row of what cannot be measured here, which nobody overlooks.
fn unmeasured(what: &str, missing: &str) {
    println!("| {what} | **not measured**: {missing} | – | – | – |");
    eprintln!("not measured: {what}: {missing}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The medians of pairs of rounds.
struct Compared {
    ours: f64,
    peers: f64,
    ratio: f64,
}

/// Measures two ways in turns with what both use.
async fn alternate<T>(
    shared: &mut T,
    ours: impl AsyncFn(&mut T) -> f64,
    peer: impl AsyncFn(&mut T) -> f64,
) -> Compared {
    ours(shared).await;
    peer(shared).await;
    let (mut ours_of, mut peers_of, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        // The order within a pair alternates too: whoever comes second finds the caches warm.
        let (a, b) = if pair % 2 == 0 {
            let a = ours(shared).await;
            (a, peer(shared).await)
        } else {
            let b = peer(shared).await;
            (ours(shared).await, b)
        };
        ours_of.push(a);
        peers_of.push(b);
        ratios.push(a / b);
    }
    Compared { ours: median(ours_of), peers: median(peers_of), ratio: median(ratios) }
}
