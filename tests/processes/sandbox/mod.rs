//! Sandboxes: hooks that attack, and what holds. Each attack prints what it achieved on standard error and exits with
//! 2, so that the reason of the block says it.

mod launcher;
mod limits;

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
};

use hookyard::{
    Orchestrator,
    config::{Settings, TrustPolicy},
    model::{
        Ended, Event, EventKind, FilesystemAccess, Json, NetworkAccess, Outcome, RunId, SessionId, Severity,
        Target, Verdict,
    },
};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{python::python, wait::wait_until_async};

/// The interpreter of the system, which lies in a directory that every sandbox may read.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// Settings with a launcher, and hooks of workspaces that read only and have no network.
fn strict() -> Settings {
    let mut settings = unrestricted();
    settings.sandbox.project.filesystem = FilesystemAccess::ReadOnly;
    settings.sandbox.project.network = NetworkAccess::None;
    settings
}

/// The strictest settings under which a hook starts on this system.
fn startable() -> Settings {
    let mut settings = strict();
    if cfg!(hookyard_portable) {
        settings.sandbox.project.network = NetworkAccess::Any;
    }
    settings
}

fn unrestricted() -> Settings {
    let mut settings = Settings::default();
    settings.sandbox.launcher = Some(env!("CARGO_BIN_EXE_hookyard").into());
    settings
}

struct Attack {
    workspace: TempDir,
    settings: Settings,
    /// More keys of the handler.
    keys: String,
}

impl Attack {
    fn new(settings: Settings) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        fs::write(workspace.path().join("guard.sh"), "exit 2\n").unwrap();
        Self { workspace, settings, keys: String::new() }
    }

    fn keys(mut self, keys: &str) -> Self {
        self.keys = keys.replace('\n', "\n  ");
        self
    }

    fn root(&self) -> &Path {
        self.workspace.path()
    }

    async fn start(&self, command: &str) -> Orchestrator {
        let hooks = self.root().join(".openharness/hooks");
        fs::create_dir_all(&hooks).unwrap();
        let file = format!(
            "name: hook\nevents: [before_tool_dispatch]\non_error: deny\nhandler:\n  type: command\n  command: {}\n  {}\n",
            json!(command),
            self.keys
        );
        fs::write(hooks.join("hook.yaml"), file).unwrap();
        let builder = Orchestrator::builder()
            .workspace(self.root())
            .settings(self.settings.clone())
            .trust(TrustPolicy::Off);
        let orchestrator = builder.start().await.unwrap();
        let reports = orchestrator.load_reports();
        let report = reports.values().next().unwrap();
        assert_eq!(report.hooks, 1, "{:?}", report.diagnostics);
        orchestrator
    }

    /// The outcome of one event.
    async fn outcome(&self, command: &str) -> Outcome {
        ask(&self.start(command).await).await
    }

    /// What a command printed on standard error before it exited with 2.
    async fn report(&self, command: &str) -> String {
        let outcome = self.outcome(&format!("{{ {command}\n}} >&2 2>&1; exit 2")).await;
        assert_eq!(outcome.hooks[0].ended, Ended::Completed, "{:?}", outcome.hooks[0].error);
        assert_eq!(outcome.verdict, Verdict::Block);
        outcome.reason.as_deref().unwrap_or_default().to_owned()
    }
}

async fn ask(orchestrator: &Orchestrator) -> Outcome {
    let mut event = Event::new(
        EventKind::BeforeToolDispatch,
        SessionId::new("session").unwrap(),
        RunId::new("run").unwrap(),
    );
    event.attributes.tool_name = Some("Bash".into());
    event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"ls"}"#).unwrap());
    orchestrator.dispatch(event).await.unwrap()
}

