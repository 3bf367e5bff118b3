//! Dashboards and alert rules with a real Prometheus and a daemon to which everything happens.

#![allow(
    clippy::disallowed_methods,
    reason = "programs are started as their users start them, and clocks are theirs"
)]

use std::{
    fs,
    io::Write,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::support::daemon::{Daemon, DaemonSetup, write};
use crate::support::grafana::{DASHBOARDS, asked, dashboard, expressions, folder, panels, rules};
use crate::support::load::{Load, Plan};
use crate::support::wait::LONGEST_WAIT;
use serde_json::{Value, json};

/// How long hookyard is kept busy before it is asked about.
const BUSY: Duration = Duration::from_secs(24);

/// The same for pictures, which should have something to show.
const BUSY_FOR_PICTURES: Duration = Duration::from_mins(3);

/// Panels on which nothing needs to move, by dashboard and title. They say zero, which is something.
const STILL: [(&str, &str, &str); 29] = [
    ("overview", "Waiting at hooks", "no hook here has a limit of its own"),
    ("overview", "Degraded workers", "all workers serve here"),
    ("hook-detail", "Waiting", "no hook here has a limit of its own"),
    ("hook-detail", "Degraded workers", "all workers serve here"),
    ("internals", "Workspaces not loaded", "all workspaces are there"),
    ("internals", "Audit lines lost", "no line is lost here"),
    ("internals", "Lines waiting to be shipped", "nothing is shipped here"),
    ("internals", "Size of lines waiting to be shipped", "nothing is shipped here"),
    ("internals", "Lines shipped", "nothing is shipped here"),
    ("internals", "Lines for shipping lost", "nothing is shipped here"),
    ("internals", "Bundle", "no bundle is configured here"),
    ("internals", "Age of the bundle", "no bundle is configured here"),
    ("internals", "Stale bundles and changed copies", "no bundle is configured here"),
    ("internals", "Asking for bundles", "no bundle is configured here"),
    ("internals", "Failed writes", "the disk works"),
    ("internals", "Not on disk", "writes take moments"),
    ("internals", "Dead letters", "nothing is tried five times here"),
    ("internals", "Restarts", "no actor dies here"),
    ("internals", "Restarts by actor", "no actor dies here"),
    ("internals", "Panics", "nothing panics here"),
    ("internals", "Panics by actor", "nothing panics here"),
    ("internals", "Late replies", "a process that was killed says nothing any more"),
    ("internals", "Labels beyond the limit", "there are not two hundred hooks"),
    ("internals", "Tasks that wait", "there is a thread for each, mostly"),
    ("internals", "Notices dropped", "nobody reads the stream"),
    ("internals", "Spans lost", "nothing is traced here"),
    ("internals", "Required hooks missing", "no hook is required here"),
    ("internals", "Requests beyond limits", "no limit is reached here"),
    ("internals", "Requests denied", "everybody here may do what they ask for"),
];

/// Panels whose metrics only a node of a cluster has, by dashboard and title.
const OF_A_CLUSTER: [(&str, &str); 7] = [
    ("internals", "Halts of other nodes known"),
    ("internals", "Halts of the cluster"),
    ("internals", "Writes to the store"),
    ("internals", "Time to store"),
    ("internals", "Into the queue"),
    ("internals", "Out of the queue"),
    ("internals", "Queue lost"),
];

/// Series that alerts look for and do not find.
const ABSENT: [(&str, &str); 5] = [
    (
        r#"hookyard_hook_runs_total{ended="untrusted"}"#,
        "nothing is untrusted as long as trust is not checked",
    ),
    ("hookyard_cluster_fresh", NO_CLUSTER),
    (r#"hookyard_cluster_halts{state="unstored"}"#, NO_CLUSTER),
    (r#"hookyard_cluster_puts_total{result="failed"}"#, NO_CLUSTER),
    ("hookyard_cluster_queue_replaced_total", NO_CLUSTER),
];

const NO_CLUSTER: &str = "the daemon is no node of a cluster";

/// Whether a program of Prometheus is there; says so if not.
pub(super) fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("COULD NOT RUN: dashboards and rules are tried out with {program}, which is not installed");
    }
    is_there
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

fn promtool(arguments: &[&str], input: Option<&[u8]>) -> Output {
    let mut tool = Command::new("promtool")
        .args(arguments)
        .current_dir(folder().join("alerts"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    tool.stdin.take().unwrap().write_all(input.unwrap_or_default()).unwrap();
    tool.wait_with_output().unwrap()
}

#[test]
fn rules_are_sound_and_fire_when_they_should() {
    if !has("promtool") {
        return;
    }
    for arguments in [["check", "rules", "hookyard.rules.yaml"], ["test", "rules", "hookyard.tests.yaml"]] {
        let output = promtool(&arguments, None);
        assert!(output.status.success(), "{}", said(&output));
    }
}

/// A Prometheus at work; ends with the test.
pub(super) struct Prometheus {
    child: Child,
    url: String,
    client: reqwest::Client,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Both fail only if it has just ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Prometheus {
    /// One that scrapes this address, with its data below the directory.
    pub(super) async fn start(directory: &Path, address: &str) -> Self {
        let rules = folder().join("alerts/hookyard.rules.yaml");
        let settings = format!(
            "global: {{ scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s }}\n\
             rule_files: [{}]\n\
             scrape_configs: [{{ job_name: hookyard, static_configs: [{{ targets: ['{address}'] }}] }}]\n",
            rules.display()
        );
        write(&directory.join("prometheus.yml"), &settings);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = fs::File::create(directory.join("log")).unwrap();
        let child = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg("--log.level=warn")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        // Its client needs somebody to do TLS also where there is none.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let prometheus = Self { child, url: format!("http://127.0.0.1:{port}"), client };
        let deadline = Instant::now() + LONGEST_WAIT;
        while !prometheus.is_ready().await {
            assert!(Instant::now() < deadline, "{}", fs::read_to_string(directory.join("log")).unwrap());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        prometheus
    }

    async fn is_ready(&self) -> bool {
        let answer = self.client.get(format!("{}/-/ready", self.url)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    pub(super) async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, String> {
        let mut url = url::Url::parse(&format!("{}/api/v1/{path}", self.url)).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let answer = self.client.get(url).send().await.map_err(|error| error.to_string())?;
        let text = answer.text().await.map_err(|error| error.to_string())?;
        let mut answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match answer["error"].as_str() {
            None => Ok(answer["data"].take()),
            Some(error) => Err(error.to_owned()),
        }
    }

    /// What an expression comes to at any moment.
    async fn values(&self, expression: &str, between: (f64, f64)) -> Result<Vec<f64>, String> {
        let (start, end) = between;
        let query = [
            ("query", expression.to_owned()),
            ("start", start.to_string()),
            ("end", end.to_string()),
            ("step", "1".to_owned()),
        ];
        let data = self.get("query_range", &query).await?;
        let series = data["result"].as_array().unwrap().iter();
        let values = series.flat_map(|series| series["values"].as_array().unwrap());
        let numbers = values.map(|value| value[1].as_str().unwrap().parse::<f64>().unwrap());
        Ok(numbers.filter(|number| !number.is_nan()).collect())
    }
}

/// An expression as Grafana sends it when everything is chosen.
fn chosen(expression: &str) -> String {
    let names = [
        ("$__rate_interval", "10s"),
        ("$__range", "60s"),
        ("$job", ".*"),
        ("$instance", ".*"),
        ("$event", ".*"),
        ("$hook", ".*"),
    ];
    names.iter().fold(expression.to_owned(), |text, (name, value)| text.replace(name, value))
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// What is wrong with the panels.
async fn wrong_panels(prometheus: &Prometheus, between: (f64, f64)) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        for panel in panels(&dashboard) {
            let title = panel["title"].as_str().unwrap();
            let listed = |list: &[(&str, &str, &str)]| {
                list.iter().any(|(board, panel, _)| (*board, *panel) == (name, title))
            };
            let may_be_still = listed(&STILL);
            let is_of_a_cluster = OF_A_CLUSTER.contains(&(name, title));
            let mut moves = false;
            for expression in expressions(panel) {
                match prometheus.values(&chosen(expression), between).await {
                    Err(error) => wrong.push(format!("{name}: {title}: {error}")),
                    Ok(values) if values.is_empty() != is_of_a_cluster => {
                        wrong.push(format!("{name}: {title}: {} values for {expression}", values.len()));
                    }
                    Ok(values) => moves |= values.iter().any(|value| *value != 0.0),
                }
            }
            if !moves && !may_be_still && !is_of_a_cluster {
                wrong.push(format!("{name}: {title} does not move"));
            }
        }
        for annotation in dashboard["annotations"]["list"].as_array().unwrap() {
            let expression = chosen(annotation["target"]["expr"].as_str().unwrap());
            if let Err(error) = prometheus.values(&expression, between).await {
                wrong.push(format!("{name}: {}: {error}", annotation["name"]));
            }
        }
    }
    wrong
}

/// What is wrong with the rules: a recorded series has values, and what an alert looks at is there.
async fn wrong_rules(prometheus: &Prometheus, between: (f64, f64)) -> Vec<String> {
    let mut wrong = Vec::new();
    for rule in rules() {
        if let Err(error) = prometheus.values(&rule.expression, between).await {
            wrong.push(format!("{}: {error}", rule.name));
        }
        let wanted = match rule.alert {
            Some(_) => asked(&rule.expression).into_iter().map(|asked| asked.selector).collect(),
            None => vec![rule.name.clone()],
        };
        for selector in wanted {
            let excused = ABSENT.iter().any(|(absent, _)| *absent == selector);
            match prometheus.values(&selector, between).await {
                Err(error) => wrong.push(format!("{}: {selector}: {error}", rule.name)),
                Ok(values) if values.is_empty() == excused => {}
                Ok(values) => wrong.push(format!("{}: {selector} has {} values", rule.name, values.len())),
            }
        }
    }
    let known = prometheus.get("rules", &[]).await.unwrap();
    let groups = known["groups"].as_array().unwrap().iter();
    for rule in groups.flat_map(|group| group["rules"].as_array().unwrap()) {
        if rule["health"] != "ok" {
            wrong.push(format!("{}: {}", rule["name"], rule["lastError"]));
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_panel_and_every_rule_has_data() {
    if !has("prometheus") || !has("promtool") {
        return;
    }
    let load = Load::start().await;
    let prometheus = Prometheus::start(&load.directory("prometheus"), &load.address()).await;
    let start = now();
    load.run(Plan::everything(BUSY)).await;
    let between = (start, now());
    let linted = said(&promtool(&["check", "metrics"], Some(&load.metrics())));
    let mut wrong: Vec<_> = linted.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    wrong.extend(wrong_panels(&prometheus, between).await);
    wrong.extend(wrong_rules(&prometheus, between).await);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A guard that counts, and the expression with its count.
const COUNTED: &str =
    "name: counted\nevents: [before_tool_dispatch]\nhandler: { type: command, command: 'exit 2' }\n";
const COUNT: &str = r#"sum(hookyard_hook_runs_total{hook="counted",ended="completed"})"#;

fn blocked(daemon: &Daemon, times: u32) {
    for _ in 0..times {
        let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                            "tool_input": {} });
        assert_eq!(daemon.post("/v1/events", &event)["verdict"], "block");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_while_prometheus_is_gone_is_in_its_next_scrape() {
    if !has("prometheus") {
        return;
    }
    let setting = DaemonSetup::new()
        .settings(
            "listen: { metrics: '127.0.0.1:0' }\nworkspaces: { shop: { root: $DIR/shop } }\nwatch: false",
        )
        .file("shop/.openharness/hooks/counted.yaml", COUNTED);
    let daemon = tokio::task::spawn_blocking(|| setting.serve()).await.unwrap();
    let address = daemon.get("/v1/status")["metrics"].as_str().unwrap().to_owned();
    let directory = daemon.path().join("prometheus");
    fs::create_dir(&directory).unwrap();
    let start = now();
    let mut sent = 0;
    for times in [3, 4] {
        let prometheus = Prometheus::start(&directory, &address).await;
        blocked(&daemon, times);
        sent += times;
        let deadline = Instant::now() + LONGEST_WAIT;
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last| *last < f64::from(sent)) {
            assert!(Instant::now() < deadline, "{seen:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
            seen = prometheus.values(COUNT, (start, now())).await.unwrap();
        }
        assert!(seen.is_sorted() && seen.last() == Some(&f64::from(sent)), "{seen:?}");
        let started =
            prometheus.values("changes(process_start_time_seconds[1m])", (start, now())).await.unwrap();
        assert!(started.iter().all(|changes| *changes == 0.0), "{started:?}");
        drop(prometheus);
        blocked(&daemon, 2);
        sent += 2;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "draws the pictures of grafana/README.md, which takes minutes, with node and chromium"]
async fn pictures() {
    let load = Load::start().await;
    let prometheus = Prometheus::start(&load.directory("prometheus"), &load.address()).await;
    let start = now();
    load.run(Plan::with_a_bad_minute(BUSY_FOR_PICTURES)).await;
    let mut draw = Command::new("node");
    draw.arg(folder().join("preview/draw.mjs")).arg(&prometheus.url);
    let drawn = draw.args([(start + 20.0).to_string(), now().to_string()]).output().unwrap();
    assert!(drawn.status.success(), "{}", said(&drawn));
}
