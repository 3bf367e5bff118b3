//! What a killed hookyard left behind: what the next one ends, and what it leaves alone.

use super::*;

#[test]
fn an_unrecorded_group_is_found_by_its_mark() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let mark = mark(&path);
    let of = |life: &str| LeftGroup::of("exec sleep 600", &[("HOOKYARD_HOOK", "1"), ("HOOKYARD_LIFE", life)]);
    let (own, foreign) = (of(&mark), of("1-1"));
    own.until(1);
    foreign.until(1);
    assert_eq!(reaped(&path), 1);
    own.until(0);
    assert_eq!(foreign.living().len(), 1);
}

const MARKED: &[(&str, &str)] = &[("HOOKYARD_HOOK", "1")];

#[test]
fn a_group_that_runs_on_is_ended_with_its_members() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let group = LeftGroup::of("sleep 600 & sleep 600", &[]);
    group.until(3);
    group.written(&path, 0);
    assert_eq!(reaped(&path), 1);
    assert!(group.living().is_empty());
}

#[test]
fn groups_that_ignore_sigterm_share_one_grace_period() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let stubborn = "trap '' TERM; while :; do sleep 1; done";
    let single = LeftGroup::of(stubborn, &[]);
    single.until(2);
    single.written(&path, 0);
    let since = clock();
    assert_eq!(reaped(&path), 1);
    let of_one = clock() - since;
    let groups = [stubborn, stubborn, "kill -STOP $$"].map(|line| LeftGroup::of(line, &[]));
    for group in &groups {
        group.until(if group.id() == groups[2].id() { 1 } else { 2 });
        group.written(&path, 0);
    }
    let since = clock();
    assert_eq!(reaped(&path), 3);
    let of_three = clock() - since;
    assert!(of_three < 2 * of_one, "the grace is one for all: {of_one} ns for one, {of_three} ns for three");
    assert!(groups.iter().all(|group| group.living().is_empty()));
}

#[test]
fn without_a_leader_marked_members_are_ended() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let mut group = LeftGroup::of("sleep 600 & env -u HOOKYARD_HOOK sleep 600 & exit 0", MARKED);
    group.shell.wait().unwrap();
    group.until(2);
    // Not before `env` has become what it starts.
    wait_until("`env` is `sleep`", || group.living().iter().all(|process| process.name == "sleep"));
    group.written(&path, 0);
    assert_eq!(reaped(&path), 1);
    let left = group.living();
    assert_eq!(left.len(), 1, "whoever is not marked is left alone");
    let environment = fs::read(format!("/proc/{}/environ", left[0].pid)).unwrap();
    assert!(!String::from_utf8(environment).unwrap().contains("HOOKYARD_HOOK"));
}

#[test]
#[cfg_attr(hookyard_portable, ignore = "the second of its start is all that is known of a process")]
fn a_group_started_at_another_time_is_left_alone() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    for move_by in [-60_000, -200, 200, 60_000] {
        let group = LeftGroup::of("sleep 600 & sleep 600", MARKED);
        group.until(3);
        group.written(&path, move_by);
        assert_eq!(reaped(&path), 0, "{move_by} ms");
        assert_eq!(group.living().len(), 3, "{move_by} ms");
    }
}

/// Only root can start somebody else's process.
#[test]
fn another_users_group_is_left_alone() {
    let _alone = alone();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (_folder, path) = empty_ledger();
    for line in ["exec sleep 600", "sleep 600 & exit 0"] {
        #[expect(clippy::disallowed_methods, reason = "this process is nobody's hook")]
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", line]).current_dir("/").envs(MARKED.iter().copied()).uid(65_534);
        let mut group = LeftGroup::led_by(shell);
        if line.contains("exit") {
            group.shell.wait().unwrap();
        }
        group.until(1);
        group.written(&path, 0);
        assert_eq!(reaped(&path), 0, "{line}");
        assert_eq!(group.living().len(), 1, "{line}");
    }
}