/// Whether this kernel enforces all of a sandbox; says so if it does not.
async fn is_enforced() -> bool {
    let mut settings = strict();
    settings.sandbox.project.require = true;
    let outcome = Attack::new(settings).outcome("exit 0").await;
    let is_enforced = outcome.hooks[0].ended == Ended::Completed;
    if !is_enforced {
        eprintln!("skipped: {:?}", outcome.hooks[0].error);
        let error = outcome.hooks[0].error.as_deref().unwrap_or_default();
        assert!(error.contains("this kernel cannot enforce the sandbox"), "{error}");
        assert_eq!(outcome.verdict, Verdict::Block);
    }
    is_enforced
}

/// A shell line that prints `broken: NAME` if a command succeeds.
fn attempt(name: &str, command: &str) -> String {
    format!("if ( {command} ) >/dev/null 2>&1; then echo 'broken: {name}'; else echo 'held'; fi\n")
}

fn assert_held(report: &str, attacks: usize) {
    let held: Vec<_> = report.lines().filter(|line| *line == "held").collect();
    assert_eq!(held.len(), attacks, "{report}");
}

#[tokio::test]
#[cfg_attr(hookyard_portable, ignore = "no kernel restricts files, calls and sockets")]
async fn a_read_only_hook_writes_nothing_and_reads_nothing_of_others() {
    if !is_enforced().await {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let key = outside.path().join("id_ed25519");
    fs::write(&key, "secret").unwrap();
    let outside = outside.path().display();
    let attacks = [
        ("create a file", "echo x > planted".to_owned()),
        ("overwrite a guard", "echo exit 0 > guard.sh".to_owned()),
        ("empty a guard", ": > guard.sh".to_owned()),
        ("truncate a guard", "truncate -s 0 guard.sh".to_owned()),
        ("append to a guard", "echo >> guard.sh".to_owned()),
        ("remove a guard", "rm -f guard.sh && [ ! -e guard.sh ]".to_owned()),
        ("rename a guard", "mv guard.sh gone.sh".to_owned()),
        ("make a directory", "mkdir planted".to_owned()),
        ("make a link", "ln -s /etc/passwd planted".to_owned()),
        ("write a hook file", "echo x > .openharness/hooks/hook.yaml".to_owned()),
        ("write to /tmp", "echo x > /tmp/hookyard-planted".to_owned()),
        ("read a key", format!("cat {outside}/id_ed25519")),
        ("list a directory of others", format!("ls {outside}")),
        ("write to a directory of others", format!("echo x > {outside}/planted")),
        ("read the environment of hookyard", "cat /proc/$PPID/environ".to_owned()),
        ("read the memory map of hookyard", "cat /proc/$PPID/maps".to_owned()),
        ("see the files of hookyard", "readlink /proc/$PPID/fd/0".to_owned()),
        ("write to the kernel", "echo x > /proc/sys/kernel/hostname".to_owned()),
    ];
    let script: String = attacks.iter().map(|(name, command)| attempt(name, command)).collect();
    let attack = Attack::new(strict());
    assert_held(&attack.report(&script).await, attacks.len());
    assert_eq!(fs::read_to_string(attack.root().join("guard.sh")).unwrap(), "exit 2\n");
    assert!(!attack.root().join("planted").exists());
    // Each attack is one: without the sandbox it succeeds, or the test would prove nothing.
    let unrestricted = Attack::new(unrestricted());
    let script: String = attacks[..13]
        .iter()
        .filter(|(name, _)| !name.contains("/tmp"))
        .map(|(name, command)| attempt(name, command))
        .collect();
    let report = unrestricted.report(&script).await;
    assert!(report.lines().filter(|line| line.starts_with("broken")).count() >= 9, "{report}");
}

#[tokio::test]
#[cfg_attr(hookyard_portable, ignore = "no kernel restricts files, calls and sockets")]
async fn interpreters_run_in_a_sandbox_and_have_a_directory_for_temporary_files() {
    if !is_enforced().await {
        return;
    }
    let attack = Attack::new(strict());
    fs::write(attack.root().join("rules.txt"), "rule\n").unwrap();
    let temporary = "import os, tempfile; tempfile.NamedTemporaryFile().write(b'x'); print(open('rules.txt').read().strip())";
    let mut script = String::from(
        "cat rules.txt\necho x > \"$TMPDIR/file\" && cat \"$TMPDIR/file\"\necho y > /dev/null && echo null\n\
         head -c 1 /dev/urandom > /dev/null && echo random\n",
    );
    let mut expected = vec!["rule", "x", "null", "random"];
    if Path::new(SYSTEM_PYTHON).exists() {
        script.extend([SYSTEM_PYTHON, " -c \"", temporary, "\"\n"]);
        expected.push("rule");
    }
    if Path::new("/usr/bin/node").exists() {
        fs::write(
            attack.root().join("guard.mjs"),
            "import fs from 'node:fs';\nconsole.log(fs.readFileSync('rules.txt', 'utf8').trim());\n",
        )
        .unwrap();
        script += "node guard.mjs\n";
        expected.push("rule");
    }
    let report = attack.report(&script).await;
    assert_eq!(report.lines().collect::<Vec<_>>(), expected, "{report}");
}

#[tokio::test]
async fn the_directory_for_temporary_files_is_removed_at_the_end() {
    let attack = Attack::new(startable());
    let orchestrator = attack.start("echo x > $TMPDIR/left; echo $TMPDIR >&2; exit 2").await;
    let outcome = ask(&orchestrator).await;
    let directory = outcome.reason.as_deref().unwrap().trim().to_owned();
    assert!(Path::new(&directory).join("left").exists(), "{directory}");
    orchestrator.shutdown(std::time::Duration::from_secs(5)).await;
    drop(orchestrator);
    wait_until_async("the directory is gone", || !Path::new(&directory).exists()).await;
}

#[tokio::test]
#[cfg_attr(hookyard_portable, ignore = "no kernel restricts files, calls and sockets")]
async fn a_hook_without_network_makes_no_socket() {
    if !is_enforced().await || !Path::new(SYSTEM_PYTHON).exists() {
        return;
    }
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sockets = tempfile::tempdir().unwrap();
    let unix = sockets.path().join("control.sock");
    let _listener = UnixListener::bind(&unix).unwrap();
    let tcp = tcp.local_addr().unwrap().port();
    let udp = udp.local_addr().unwrap().port();
    let script = format!(
        r#"import socket
def attempt(name, action):
    try:
        action()
        print("broken:", name)
    except OSError:
        print("held")
attempt("connect", lambda: socket.create_connection(("127.0.0.1", {tcp})))
attempt("bind", lambda: socket.create_server(("127.0.0.1", 0)))
attempt("send", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {udp})))
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect({unix:?}))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).bind("\0hookyard-test"))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
"#
    );
    let run = |settings| async {
        let attack = Attack::new(settings);
        fs::write(attack.root().join("attack.py"), &script).unwrap();
        attack.report(&format!("{SYSTEM_PYTHON} attack.py")).await
    };
    assert_held(&run(strict()).await, 6);
    let report = run(unrestricted()).await;
    assert_eq!(report.lines().filter(|line| line.starts_with("broken")).count(), 6, "{report}");
}

