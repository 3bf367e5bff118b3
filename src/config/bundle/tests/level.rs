//! Which hooks are in force, and which bundles are taken.

use std::{fs, time::Duration};

use super::{
    super::{
        super::{
            LoadContext, StalePolicy, WorkspaceKind, WorkspaceSettings, load::load_in_context,
            settings::HandlerSettings,
        },
        ClockTrust, KeptFault, OlderBundles, StatementCheck, TakenBundle,
    },
    machine::{
        DAY, GUARD, OfferedBundle, RULE, START, TestMachine, block, clock, file, manifest_of, names,
        offer_of, usual_files,
    },
};
use crate::{
    bundle::{BundleFile, BundleSigningKey, RejectionKind, SignedStatement},
    model::FailurePolicy,
};

#[test]
fn a_key_that_is_taken_away_takes_its_bundle_out_of_use_and_blocks() {
    let mut machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    assert_eq!((block(&machine.level(START)), machine.version()), (None, Some(1)));
    machine.settings.bundle.keys = vec![machine.other.public().to_string()];
    let KeptFault::Unusable(why) = machine.fault().unwrap() else { panic!("it is unusable") };
    assert_eq!(why, "none of the keys in `bundle.keys` has signed it");
    for (policy, expected) in [
        (StalePolicy::Keep, FailurePolicy::Deny),
        (StalePolicy::Deny, FailurePolicy::Deny),
        (StalePolicy::Ask, FailurePolicy::Ask),
    ] {
        machine.settings.bundle.on_stale = policy;
        let level = machine.level(START);
        assert_eq!((names(&level.hooks), block(&level)), (vec!["bundle"], Some(expected)), "{policy:?}");
    }
    // The other key has signed none that was in force, so that any of its own counts.
    let files = usual_files(1);
    let next = offer_of(&manifest_of("acme/guards", 2, &files), &files, &machine.other);
    machine.take(&next, START).unwrap();
    assert_eq!((block(&machine.level(START)), machine.version()), (None, Some(2)));
}

#[test]
fn any_of_several_keys_signs() {
    let mut machine = TestMachine::new();
    let files = usual_files(1);
    let offer = offer_of(&manifest_of("acme/guards", 1, &files), &files, &machine.other);
    assert_eq!(machine.take(&offer, START).unwrap_err().kind, RejectionKind::Signature);
    machine.settings.bundle.keys.push(machine.other.public().to_string());
    machine.take(&offer, START).unwrap();
    // Signed by both, it outlives the end of each.
    let mut signed = SignedStatement::read(&machine.offer(2).statement).unwrap();
    signed.sign(&machine.other).unwrap();
    let both = OfferedBundle { statement: signed.write().into_bytes(), ..machine.offer(2) };
    machine.take(&both, START).unwrap();
    for key in [machine.key.public(), machine.other.public()] {
        machine.settings.bundle.keys = vec![key.to_string()];
        assert_eq!(machine.version(), Some(2), "{key}");
    }
}

#[test]
fn a_signature_that_is_added_to_the_version_in_force_is_kept_whatever_else_is_added_on_the_way() {
    let mut machine = TestMachine::new();
    let offer = machine.offer(1);
    machine.take(&offer, START).unwrap();
    let mut crowd = SignedStatement::read(&offer.statement).unwrap();
    for _ in 0..7 {
        crowd.sign(&BundleSigningKey::generate().unwrap()).unwrap();
    }
    let crowded = OfferedBundle { statement: crowd.write().into_bytes(), ..offer.clone() };
    assert_eq!(machine.take(&crowded, START), Ok(TakenBundle::Signed));
    // The other key comes to the settings before its signature.
    machine.settings.bundle.keys.push(machine.other.public().to_string());
    let mut both = SignedStatement::read(&offer.statement).unwrap();
    both.sign(&machine.other).unwrap();
    let both = OfferedBundle { statement: both.write().into_bytes(), ..offer.clone() };
    assert_eq!(machine.take(&both, START), Ok(TakenBundle::Signed));
    assert_eq!(machine.take(&both, START), Ok(TakenBundle::Already));
    // Whoever takes signatures away on the way takes none away here.
    assert_eq!(machine.take(&offer, START), Ok(TakenBundle::Already));
    for key in [machine.other.public(), machine.key.public()] {
        machine.settings.bundle.keys = vec![key.to_string()];
        assert_eq!(machine.version(), Some(1), "{key}");
    }
    // It counts as one of the other key from then on.
    machine.settings.bundle.keys = vec![machine.other.public().to_string()];
    let files = usual_files(1);
    let older = offer_of(&manifest_of("acme/guards", 0, &files), &files, &machine.other);
    assert_eq!(machine.take(&older, START).unwrap_err().kind, RejectionKind::Older);
}