#[test]
fn a_process_that_leads_no_group_is_left_alone() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let group = LeftGroup::of("sleep 600 & sleep 600", MARKED);
    group.until(3);
    let member = group.living().into_iter().find(|process| process.pid != group.id()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    for pid in [member.pid, std::process::id(), 1] {
        let line = format!("{pid} {} {}", group.from, clock());
        fs::write(&path, format!("{text}{line:<63}\n")).unwrap();
        assert_eq!(reaped(&path), 0);
    }
    assert_eq!(group.living().len(), 3);
}

#[test]
#[cfg_attr(
    hookyard_portable,
    ignore = "there are no names of boots and namespaces; `platform` tests what there is"
)]
fn a_ledger_of_another_boot_or_namespace_is_ignored() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let group = LeftGroup::of("exec sleep 600", MARKED);
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let other = "00000000-0000-4000-8000-000000000000";
    for (from, to) in [(boot.trim(), other), ("pid:[", "pid:]"), ("groups 2", "groups 3")] {
        group.written(&path, 0);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
        assert_eq!(reaped(&path), 0, "{to}");
    }
    assert_eq!(group.living().len(), 1);
}

#[test]
fn an_unreadable_ledger_is_no_error_and_kills_nobody() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let group = LeftGroup::of("exec sleep 600", MARKED);
    let head = fs::read_to_string(&path).unwrap();
    group.written(&path, 0);
    let whole = fs::read(&path).unwrap();
    let bad_lines =
        ["-1 0 1", "0 0 1", "99999999999 0 1", &format!("{} 0 {}", group.id(), u64::MAX), "\0", "é"];
    let mut cases: Vec<_> = bad_lines.map(|line| format!("{head}{line:<63}\n").into_bytes()).into();
    cases.extend([0, 1, 60, 127, 128, 129, whole.len() - 1].map(|length| whole[..length].to_vec()));
    cases.extend([vec![0; 4096], vec![0xff; 4096], b"\n".repeat(999), whole[1..].to_vec()]);
    for case in cases {
        fs::write(&path, &case).unwrap();
        assert_eq!(reaped(&path), 0, "{}", String::from_utf8_lossy(&case));
    }
    assert_eq!(group.living().len(), 1);
    fs::write(&path, whole).unwrap();
    assert_eq!(reaped(&path), 1, "the whole of it is read");
}

#[test]
fn a_file_that_others_may_have_written_is_refused() {
    let _alone = alone();
    let (folder, path) = empty_ledger();
    let at = |name: &str| folder.path().join(name);
    symlink(&path, at("link")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), 0o600.into()).unwrap();
    fs::write(at("open"), "").unwrap();
    fs::set_permissions(at("open"), fs::Permissions::from_mode(0o620)).unwrap();
    fs::write(at("one"), "").unwrap();
    fs::hard_link(at("one"), at("other")).unwrap();
    let mut refused = vec!["link", "directory", "pipe", "open", "one"];
    if rustix::process::geteuid().is_root() {
        fs::write(at("foreign"), "").unwrap();
        std::os::unix::fs::chown(at("foreign"), Some(65_534), None).unwrap();
        refused.push("foreign");
    }
    for name in refused {
        let error = GroupLedger::open(&at(name)).unwrap_err();
        assert!(matches!(error, LedgerError::Untrusted { .. }), "{name}: {error}");
    }
    let error = GroupLedger::open(&at("no/such")).unwrap_err();
    assert!(matches!(error, LedgerError::Io { .. }), "{error}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn there_is_one_ledger_in_a_process_and_one_process_at_a_ledger() {
    let _alone = alone();
    let (folder, path) = empty_ledger();
    let (ledger, _) = GroupLedger::open(&path).unwrap();
    let error = GroupLedger::open(&path).unwrap_err();
    let own = std::process::id().cast_signed();
    assert!(matches!(error, LedgerError::InUse { pid, .. } if pid == Some(own)), "{error}");
    assert!(error.to_string().contains(&format!("another hookyard (pid {own}) uses")), "{error}");
    let error = GroupLedger::open(&folder.path().join("other")).unwrap_err();
    assert!(matches!(error, LedgerError::Second { .. }), "{error}");
    drop(ledger);
    assert_eq!(reaped(&path), 0);
}
