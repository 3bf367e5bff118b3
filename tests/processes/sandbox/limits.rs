//! Resources of hooks in a sandbox.

use super::*;

#[tokio::test]
async fn a_hook_gets_what_its_limits_allow() {
    let mut settings = unrestricted();
    let limits = &mut settings.sandbox.project.limits;
    limits.file_size = Some(4096);
    limits.files = std::num::NonZeroUsize::new(16);
    limits.memory = Some(256 << 20);
    let mut script = attempt("write a large file", "head -c 100000 /dev/zero > large");
    script += &attempt("open many files", "for n in $(seq 3 30); do eval \"exec $n</dev/null\"; done");
    let mut attacks = 2;
    if Path::new(SYSTEM_PYTHON).exists() {
        script += &attempt("use much memory", &format!("{SYSTEM_PYTHON} -c 'bytearray(1 << 30)'"));
        attacks += 1;
    }
    let attack = Attack::new(settings);
    assert_held(&attack.report(&script).await, attacks);
    assert!(attack.root().join("large").metadata().unwrap().len() <= 4096);
}

#[tokio::test]
async fn a_hook_that_computes_too_long_is_killed() {
    let attack = Attack::new(unrestricted()).keys("sandbox: {limits: {cpu_seconds: 1}}");
    let outcome = attack.outcome("while :; do :; done").await;
    assert_eq!(outcome.hooks[0].ended, Ended::Failed);
    let error = outcome.hooks[0].error.as_deref().unwrap();
    assert!(error.contains("signal 24") || error.contains("signal 9"), "{error}");
    assert_eq!(outcome.verdict, Verdict::Block);
}

#[tokio::test]
async fn a_hook_starts_no_more_processes_than_its_limit() {
    let attack = Attack::new(unrestricted()).keys("sandbox: {limits: {processes: 8}}");
    // Root has no such limit, so root's hook becomes somebody else first.
    let user =
        if rustix::process::geteuid().is_root() { "setpriv --reuid 65534 --clear-groups --" } else { "" };
    let bomb = format!("{user} sh -c 'for n in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done; wait'");
    let outcome = attack.outcome(&format!("{bomb} >/dev/null 2>errors; cat errors >&2; exit 2")).await;
    let reason = outcome.reason.as_deref().unwrap_or_default().to_lowercase();
    assert!(reason.contains("fork") || reason.contains("resource temporarily unavailable"), "{outcome:?}");
}
