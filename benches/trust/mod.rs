//! What trust costs: loading hooks that a person has agreed to, beside loading them with trust off, and a oneshot hook
//! from its private copy, beside the same one with trust off.

use std::{fs, path::Path, process::Command};

use hookyard::{
    Orchestrator,
    config::{Settings, TrustPolicy, load_workspace},
    model::TrustState,
};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{PAIRS, common::tool_event, compare, median};

/// The hooks of the workspace that is loaded.
const HOOKS: usize = 200;

/// A workspace whose hooks are trusted, with the home and the state of its user.
struct TrustedWorkspace {
    directory: TempDir,
}

impl TrustedWorkspace {
    /// With so many hooks, each with a script of its own.
    fn new(hooks: usize) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let own = directory.path().join("shop/.openharness");
        fs::create_dir_all(own.join("hooks")).expect("a directory");
        fs::create_dir_all(own.join("scripts")).expect("a directory");
        fs::create_dir(directory.path().join("home")).expect("a directory");
        for number in 0..hooks {
            let hook = format!(
                "name: hook-{number}\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  \
                 command: sh .openharness/scripts/{number}.sh\n"
            );
            fs::write(own.join(format!("hooks/{number}.yaml")), hook).expect("a file");
            fs::write(own.join(format!("scripts/{number}.sh")), "exit 0\n").expect("a file");
        }
        let workspace = Self { directory };
        let shown = workspace.trust(&["--json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        workspace.trust(&["--yes", shown["digest"].as_str().expect("a digest")]);
        workspace
    }

    fn root(&self) -> std::path::PathBuf {
        self.directory.path().join("shop")
    }

    /// Runs the program, as a person who agrees does.
    #[allow(clippy::disallowed_methods, reason = "only the program can agree")]
    fn trust(&self, arguments: &[&str]) -> String {
        let place = self.directory.path();
        let set = |key: &str, path: &Path| format!("{key}={}", path.display());
        let output = Command::new(env!("CARGO_BIN_EXE_hookyard"))
            .arg("trust")
            .args(["--workspace".as_ref(), self.root().as_os_str()])
            .args(["--set", &set("home", &place.join("home"))])
            .args(["--set", &set("state_directory", &place.join("state"))])
            .args(arguments)
            .output()
            .expect("the program");
        String::from_utf8(output.stdout).expect("text")
    }

    fn settings(&self, trust: TrustPolicy) -> Settings {
        let place = self.directory.path();
        Settings {
            trust,
            home: Some(place.join("home")),
            state_directory: Some(place.join("state")),
            ..Settings::default()
        }
    }

    async fn orchestrator(&self, trust: TrustPolicy) -> &'static Orchestrator {
        let builder = Orchestrator::builder().settings(self.settings(trust)).trust(trust);
        let orchestrator = builder.workspace(self.root()).start().await.expect("an orchestrator");
        // A reference that lives as long as the program makes the closures `Copy`.
        Box::leak(Box::new(orchestrator))
    }
}

/// Prints the rows.
pub(crate) async fn print() {
    loading();
    oneshot().await;
}

/// The time of one load, in milliseconds.
fn load(workspace: &TrustedWorkspace, trust: TrustPolicy, expected: Option<TrustState>) -> f64 {
    let settings = workspace.settings(trust);
    let begun = Instant::now();
    let loaded = load_workspace(&workspace.root(), None, &settings, &|name| std::env::var(name).ok());
    let took = begun.elapsed().as_secs_f64() * 1e3;
    assert_eq!(loaded.hooks.len(), HOOKS);
    assert!(loaded.hooks.iter().all(|hook| hook.trust.state() == expected), "{:?}", loaded.diagnostics);
    took
}

fn loading() {
    let workspace = TrustedWorkspace::new(HOOKS);
    // Digests of files that changed a moment ago are not remembered: a change in the same moment would not be seen.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let (mut trusted, mut off, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..=PAIRS {
        let ours = load(&workspace, TrustPolicy::Enforce, Some(TrustState::Trusted));
        let floor = load(&workspace, TrustPolicy::Off, None);
        // The first pair reads the files.
        if pair > 0 {
            trusted.push(ours);
            off.push(floor);
            ratios.push(ours / floor);
        }
    }
    let (trusted, off, ratio) = (median(trusted), median(off), median(ratios));
    println!(
        "| loading {HOOKS} trusted hooks, warm | {trusted:.1} ms | trust off: {off:.1} ms | {ratio:.2} | ≤ 20 ms |"
    );
}

async fn oneshot() {
    let workspace = TrustedWorkspace::new(1);
    let copy = workspace.orchestrator(TrustPolicy::Enforce).await;
    let script = workspace.orchestrator(TrustPolicy::Off).await;
    let ours = move |run: usize| ask(copy, run);
    let floor = move |run: usize| ask(script, run);
    let (hookyard, floor, ratio) = compare(400, 16, ours, floor).await;
    println!(
        "| oneshot hook from its private copy, 16 at once | {hookyard:.0}/s | the script itself: {floor:.0}/s | {ratio:.2} | ≥ 0.95 |"
    );
}

async fn ask(orchestrator: &Orchestrator, run: usize) {
    let outcome = orchestrator.dispatch(tool_event(run)).await.expect("an outcome");
    assert!(outcome.hooks[0].error.is_none(), "{outcome:?}");
}