#[tokio::test]
#[cfg_attr(hookyard_portable, ignore = "no kernel restricts files, calls and sockets")]
async fn a_hook_gains_no_privileges_and_signals_nobody_outside() {
    if !is_enforced().await {
        return;
    }
    let script = "grep NoNewPrivs /proc/self/status\ngrep Sig[BI] /proc/self/status\ngrep CapEff /proc/self/status\nulimit -c\nkill -0 $PPID && echo reached\n:";
    let restricted = Attack::new(strict()).report(script).await;
    let free = Attack::new(unrestricted()).report(script).await;
    assert!(restricted.contains("NoNewPrivs:\t1"), "{restricted}");
    assert!(free.contains("reached"), "{free}");
    // Root keeps what concerns files and users: nothing that reads other processes, raises limits or loads modules.
    let privileges = restricted.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
    assert_eq!(u64::from_str_radix(privileges, 16).unwrap() & !0xff, 0, "{restricted}");
    let signals = |report: &str| -> Vec<String> {
        report.lines().filter(|line| line.starts_with("Sig")).map(str::to_owned).collect()
    };
    assert_eq!(signals(&restricted), signals(&free));
    // Signals are restricted from Linux 6.12 on.
    if restricted.contains("reached") {
        eprintln!("skipped: this kernel cannot restrict signals");
    }
}