#[test]
fn a_bundle_whose_key_was_revoked_is_in_force_again_once_its_other_signature_comes() {
    let mut machine = TestMachine::new();
    let offer = machine.offer(1);
    machine.take(&offer, START).unwrap();
    machine.settings.bundle.keys = vec![machine.other.public().to_string()];
    assert!(machine.fault().is_some());
    let mut both = SignedStatement::read(&offer.statement).unwrap();
    both.sign(&machine.other).unwrap();
    assert_eq!(machine.check(&both, START), Ok(StatementCheck::Signed));
    assert_eq!((machine.fault(), machine.version()), (None, Some(1)), "its archive is there already");
}

#[test]
fn after_a_stolen_key_was_revoked_its_versions_do_not_count_and_those_of_others_do() {
    let mut machine = TestMachine::new();
    let [stolen, honest] = [&machine.key, &machine.other].map(|key| key.public().to_string());
    machine.settings.bundle.keys = vec![stolen, honest.clone()];
    let of_other = |machine: &TestMachine, version: u64| {
        let files = usual_files(version);
        offer_of(&manifest_of("acme/guards", version, &files), &files, &machine.other)
    };
    let mut both = SignedStatement::read(&machine.offer(100).statement).unwrap();
    both.sign(&machine.other).unwrap();
    let both = OfferedBundle { statement: both.write().into_bytes(), ..machine.offer(100) };
    machine.take(&both, START).unwrap();
    for version in [u64::MAX - 1, u64::MAX] {
        machine.take(&machine.offer(version), START).unwrap();
    }
    assert_eq!(machine.take(&of_other(&machine, 101), START).unwrap_err().kind, RejectionKind::Older);
    machine.settings.bundle.keys = vec![honest];
    assert_eq!(block(&machine.level(START)), Some(FailurePolicy::Deny));
    for version in [99, 100] {
        let refused = machine.take(&of_other(&machine, version), START).unwrap_err();
        assert_eq!(refused.kind, RejectionKind::Older, "{}", refused.message);
    }
    machine.take(&of_other(&machine, 101), START).unwrap();
    assert_eq!((block(&machine.level(START)), machine.version()), (None, Some(101)));
}

#[test]
fn a_machine_takes_the_bundle_that_its_settings_name_and_no_other_of_the_same_key() {
    let mut machine = TestMachine::new();
    let named = |machine: &TestMachine, name: &str, version: u64| {
        let files = usual_files(version);
        offer_of(&manifest_of(name, version, &files), &files, &machine.key)
    };
    machine.settings.bundle.name = Some("acme/guards".to_owned());
    let lax = named(&machine, "acme/lax", 9);
    for older in [OlderBundles::Refused, OlderBundles::Permitted] {
        let refused = machine.take_with(&lax, START, older).unwrap_err();
        assert_eq!(refused.kind, RejectionKind::Name);
        assert_eq!(refused.message, "it is `acme/lax`, and `bundle.name` is `acme/guards`");
    }
    machine.take(&named(&machine, "acme/guards", 5), START).unwrap();
    // Another name in the settings takes what is kept out of force, and lets the other one in, whatever its version.
    machine.settings.bundle.name = Some("acme/lax".to_owned());
    let KeptFault::Unusable(why) = machine.fault().unwrap() else { panic!("it is unusable") };
    assert_eq!(why, "it is `acme/guards`, and `bundle.name` is `acme/lax`");
    assert_eq!(block(&machine.level(START)), Some(FailurePolicy::Deny));
    machine.take(&named(&machine, "acme/lax", 2), START).unwrap();
    assert_eq!(machine.version(), Some(2));
    // Without a name, the one in force decides.
    machine.settings.bundle.name = None;
    let refused = machine.take(&named(&machine, "acme/guards", 6), START).unwrap_err();
    assert_eq!(refused.message, "it is `acme/guards`, and `acme/lax` is in force");
}

