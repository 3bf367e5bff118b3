//! Records of last good rules that are cut, changed, of another user, or cannot be written.

use super::*;

#[test]
fn a_record_that_cannot_be_used_blocks_what_nobody_can_know_and_is_written_again() {
    let mut daemon = shop().file(GUARD, &guard("guard", "no")).serve();
    let sound = fs::read_to_string(record(&daemon.path())).unwrap();
    let half = sound[..sound.len() / 2].to_owned();
    let other = sound.replacen("/shop\"", "/other\"", 1);
    let tampered = sound.replace("exit 2", "exit 0");
    let newer = sound.replacen("\"version\":1", "\"version\":2", 1);
    let more = sound.replacen("\"files\"", "\"more\":1,\"files\"", 1);
    let cases = [
        ("", "damaged"),
        (&half, "damaged"),
        (&tampered, "damaged"),
        (&more, "damaged"),
        (&other, "another workspace"),
        (&newer, "version is 2"),
    ];
    for (text, why) in cases {
        assert_ne!(text, sound, "{why}");
        daemon = killed(daemon, |here| {
            fs::write(record(here), text).unwrap();
            fs::write(here.join(GUARD), BROKEN).unwrap();
        })
        .serve();
        for tool in ["Bash", "Read"] {
            let blocked = word(&daemon, tool);
            assert!(
                blocked.contains("its file is broken, and what it was before cannot be used"),
                "{why}: {blocked}"
            );
        }
        let status = daemon.get("/v1/workspaces/shop");
        assert!(status["diagnostics"].to_string().contains(why), "{status}");
        assert_eq!(broken_files(&daemon), ["0", "0", "1"]);
        assert!(checked(&daemon).iter().any(|remark| remark.contains(why)));
        // It holds for as long as the file is broken.
        assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
        assert_ne!(word(&daemon, "Read"), "-");
        // A file without mistakes says all that there is to know.
        fs::write(daemon.path().join(GUARD), guard("guard", "no")).unwrap();
        wait_until("it is mended", || word(&daemon, "Read") == "-" && word(&daemon, "Bash") == "no");
        daemon = killed(daemon, |here| fs::write(here.join(GUARD), BROKEN).unwrap()).serve();
        assert_eq!(word(&daemon, "Bash"), "no", "{why}");
    }
    daemon = killed(daemon, |here| {
        fs::set_permissions(record(here), fs::Permissions::from_mode(0o644)).unwrap();
    })
    .serve();
    assert_ne!(word(&daemon, "Read"), "-");
    daemon.finish();
}

#[test]
fn a_former_rule_that_cannot_be_read_any_more_blocks_as_it_said() {
    let broken_word = |daemon: Daemon, change: &dyn Fn(&str) -> String| {
        let daemon = killed(daemon, |here| {
            let mut known: Value = serde_json::from_slice(&fs::read(record(here)).unwrap()).unwrap();
            let text = change(known["files"][0]["text"].as_str().unwrap());
            known["files"][0]["sha256"] = json!(sha256(&text));
            known["files"][0]["text"] = json!(text);
            fs::write(record(here), known.to_string()).unwrap();
            fs::write(here.join(GUARD), BROKEN).unwrap();
        })
        .serve();
        (word(&daemon, "Bash"), word(&daemon, "Read"), daemon)
    };
    // A key that this version does not know, in a guard and in a hook that lets pass when it fails.
    let unknown = |text: &str| format!("{text}no_such_key: 1\n");
    for (policy, expected) in [("deny", "cannot be used"), ("ignore", "-")] {
        let text = guard("guard", "no").replace("handler:", &format!("on_error: {policy}\nhandler:"));
        let daemon = shop().file(GUARD, &text).serve();
        let (bash, read, daemon) = broken_word(daemon, &unknown);
        assert!(bash.contains(expected) && read == "-", "{policy}: {bash}, {read}");
        let details = daemon.get("/v1/workspaces/shop");
        assert!(
            details["diagnostics"].to_string().contains("cannot be used either: unknown key"),
            "{details}"
        );
        assert_eq!(broken_files(&daemon), ["0", "0", "1"]);
        daemon.finish();
    }
}

#[test]
fn records_of_another_user_keep_the_daemon_from_starting() {
    if !geteuid().is_root() {
        println!("skipped: only root can give files away");
        return;
    }
    let mut daemon = shop().file(GUARD, &guard("guard", "no")).serve();
    daemon.signal(Signal::TERM);
    daemon.wait();
    chown(daemon.path().join("data/rules"), Some(12_345), None).unwrap();
    let mut daemon = daemon.again().spawn();
    assert_eq!(daemon.wait().code(), Some(1));
    let log = daemon.log();
    assert!(
        log.contains("the last good rules cannot be kept in") && log.contains("belongs to another user"),
        "{log}"
    );
}

fn sha256(text: &str) -> String {
    let mut command = Command::new("sh");
    let output = command.args(["-c", "printf %s \"$0\" | sha256sum | cut -c1-64", text]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_record_that_cannot_be_written_is_an_error() {
    let daemon = shop().file(GUARD, &guard("guard", "no")).serve();
    let kept = record(&daemon.path());
    // A daemon that has just begun may write it once more.
    wait_until("something else has its place", || {
        drop(fs::remove_file(&kept));
        fs::create_dir_all(kept.join("in the way")).is_ok()
    });
    fs::write(daemon.path().join(GUARD), guard("guard", "never")).unwrap();
    wait_until("it is logged", || daemon.log().contains("the last good rules cannot be"));
    assert!(
        daemon.log().contains("ERROR") || daemon.log().contains("\"level\":\"error\""),
        "{}",
        daemon.log()
    );
    // The file was empty for a moment, which may be what was loaded last.
    wait_until("the new rule is in force", || word(&daemon, "Bash") == "never");
    daemon.finish();
}

#[test]
fn a_file_is_what_it_is_since_an_earlier_daemon_saw_it_so() {
    const SINCE: u64 = 1_700_000_000;
    let daemon = shop().file(GUARD, &guard("guard", "no")).serve();
    let daemon = killed(daemon, |here| {
        let mut known: Value = serde_json::from_slice(&fs::read(record(here)).unwrap()).unwrap();
        known["files"][0]["since"] = json!(SINCE);
        fs::write(record(here), known.to_string()).unwrap();
    })
    .serve();
    fs::write(daemon.path().join(GUARD), BROKEN).unwrap();
    let since = || daemon.get("/v1/status")["broken"][0]["last_good"][0]["since"].as_u64();
    wait_until("it is broken", || since().is_some());
    assert_eq!(since(), Some(SINCE));
    // Another content is another rule, and no older than that.
    fs::write(daemon.path().join(GUARD), guard("guard", "never")).unwrap();
    wait_until("it is mended", || word(&daemon, "Bash") == "never");
    fs::write(daemon.path().join(GUARD), BROKEN).unwrap();
    wait_until("it is broken again", || since().is_some());
    assert!(since() > Some(SINCE), "{:?}", since());
    daemon.finish();
}