/// Each attempt has no effect if it succeeds: what it changes stays as it is.
#[tokio::test]
#[cfg_attr(hookyard_portable, ignore = "no kernel restricts files, calls and sockets")]
async fn a_hook_reaches_no_other_process_by_system_calls() {
    if !is_enforced().await || !Path::new(SYSTEM_PYTHON).exists() {
        return;
    }
    let script = format!(
        r#"import ctypes, os, platform, resource
libc = ctypes.CDLL(None, use_errno=True)
keyctl = 250 if platform.machine() == "x86_64" else 219
other, core = {}, resource.RLIMIT_CORE
def attempt(name, action):
    try:
        action()
        print("broken:", name)
    except OSError:
        print("held")
def call(result):
    if result == -1:
        raise OSError(ctypes.get_errno())
    return result
attempt("limit", lambda: resource.prlimit(other, core, resource.prlimit(other, core)))
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, other, os.getpriority(os.PRIO_PROCESS, other)))
attempt("scheduler", lambda: os.sched_setscheduler(other, os.sched_getscheduler(other), os.sched_getparam(other)))
attempt("key ring", lambda: call(libc.syscall(keyctl, 0, -4, 1)))
attempt("memory", lambda: call(libc.shmctl(call(libc.shmget(0, 4096, 0o600)), 0, None)))
# What concerns the hook itself stays possible.
resource.setrlimit(core, (0, 0))
os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + 1)
"#,
        std::process::id()
    );
    let run = |settings| async {
        let attack = Attack::new(settings);
        fs::write(attack.root().join("attack.py"), &script).unwrap();
        attack.report(&format!("{SYSTEM_PYTHON} attack.py")).await
    };
    assert_held(&run(strict()).await, 5);
    let report = run(unrestricted()).await;
    for name in ["limit", "priority", "scheduler", "memory"] {
        assert!(report.contains(&format!("broken: {name}")), "{report}");
    }
}

#[tokio::test]
#[cfg_attr(hookyard_portable, ignore = "no kernel restricts files, calls and sockets")]
async fn workers_and_spares_run_in_the_sandbox_too() {
    if !is_enforced().await {
        return;
    }
    let guard = "import json, os, sys\n\
        def answer():\n    try:\n        open('planted', 'w')\n        return {'decision': 'block', 'reason': 'broken'}\n    \
        except OSError:\n        return {'decision': 'block', 'reason': 'held'}\n\
        if os.environ.get('HOOKYARD_WORKER') != '1':\n    sys.stdin.read()\n    print(json.dumps(answer()))\n    sys.exit(0)\n\
        print(json.dumps({'hookyard': 1}), flush=True)\n\
        for line in sys.stdin:\n    message = json.loads(line)\n    \
        print(json.dumps({'pong': 1} if 'ping' in message else {'id': message['id'], 'output': answer()}), flush=True)\n";
    for mode in ["oneshot", "prespawn", "worker"] {
        let mut settings = strict();
        // The interpreter of the tests may lie in a home directory.
        let interpreter = Path::new(python().split(' ').next().unwrap());
        settings.sandbox.project.read.extend(interpreter.ancestors().nth(2).map(Path::to_owned));
        let attack = Attack::new(settings).keys(&format!("mode: {mode}"));
        fs::write(attack.root().join("guard.py"), guard).unwrap();
        let orchestrator = attack.start(&format!("exec {} guard.py", python())).await;
        for _ in 0..3 {
            let outcome = ask(&orchestrator).await;
            assert_eq!(outcome.reason.as_deref(), Some("held"), "{mode}: {outcome:?}");
        }
    }
}

