//! What is kept on disk is what was signed, or is not used.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use super::{
    super::{ChangedFiles, KeptFault},
    machine::{START, TestMachine, block},
};
use crate::model::FailurePolicy;

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
            if path.is_dir() { pending.push(path) } else { kept.push(path) }
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
