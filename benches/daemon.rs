//! What the daemon costs beside the least it could cost, and how it bears many sessions: the real program in a process
//! of its own. Rows can be named: `cargo bench --bench daemon -- start socket lines relay watched traces sessions flat`. Refuses to judge: it fails
//! nothing but an answer that is wrong.
#![allow(clippy::cast_precision_loss, reason = "figures are printed with three digits")]
#![allow(clippy::disallowed_methods, reason = "the program is started as its users start it")]

mod load;
mod server;

use std::{
    fmt::Write as _,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use load::{Connection, Times, request};
use server::{Flush, Server, Telling, echo, echo_lines};
use tokio::time::Instant;

/// Pairs of rounds; the median of the pairs' ratios is what counts.
const PAIRS: usize = 21;

/// The connections of a round.
const AT_ONCE: usize = 32;

/// The requests of each connection in a round.
const EACH: usize = 500;

/// The sessions of a large host, each of which sends an event in every second.
const SESSIONS: usize = 10_000;

/// For how many seconds they do.
const SECONDS: usize = 20;

/// The connections of that host.
const POOL: usize = 64;

/// The events at full speed.
const MANY: usize = 2_000_000;

/// The workspaces of a large host, and the starts with them.
const WORKSPACES: usize = 1_000;
const STARTS: usize = 7;

/// The hook files of each.
const HOOKS: &str = ".openharness/hooks";
const HOOK_FILES: [&str; 2] = ["guard.yaml", "other.yaml"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    if let [first, socket] = words.as_slice() {
        match first.as_str() {
            "echo" => return runtime.block_on(echo(Path::new(socket))),
            "echo-lines" => return runtime.block_on(echo_lines(Path::new(socket), Flush::EachLine)),
            "echo-batches" => return runtime.block_on(echo_lines(Path::new(socket), Flush::WhenNoneWaits)),
            _ => {}
        }
    }
    let wanted = |row: &str| words.is_empty() || words.iter().any(|word| word == row);
    println!("| what | hookyard | floor | ratio | goal |");
    println!("| --- | --- | --- | --- | --- |");
    if wanted("start") {
        runtime.block_on(start());
    }
    if wanted("socket") {
        runtime.block_on(socket());
    }
    if wanted("lines") {
        runtime.block_on(lines());
    }
    if wanted("relay") {
        relay();
    }
    if wanted("watched") {
        runtime.block_on(watched("no hook wants it", OTHER, "≥ 0.90"));
        runtime.block_on(watched("one worker hook", &worker(), "–"));
        runtime.block_on(scrape());
    }
    if wanted("traces") {
        runtime.block_on(idle_traces());
    }
    if wanted("sessions") {
        runtime.block_on(many_sessions());
    }
    if wanted("flat") {
        runtime.block_on(flat());
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn event(session: usize, call: usize) -> String {
    format!(
        r#"{{"event":"before_tool_dispatch","session_id":"session-{session}","run_id":"run-{session}","tool_call_id":"call-{call}","tool_name":"Bash","tool_input":{{"command":"npm run lint -- --fix src/checkout src/cart","description":"Lint what was changed"}}}}"#
    )
}

const OTHER: &str = "name: other\nevents: [before_tool_dispatch]\nmatcher: ^Write$\nhandler: { type: command, command: 'true' }\n";

/// How long a daemon takes to be ready the first time, when it keeps the rules of each workspace as well: beside reading the
/// hook files and writing a copy of each workspace's, one after the other.
async fn start() {
    let (mut ours, mut floors, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let directory = tempfile::tempdir().expect("a directory");
        let roots = make_workspaces(directory.path());
        let begun = Instant::now();
        for root in &roots {
            let files = HOOK_FILES.map(|name| fs::read(root.join(HOOKS).join(name)).expect("a file"));
            fs::write(root.with_extension("copy"), files.concat()).expect("a file");
        }
        let floor = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let server = Server::of(directory).await;
        let mut connection = Connection::open(&server.socket()).await;
        // An event waits until all are loaded.
        let last = format!(r#"{{"workspace_id":"w{:04}","#, WORKSPACES - 1);
        connection.call(&request("/v1/events", &event(1, 1).replacen('{', &last, 1))).await;
        let ready = begun.elapsed().as_secs_f64();
        ratios.push(ready / floor);
        ours.push(ready);
        floors.push(floor);
    }
    let (ours, floor, ratio) = (median(ours), median(floors) * 1e3, median(ratios));
    println!(
        "| first start with {WORKSPACES} workspaces of two hooks | ready after {ours:.2} s | read and written: {floor:.0} ms | {ratio:.1} | ≤ 1 s |"
    );
}

/// Makes workspaces and the settings that name them. Returns their directories.
fn make_workspaces(directory: &Path) -> Vec<PathBuf> {
    let mut settings = "trust: off\nlimits: { workspaces: 10000 }\nworkspaces:\n".to_owned();
    let roots = (0..WORKSPACES).map(|number| directory.join(format!("workspace-{number:04}")));
    let roots: Vec<_> = roots.collect();
    for (number, root) in roots.iter().enumerate() {
        fs::create_dir_all(root.join(HOOKS)).expect("a directory");
        for name in HOOK_FILES {
            let hook = OTHER.replace("name: other", &format!("name: {}", name.trim_end_matches(".yaml")));
            fs::write(root.join(HOOKS).join(name), hook).expect("a file");
        }
        writeln!(settings, "  w{number:04}: {{ root: {} }}", root.display()).expect("memory");
    }
    fs::create_dir(directory.join("home")).expect("a directory");
    fs::write(directory.join("settings.yaml"), settings).expect("a file");
    roots
}

/// A round trip with no hook to run. Each pair of rounds has servers of its own: how fast one is for its whole life
/// also depends on how its threads came to lie.
async fn socket() {
    let request = |_| request("/v1/events", &event(1, 1));
    let round = async |server: &Server| -> Times {
        load::one_after_the_other(&server.socket(), AT_ONCE, EACH, request).await
    };
    let (mut ours, mut floors, mut ratios, mut tails) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let (hookyard, echo) = (Server::hookyard(OTHER).await, Server::echo().await);
        round(&hookyard).await;
        round(&echo).await;
        let (a, b) = if pair % 2 == 0 {
            let a = round(&hookyard).await;
            (a, round(&echo).await)
        } else {
            let b = round(&echo).await;
            (round(&hookyard).await, b)
        };
        ratios.push(a.rate / b.rate);
        tails.push(a.at(0.99).as_secs_f64() / b.at(0.99).as_secs_f64());
        ours.push(a.rate);
        floors.push(b.rate);
    }
    let (ours, floor, ratio, tail) = (median(ours), median(floors), median(ratios), median(tails));
    println!(
        "| socket round trip, no hook wants it, {AT_ONCE} at once | {ours:.0}/s | axum echo: {floor:.0}/s | {ratio:.2} | ≥ 0.85 |"
    );
    println!("| the same, p99 | – | axum echo | {tail:.2} | ≤ 5 |");
}

/// Events as lines on one connection, with no hook to run: beside bare echoes of lines, and beside the door of HTTP.
async fn lines() {
    let event = event(1, 1).replace(r#","tool_call_id":"call-1""#, "");
    let line = |bytes: &mut Vec<u8>, id: usize| {
        writeln!(bytes, r#"{{"id":{id},"event":{event}}}"#).expect("memory");
    };
    let request = |_| request("/v1/events", &event);
    let number = AT_ONCE * EACH * 4;
    let round = async |socket: &Path| load::lines(socket, AT_ONCE, number, line).await;
    let mut rates: [Vec<f64>; 4] = Default::default();
    let mut ratios: [Vec<f64>; 3] = Default::default();
    for pair in 0..PAIRS {
        let hookyard = Server::hookyard(OTHER).await;
        let (each, batches) = (Server::echo_of("echo-lines").await, Server::echo_of("echo-batches").await);
        let mut measured = [0.0; 4];
        // The first turn warms them up, and the order changes from pair to pair.
        for turn in 0..2 {
            for place in 0..4 {
                let who = if pair % 2 == 0 { place } else { 3 - place };
                measured[who] = match who {
                    0 => {
                        let (rate, last) = round(&hookyard.lines()).await;
                        assert!(last.contains(r#""verdict":"proceed""#), "{last}");
                        rate
                    }
                    1 => round(&each.socket()).await.0,
                    2 => round(&batches.socket()).await.0,
                    _ => load::one_after_the_other(&hookyard.socket(), AT_ONCE, EACH, request).await.rate,
                };
            }
            if turn == 1 {
                for (rates, rate) in rates.iter_mut().zip(measured) {
                    rates.push(rate);
                }
                for (ratios, floor) in ratios.iter_mut().zip(&measured[1..]) {
                    ratios.push(measured[0] / floor);
                }
            }
        }
    }
    let [ours, each, batches, http] = rates.map(median);
    let [of_each, of_batches, of_http] = ratios.map(median);
    println!(
        "| lines, no hook wants it, {AT_ONCE} in flight on one connection | {ours:.0}/s | echo of lines: {each:.0}/s | {of_each:.2} | ≥ 0.70 |"
    );
    println!("| the same | – | echo of lines, answers sent together: {batches:.0}/s | {of_batches:.2} | – |");
    println!("| the same | – | over HTTP, {AT_ONCE} connections: {http:.0}/s | {of_http:.2} | ≥ 4 |");
}

/// A whole process that passes an event on, beside the least program there is.
fn relay() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(Server::hookyard(OTHER));
    let file = server.directory.path().join("event.json");
    fs::write(&file, event(1, 1)).expect("a file");
    let run = |program: &str, arguments: &[&str]| {
        let begun = Instant::now();
        let mut command = Command::new(program);
        command.args(arguments).env("HOOKYARD_LISTEN_SOCKET", server.socket());
        command.stdin(fs::File::open(&file).expect("a file")).stdout(Stdio::null());
        assert!(command.status().expect("a process").success());
        begun.elapsed().as_secs_f64() * 1e3
    };
    let relay = ["relay", "--dialect", "canonical"];
    let (mut ours, mut whole, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..500 {
        ours.push(run(env!("CARGO_BIN_EXE_hookyard-relay"), &relay));
        floor.push(run("/bin/true", &[]));
        whole.push(run(env!("CARGO_BIN_EXE_hookyard"), &relay));
    }
    let floor = median(floor);
    for (what, mut times, goal) in
        [("`hookyard-relay`", ours, "≤ 1.8 ×"), ("`hookyard relay`, the whole program", whole, "–")]
    {
        times.sort_by(f64::total_cmp);
        let (p50, p95) = (times[250], times[475]);
        println!(
            "| {what} | p50 {p50:.2} ms, p95 {p95:.2} ms | /bin/true: {floor:.2} ms | {:.2} × | {goal} |",
            p50 / floor
        );
    }
}

/// What it costs to be watched: the log of a service and an audit, beside neither.
async fn watched(what: &str, hook: &str, goal: &str) {
    let [ours, floor, ratio] = beside_mistakes(Telling::Everything, hook).await;
    println!("| log and audit on, {what} | {ours:.0}/s | both off: {floor:.0}/s | {ratio:.2} | {goal} |");
}

/// What traces cost that are set up and sample no event, beside no endpoint.
async fn idle_traces() {
    let [ours, floor, ratio] = beside_mistakes(Telling::IdleTraces, OTHER).await;
    println!(
        "| traces set up, no event sampled | {ours:.0}/s | no endpoint: {floor:.0}/s | {ratio:.2} | ≥ 0.95 |"
    );
}

/// The rates of a daemon that tells something and of one that tells its mistakes only, and the median of their ratios.
async fn beside_mistakes(telling: Telling, hook: &str) -> [f64; 3] {
    let hooks = [hook.to_owned()];
    let quiet = Server::telling(Telling::Mistakes, &hooks).await;
    let watched = Server::telling(telling, &hooks).await;
    let (mut ours, mut floors, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // A call that is repeated would run no hook, so these have no id.
    let request = |run| request("/v1/events", &event(run, 1).replace(r#""tool_call_id":"#, r#""call":"#));
    let round = async |server: &Server| -> f64 {
        load::one_after_the_other(&server.socket(), AT_ONCE, EACH, request).await.rate
    };
    for pair in 0..=PAIRS {
        let (a, b) = if pair % 2 == 0 {
            let a = round(&watched).await;
            (a, round(&quiet).await)
        } else {
            let b = round(&quiet).await;
            (round(&watched).await, b)
        };
        // The first pair warms them up.
        if pair > 0 {
            ratios.push(a / b);
            ours.push(a);
            floors.push(b);
        }
    }
    [median(ours), median(floors), median(ratios)]
}

/// How long a scrape of two hundred hooks takes.
async fn scrape() {
    let hook = |number: usize| OTHER.replace("name: other", &format!("name: other-{number}"));
    let server = Server::telling(Telling::Mistakes, &(0..200).map(hook).collect::<Vec<_>>()).await;
    let mut connection = Connection::open(&server.socket()).await;
    connection.call(&request("/v1/events", &event(0, 0))).await;
    let (mut times, mut series) = (Vec::new(), 0);
    for _ in 0..20 {
        // A rendering is good for a moment, and one that is not new would cost nothing.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let begun = Instant::now();
        let text = connection.call(b"GET /metrics HTTP/1.1\r\nhost: hookyard\r\n\r\n").await;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        series = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#').count();
    }
    println!("| scrape of 200 hooks, {series} series | p50 {:.1} ms | – | – | ≤ 20 ms |", median(times));
}

fn worker() -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    format!(
        "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  \
         command: exec node {root}/config/workers/examples/guard.mjs\n  mode: worker\n"
    )
}

/// Many sessions at once, each with an event in every second and one hook that is a worker.
async fn many_sessions() {
    let server = Server::hookyard(&worker()).await;
    warm(&server).await;
    let second = Duration::from_secs(1);
    let open = async |from: usize, rounds: std::ops::Range<usize>| {
        let first = rounds.start;
        let one =
            move |session: usize, round: usize| request("/v1/events", &event(from + session, first + round));
        load::sessions(&server.socket(), POOL, SESSIONS, rounds.len(), second, one).await
    };
    open(0, 0..1).await;
    let before = server.resident();
    open(SESSIONS, 0..1).await;
    let each = (server.resident() - before) / SESSIONS as f64 / 1024.0;
    let times = open(0, 1..SECONDS).await;
    let (p50, p99) = (times.at(0.5).as_secs_f64() * 1e3, times.at(0.99).as_secs_f64() * 1e3);
    println!(
        "| {SESSIONS} sessions, an event a second, one worker hook | {:.0}/s, p50 {p50:.1} ms, p99 {p99:.1} ms | – | – | p99 ≤ 5 ms |",
        times.rate
    );
    println!("| memory of such an open run | {each:.1} KiB | – | – | ≤ 12 KiB |");
}

/// The worker has started and the allocator has its pages.
async fn warm(server: &Server) {
    let mut connection = Connection::open(&server.socket()).await;
    for call in 0..2_000 {
        connection.call(&request("/v1/events", &event(0, call + 1_000_000))).await;
    }
}

/// Memory over many events at full speed.
async fn flat() {
    let server = Server::hookyard(&worker()).await;
    warm(&server).await;
    let event = |session: usize, round: usize| request("/v1/events", &event(session, round));
    let rounds = MANY / SESSIONS;
    let mut memory = Vec::new();
    let begun = Instant::now();
    let mut p99 = Duration::ZERO;
    for part in 0..10 {
        let offset = part * rounds / 10;
        let nothing = Duration::from_nanos(1);
        let times =
            load::sessions(&server.socket(), POOL, SESSIONS, rounds / 10, nothing, move |session, round| {
                event(session, offset + round)
            })
            .await;
        p99 = p99.max(times.at(0.99));
        memory.push(server.resident() / f64::from(1 << 20));
    }
    let rate = MANY as f64 / begun.elapsed().as_secs_f64();
    let memory: Vec<String> = memory.iter().map(|mib| format!("{mib:.0}")).collect();
    println!(
        "| {MANY} events at full speed | {rate:.0}/s; memory after each tenth: {} MiB | – | – | flat, ≤ 200 MiB |",
        memory.join(", ")
    );
}