#[test]
fn an_older_version_needs_a_word() {
    let machine = TestMachine::new();
    machine.take(&machine.offer(7), START).unwrap();
    assert_eq!(machine.take(&machine.offer(6), START).unwrap_err().kind, RejectionKind::Older);
    machine.take_with(&machine.offer(6), START, OlderBundles::Permitted).unwrap();
    assert_eq!(machine.version(), Some(6));
    // The word is for the version, and for nothing else.
    let foreign = offer_of(&manifest_of("acme/guards", 5, &usual_files(5)), &usual_files(5), &machine.other);
    let refused = machine.take_with(&foreign, START, OlderBundles::Permitted).unwrap_err();
    assert_eq!(refused.kind, RejectionKind::Signature);
    let late = machine.take_with(&machine.offer(5), START + 91 * DAY, OlderBundles::Permitted).unwrap_err();
    assert_eq!(late.kind, RejectionKind::Expired);
}

#[test]
fn what_was_in_force_is_taken_again_where_the_record_of_it_is_lost() {
    let machine = TestMachine::new();
    let record = machine.directory.path().join("data/bundle/state.json");
    machine.take(&machine.offer(6), START).unwrap();
    machine.take(&machine.offer(7), START).unwrap();
    for spoiled in [None, Some(""), Some("{\"v\":1,\"new\":true}")] {
        fs::remove_file(&record).unwrap();
        if let Some(text) = spoiled {
            fs::write(&record, text).unwrap();
        }
        assert_eq!(block(&machine.level(START)), Some(FailurePolicy::Deny), "{spoiled:?}");
        assert_eq!(machine.take(&machine.offer(6), START).unwrap_err().kind, RejectionKind::Older);
        machine.take(&machine.offer(7), START).unwrap();
        assert_eq!((machine.version(), block(&machine.level(START))), (Some(7), None), "{spoiled:?}");
    }
}

#[test]
fn a_stale_bundle_does_what_the_settings_say_and_a_clock_set_back_revives_nothing() {
    let mut machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    let end = START + 90 * DAY;
    for (policy, expected) in [
        (StalePolicy::Keep, None),
        (StalePolicy::Ask, Some(FailurePolicy::Ask)),
        (StalePolicy::Deny, Some(FailurePolicy::Deny)),
    ] {
        machine.settings.bundle.on_stale = policy;
        assert_eq!(block(&machine.level(end - 1)), None, "{policy:?}");
        let level = machine.level(end);
        assert_eq!(block(&level), expected, "{policy:?}");
        assert!(names(&level.hooks).starts_with(&["guard", "rule"]), "its hooks stay in force: {policy:?}");
        assert!(level.diagnostics.iter().any(|found| found.message.contains("is stale: it expired at")));
    }
    machine.store().note_time(clock(end), ClockTrust::Alone).unwrap();
    assert_eq!(block(&machine.level(START)), Some(FailurePolicy::Deny), "the clock was set back");
    machine.store().confirm(clock(START + DAY), ClockTrust::Alone).unwrap();
    assert_eq!(block(&machine.level(START + DAY)), Some(FailurePolicy::Deny), "nothing bears the clock out");
    // A server that has the right time corrects a clock that was wrong for a while.
    machine.store().confirm(clock(START + DAY), ClockTrust::Confirmed).unwrap();
    assert_eq!(block(&machine.level(START + DAY)), None);
}

#[test]
fn a_bundle_that_no_server_confirms_is_stale_after_the_longest_time() {
    let mut machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    machine.settings.bundle.max_age = Some(Duration::from_hours(72));
    machine.settings.bundle.on_stale = StalePolicy::Deny;
    assert_eq!(block(&machine.level(START + 30 * DAY)), None, "without a server nobody can confirm it");
    machine.settings.bundle.url =
        Some(crate::model::Address::parse("https://hooks.example/x.bundle").unwrap());
    assert_eq!(block(&machine.level(START + 3 * DAY)), None);
    assert_eq!(block(&machine.level(START + 3 * DAY + 1)), Some(FailurePolicy::Deny));
    machine.store().confirm(clock(START + 4 * DAY), ClockTrust::Alone).unwrap();
    assert_eq!(block(&machine.level(START + 7 * DAY)), None);
}

