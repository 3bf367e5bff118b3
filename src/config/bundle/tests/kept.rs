//! What is kept on disk is what was signed, or is not used.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{
    super::{ChangedFiles, ClockTrust, KeptFault, TakenBundle},
    machine::{START, TestMachine, block, clock},
};
use crate::{bundle::RejectionKind, model::FailurePolicy};

#[test]
fn what_is_kept_is_verified_at_each_start() {
    let machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    let data = machine.store().directory().to_owned();
    let mut kept = Vec::new();
    let mut pending = vec![data.clone()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if !path.ends_with("lock") {
                kept.push(path);
            }
        }
    }
    assert_eq!(kept.len(), 6, "state, statement, archive, and three files: {kept:?}");
    for path in kept {
        let bytes = fs::read(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions();
        let mut spoiled = bytes.clone();
        let middle = spoiled.len() / 2;
        spoiled[middle] ^= 1;
        for spoiled in [spoiled, bytes[..bytes.len() - 1].to_vec(), Vec::new()] {
            write(&path, &spoiled);
            let fault = machine.fault();
            assert!(matches!(fault, Some(KeptFault::Unusable(_))), "{}: {fault:?}", path.display());
            assert_eq!(block(&machine.level(START)), Some(FailurePolicy::Deny));
        }
        write(&path, &bytes);
        fs::set_permissions(&path, mode).unwrap();
        assert_eq!(machine.fault(), None, "{}", path.display());
    }
    fs::remove_file(data.join("state.json")).unwrap();
    assert_eq!(machine.fault(), Some(KeptFault::Missing));
}

fn write(path: &Path, bytes: &[u8]) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_daemon_unpacks_files_again_that_somebody_changed_or_added() {
    let machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    let files = machine.in_force(ChangedFiles::Reported).found.unwrap().0.files;
    let script = files.join("core/guard.sh");
    let approval = machine.level(START).hooks[0].trust.approval().unwrap();
    assert_eq!(approval.check(), Ok(()));
    write(&script, b"#!/bin/sh\nexit 1\n");
    let refused = approval.check().unwrap_err();
    assert!(refused.contains("`core/guard.sh` was changed since the bundle was verified"), "{refused}");
    assert!(machine.in_force(ChangedFiles::Replaced).found.is_ok());
    assert_eq!(fs::read_to_string(&script).unwrap(), "#!/bin/sh\n# 1\nexit 0\n");
    assert_eq!(approval.check(), Ok(()));
    fs::set_permissions(files.join("core"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(files.join("core/extra.sh"), "x").unwrap();
    assert!(approval.check().unwrap_err().contains("extra.sh is none of its files"));
    assert!(machine.fault().is_some());
    assert!(machine.in_force(ChangedFiles::Replaced).found.is_ok());
    assert!(!files.join("core/extra.sh").exists());
}

#[test]
fn a_link_in_the_place_of_a_directory_is_a_change_whatever_it_leads_to() {
    let machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    let files = machine.in_force(ChangedFiles::Reported).found.unwrap().0.files;
    let approval = machine.level(START).hooks[0].trust.approval().unwrap();
    for (place, above) in [(files.clone(), files.parent().unwrap()), (files.join("core"), &files)] {
        let elsewhere = machine.directory.path().join("elsewhere");
        fs::set_permissions(above, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
        fs::rename(&place, &elsewhere).unwrap();
        symlink(&elsewhere, &place).unwrap();
        fs::write(elsewhere.join("more.sh"), "x").unwrap();
        assert!(approval.check().is_err(), "{}", place.display());
        assert!(machine.fault().is_some(), "{}", place.display());
        assert!(machine.in_force(ChangedFiles::Replaced).found.is_ok());
        assert!(place.symlink_metadata().unwrap().is_dir());
        assert_eq!(approval.check(), Ok(()));
        fs::remove_dir_all(&elsewhere).unwrap();
    }
}

#[test]
fn bundles_that_are_taken_at_the_same_time_as_others_are_confirmed_are_not_lost() {
    let machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also where a bundle is not taken: the scope waits for the other thread.
        let _ends = Ends(&is_over);
        // As a daemon that is told the time again and again.
        scope.spawn(|| {
            for step in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                machine.store().confirm(clock(START + step * 600), ClockTrust::Alone).unwrap();
                // The other one has its turn as well.
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        for version in 2..40 {
            let taken = machine.take(&machine.offer(version), START).unwrap();
            assert_eq!((taken, machine.version()), (TakenBundle::Now, Some(version)));
        }
    });
}

/// Ends a thread when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn of_two_that_take_bundles_at_once_the_newer_one_stays() {
    let machine = TestMachine::new();
    machine.take(&machine.offer(1), START).unwrap();
    for round in 0..15 {
        let (older, newer) = (machine.offer(2 * round + 2), machine.offer(2 * round + 3));
        std::thread::scope(|scope| {
            for offer in [&older, &newer] {
                scope.spawn(|| match machine.take(offer, START) {
                    Ok(_) => {}
                    Err(refusal) => assert_eq!(refusal.kind, RejectionKind::Older, "{}", refusal.message),
                });
            }
            // Whoever reads meanwhile finds a whole one.
            scope.spawn(|| assert_eq!(machine.fault(), None));
        });
        assert_eq!(machine.version(), Some(2 * round + 3));
    }
}
