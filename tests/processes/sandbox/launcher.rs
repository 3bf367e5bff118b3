//! Launchers that fail, and hooks that try to look like one.

use super::*;

#[tokio::test]
async fn a_launcher_that_fails_is_no_verdict() {
    let mut settings = startable();
    let cases = [
        ("args: [./gone]", "", "does not exist"),
        ("args: [./noexec]", "", "is not an executable file"),
        ("args: [./odd]", "", "has no format"),
    ];
    for (line, _, expected) in cases {
        let attack = Attack::new(settings.clone());
        fs::write(attack.root().join("noexec"), "exit 2").unwrap();
        let odd = attack.root().join("odd");
        fs::write(&odd, [0x7f, b'E', b'L', b'F', 0, 0]).unwrap();
        fs::set_permissions(&odd, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let hooks = attack.root().join(".openharness/hooks");
        fs::create_dir_all(&hooks).unwrap();
        let file =
            format!("name: hook\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  {line}\n");
        fs::write(hooks.join("hook.yaml"), file).unwrap();
        let builder = Orchestrator::builder()
            .workspace(attack.root())
            .settings(attack.settings.clone())
            .trust(TrustPolicy::Off);
        let outcome = ask(&builder.start().await.unwrap()).await;
        let report = &outcome.hooks[0];
        assert_eq!(report.ended, Ended::SpawnFailed, "{line}: {report:?}");
        assert!(report.error.as_deref().unwrap().contains(expected), "{line}: {report:?}");
        assert_eq!(outcome.verdict, Verdict::Proceed);
    }
    // A launcher that is not there, or is another program, starts nothing either.
    for launcher in ["/nonexistent/hookyard", "/bin/false"] {
        settings.sandbox.launcher = Some(launcher.into());
        let outcome = Attack::new(settings.clone()).outcome("exit 0").await;
        assert_ne!(outcome.hooks[0].ended, Ended::Completed, "{launcher}");
        assert_eq!(outcome.verdict, Verdict::Block, "{launcher}");
    }
}

#[tokio::test]
async fn what_a_hook_prints_is_never_taken_for_a_failed_launcher() {
    let outcome = Attack::new(startable()).outcome("echo 'hookyard-sandbox: no' >&2; exit 2").await;
    assert_eq!((outcome.hooks[0].ended, outcome.verdict), (Ended::Completed, Verdict::Block));
}

#[tokio::test]
async fn a_required_sandbox_without_a_launcher_starts_nothing() {
    let mut settings = startable();
    settings.sandbox.launcher = None;
    let attack = Attack::new(settings.clone());
    let orchestrator = attack.start("echo ran > ran; exit 0").await;
    let diagnostics = orchestrator.load_reports().values().next().unwrap().diagnostics.clone();
    let warning = diagnostics.iter().find(|diagnostic| diagnostic.code == "sandbox").unwrap();
    assert_eq!(warning.severity, Severity::Warning, "{warning}");
    assert_eq!(ask(&orchestrator).await.verdict, Verdict::Proceed);
    assert!(attack.root().join("ran").exists());

    settings.sandbox.project.require = true;
    let attack = Attack::new(settings);
    let orchestrator = attack.start("echo ran > ran; exit 0").await;
    let diagnostics = orchestrator.load_reports().values().next().unwrap().diagnostics.clone();
    assert!(diagnostics.iter().any(|one| one.code == "sandbox" && one.severity == Severity::Error));
    let outcome = ask(&orchestrator).await;
    assert_eq!((outcome.hooks[0].ended, outcome.verdict), (Ended::SpawnFailed, Verdict::Block));
    assert!(outcome.hooks[0].error.as_deref().unwrap().contains("sandbox.launcher"));
    assert!(!attack.root().join("ran").exists());
}

#[tokio::test]
async fn nothing_of_a_hook_takes_effect_in_its_launcher() {
    let mut settings = startable();
    settings.allow_unsafe_environment = true;
    let attack = Attack::new(settings).keys("environment: {LD_PRELOAD: /nonexistent/planted.so, OWN: 'a b'}");
    // The loader complains once for each program that it starts: here only the shell.
    let outcome = attack.outcome("echo \"$OWN\" >&2; pwd >&2; exit 2").await;
    let reason = outcome.reason.unwrap();
    assert_eq!(reason.matches("planted.so").count(), 1, "{reason}");
    assert!(reason.contains("a b"), "{reason}");
    assert!(reason.contains(&attack.root().canonicalize().unwrap().display().to_string()), "{reason}");
    let report = Attack::new(startable()).report("env | grep -c HOOKYARD_PASS_\nenv | grep ^HOOKYARD_HOOK=\nwc -c < /dev/stdin | grep -vx 0 >/dev/null && echo input").await;
    assert_eq!(report.lines().collect::<Vec<_>>(), ["0", "HOOKYARD_HOOK=1", "input"], "{report}");
}