#[test]
fn a_bundle_with_a_hook_that_cannot_be_loaded_is_not_taken() {
    let machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    let refusal = |files: Vec<BundleFile>, required: &str| {
        let mut files = files;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let mut manifest = manifest_of("acme/guards", 2, &files);
        manifest.required = vec![required.to_owned()];
        let refusal = machine.take(&offer_of(&manifest, &files, &machine.key), START).unwrap_err();
        assert_eq!(refusal.kind, RejectionKind::Hooks, "{}", refusal.message);
        refusal.message
    };
    let hook = |text: &str| file("a/.openharness/hooks/x.yaml", text);
    let broken =
        refusal(vec![hook(&GUARD.replace("command:", "comand:")), file("a/guard.sh", "#!")], "guard");
    assert!(broken.starts_with("a/.openharness/hooks/x.yaml:4: "), "{broken}");
    let mut twins = usual_files(2);
    twins.push(hook(RULE));
    assert!(refusal(twins, "rule").contains("two of its hooks are called `rule`"));
    let off = RULE.replace("on_error", "enabled: false\non_error");
    assert!(refusal(vec![hook(&off)], "rule").contains("the required hook `rule` is disabled"));
    assert!(refusal(vec![hook(RULE)], "guard").contains("it requires `guard`, which it does not have"));
    assert!(refusal(vec![file("readme", "x")], "guard").contains("a bundle has 1 to 2048 hooks"));
    let settings = refusal(vec![hook(RULE), file("a/.claude/settings.json", "{}")], "rule");
    assert!(settings.contains("is a settings file of an agent"), "{settings}");
    assert_eq!((machine.version(), block(&machine.level(START))), (Some(1), None));
    let left = fs::read_dir(machine.store().directory()).unwrap().count();
    assert_eq!(left, 3, "only the bundle in force, its state and the lock are kept");
}

#[test]
fn nothing_below_a_bundle_switches_its_hooks_off() {
    let mut machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    let shop = machine.directory.path().join("shop");
    fs::create_dir_all(shop.join(".openharness/hooks")).unwrap();
    fs::write(shop.join(".openharness/hooks/guard.yaml"), RULE.replace("name: rule", "name: guard")).unwrap();
    fs::write(shop.join(".openharness/settings.yaml"), "kind: chat\ndialects: [claude]\n").unwrap();
    let claude = machine.directory.path().join("home/.claude");
    fs::create_dir_all(&claude).unwrap();
    fs::write(claude.join("settings.json"), r#"{"disableAllHooks": true}"#).unwrap();
    let off = HandlerSettings { enabled: false, ..HandlerSettings::default() };
    machine.settings.handlers =
        ["guard", "rule", "./guard.sh"].map(|name| (name.to_owned(), off.clone())).into();
    machine.settings.levels.allow_disable = vec!["guard".to_owned(), "rule".to_owned()];
    machine.settings.max_timeout = Duration::from_mins(10);
    for kind in [None, Some(WorkspaceKind::Chat), Some(WorkspaceKind::Project)] {
        let given = WorkspaceSettings { kind, ..WorkspaceSettings::new(&shop) };
        let level = machine.level(START);
        let context = LoadContext { managed: Some(&level), ..LoadContext::new(&|_| None) };
        let loaded = load_in_context(&given, None, &machine.settings, &context);
        let own: Vec<_> = loaded.hooks.iter().filter(|hook| hook.source.bundle.is_some()).collect();
        assert_eq!(own.len(), 2, "{kind:?}");
        for hook in own {
            assert!(hook.enabled && hook.trust.approval().is_some(), "{kind:?}: {}", hook.name);
            assert!(["guard", "rule"].contains(&hook.name.as_str()), "it keeps its name: {}", hook.name);
            assert_eq!(hook.source.bundle.as_ref().unwrap().to_string(), "acme/guards 1");
        }
        assert_eq!(loaded.required.len(), 1, "{kind:?}");
    }
}
