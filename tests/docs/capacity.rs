//! The commands of `docs/capacity.md` are run, for a shorter time, and its scenario is one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

use crate::support::{daemon::DaemonSetup, trust::without_trust};

const PAGE: &str = include_str!("../../docs/capacity.md");

const RULE: &str =
    "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: exec true\n";

fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("\n```{language}\n");
    let rests: Vec<&str> = PAGE.split(fence.as_str()).skip(1).collect();
    rests.into_iter().map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// The times of the page, short enough for a test.
const SHORTER: [(&str, &str); 4] = [
    ("--duration 30s", "--warm-up 0s --duration 400ms"),
    ("--for 10m", "--p50 1s --for 1s --step 200ms --rate 50 --warm-up 0s"),
    (" --p99 10ms", ""),
    ("--rounds 20", "--rounds 2 --warm-up 0s --duration 400ms"),
];

/// Runs lines of the page in a directory.
#[allow(clippy::disallowed_methods, reason = "a test runs what the page shows")]
fn shell(lines: &str, directory: &Path, socket: &Path) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_hookyard")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut lines = lines.to_owned();
    for (long, short) in SHORTER {
        lines = lines.replace(long, short);
    }
    // A load that is too high for a busy machine says so with an exit code of its own.
    let lines = lines.replace("hookyard bench", "bench");
    let function = "bench() { hookyard bench \"$@\" || test $? = 4; }\n";
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", &format!("{function}{lines}")]).current_dir(directory).env("PATH", path);
    command.env("HOOKYARD_LISTEN_SOCKET", socket).env("HOOKYARD_TEST_HOME", directory.join("../home"));
    command.output().unwrap()
}

#[test]
fn the_commands_of_the_page_measure_each_term() {
    let setup = DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", RULE)
        .file("candidate/.openharness/hooks/guard.yaml", RULE)
        .settings("workspaces: { shop: { root: $DIR/shop } }\nwatch: false");
    let open_runs =
        include_str!("../../config/bench/open-runs.yaml").replace("duration: 30s", "duration: 500ms");
    let daemon = setup.file("shop/config/bench/open-runs.yaml", &open_runs).serve();
    let shop = daemon.path().join("shop");
    let shown = blocks("sh");
    assert_eq!(shown.len(), 4, "{shown:?}");
    for lines in &shown {
        let output = shell(lines, &shop, daemon.socket());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{lines}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    }
    let read = |name: &str| -> Value { serde_json::from_slice(&fs::read(shop.join(name)).unwrap()).unwrap() };
    let memory = read("memory.json");
    let opened =
        memory["usage"]["runs_after"].as_u64().unwrap() - memory["usage"]["runs_before"].as_u64().unwrap();
    assert!(opened > 10, "{memory}");
    assert!(read("load.json")["hooks"][0]["duration"]["p50_ms"].is_number());
    daemon.finish();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test runs what the page shows")]
fn the_scenario_of_the_page_is_one() {
    let [scenario] = blocks("yaml").try_into().unwrap();
    let place = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path: PathBuf = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(".openharness/hooks/guard.yaml", RULE);
    write("shown.yaml", scenario);
    let times = ["--ramp", "0s", "--warm-up", "0s", "--duration", "300ms", "--json", "-"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    command.args(without_trust(&[&["bench", "shown.yaml"], &times[..]].concat())).current_dir(place.path());
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let load = &report["load"];
    assert_eq!(
        (load["rate"].as_f64(), load["arrivals"].as_str(), load["in_flight"].as_u64()),
        (Some(200.0), Some("poisson"), Some(64))
    );
}

#[test]
fn the_example_of_the_formula_is_computed_right() {
    let rate = 0.2;
    let by_processor = |hook: f64| 0.5 * 4.0 * 1e6 / (rate * (150.0 + hook));
    let by_places = 2.0 / (rate * 0.0001);
    for (shown, computed) in
        [("2409", by_processor(4000.0)), ("40 000", by_processor(100.0)), ("100 000", by_places)]
    {
        let digits = shown.replace(' ', "");
        assert!((digits.parse::<f64>().unwrap() - computed).abs() < 1.0, "{shown}: {computed}");
        assert!(PAGE.contains(shown), "{shown}");
    }
}