#[tokio::test]
#[cfg_attr(hookyard_portable, ignore = "no kernel restricts files, calls and sockets")]
async fn a_hook_file_restricts_its_hook_further_and_never_less() {
    if !is_enforced().await {
        return;
    }
    let attacks = attempt("write", "echo x > build/planted")
        + &attempt("socket", &format!("{SYSTEM_PYTHON} -c 'import socket; socket.socket()'"));
    for (settings, keys, held) in [
        (strict(), "sandbox: {filesystem: any, network: any}", 2),
        (strict(), "sandbox: {filesystem: workspace}", 2),
        (strict(), "sandbox: {filesystem: read_only, write: [build]}", 2),
        (unrestricted(), "sandbox: {filesystem: read_only, network: none}", 2),
        (unrestricted(), "sandbox: {filesystem: read_only, write: [build], network: none}", 1),
        (unrestricted(), "sandbox: {filesystem: workspace, network: none}", 1),
    ] {
        let attack = Attack::new(settings).keys(keys);
        fs::create_dir(attack.root().join("build")).unwrap();
        let report = attack.report(&attacks).await;
        assert_held(&report, held);
    }
}

#[tokio::test]
#[cfg_attr(hookyard_portable, ignore = "no kernel restricts files, calls and sockets")]
async fn a_writable_directory_that_becomes_a_link_opens_nothing() {
    if !is_enforced().await {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let attack = Attack::new(unrestricted()).keys("sandbox: {filesystem: read_only, write: [build]}");
    fs::create_dir(attack.root().join("build")).unwrap();
    let orchestrator =
        attack.start(&format!("{{ {} }} >&2; exit 2", attempt("write", "echo x > build/planted"))).await;
    assert!(ask(&orchestrator).await.reason.unwrap().contains("broken: write"));
    fs::remove_dir_all(attack.root().join("build")).unwrap();
    symlink(outside.path(), attack.root().join("build")).unwrap();
    assert_eq!(ask(&orchestrator).await.reason.as_deref().map(str::trim), Some("held"));
    assert!(!outside.path().join("planted").exists());
}

#[cfg(hookyard_portable)]
#[tokio::test]
async fn a_sandbox_that_the_system_cannot_enforce_starts_nothing_if_it_is_required_or_has_no_network() {
    let mut required = unrestricted();
    required.sandbox.project.filesystem = FilesystemAccess::ReadOnly;
    required.sandbox.project.require = true;
    let mut offline = unrestricted();
    offline.sandbox.project.network = NetworkAccess::None;
    for (settings, why) in [(required, "it cannot restrict files"), (offline, "it cannot refuse sockets")] {
        let attack = Attack::new(settings);
        let outcome = attack.outcome("touch ran; exit 0").await;
        let error = outcome.hooks[0].error.as_deref().unwrap_or_default();
        assert!(error.contains("this system cannot enforce the sandbox") && error.contains(why), "{error}");
        assert_eq!((outcome.verdict, outcome.hooks[0].ended), (Verdict::Block, Ended::SpawnFailed));
        assert!(!attack.root().join("ran").exists());
        let orchestrator = attack.start("exit 0").await;
        let reports = orchestrator.load_reports();
        let told = |report: &hookyard::LoadReport| {
            report.diagnostics.iter().any(|told| told.severity == Severity::Error && told.code == "sandbox")
        };
        assert!(reports.values().all(told), "{reports:?}");
    }
    // A sandbox that is not required is one more precaution, and `check` says that it is not there.
    let mut preferred = unrestricted();
    preferred.sandbox.project.filesystem = FilesystemAccess::ReadOnly;
    let outcome = Attack::new(preferred).outcome("exit 0").await;
    assert_eq!(outcome.hooks[0].ended, Ended::Completed, "{:?}", outcome.hooks[0].error);
}
