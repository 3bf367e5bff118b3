//! What is kept of a signed bundle, read as a machine reads it at each start.

use std::{
    fmt::Write as _,
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use hookyard::config::{DataDirectory, Settings, load_workspace};
use ring::{
    digest::{SHA256, digest},
    signature::{Ed25519KeyPair, KeyPair},
};
use serde_json::Value;

use super::check_text;

/// An archive and its statement, as `hookyard bundle` made them with a key of 32 bytes 7.
const ARCHIVE: &[u8] = include_bytes!("../bundle/guards.tar.gz");
const STATEMENT: &str = include_str!("../bundle/guards.tar.gz.sig");

/// The largest archive that is unpacked here.
const LARGEST: u64 = 1 << 20;

/// A block of tar.
const BLOCK: usize = 512;

/// A statement, an archive, the tar file in one, or its manifest, after a line that says which. All but a statement is signed, so
/// that nothing but what is read keeps it out. What is in force is what was built; anything else blocks, and says why.
pub fn bundle(bytes: &[u8]) {
    let Some(at) = bytes.iter().position(|byte| *byte == b'\n') else { return };
    let (kind, rest) = (&bytes[..at], &bytes[at + 1..]);
    let tar = unpacked(ARCHIVE).expect("it is a good one");
    let manifest = manifest_of(&tar);
    match kind {
        b"statement" if is_in_force(rest, ARCHIVE) => {
            assert!(rest.starts_with(signed_lines().as_bytes()), "{}", String::from_utf8_lossy(rest));
        }
        b"archive" if is_in_force(&signed(rest, manifest), rest) => {
            assert_eq!(unpacked(rest).as_ref(), Some(&tar), "the same files in another packing");
        }
        b"tar" => {
            let archive = packed(rest);
            if is_in_force(&signed(&archive, manifest), &archive) {
                assert_eq!(rest, tar, "there is one form only");
            }
        }
        b"manifest" => {
            let archive = packed(&with_manifest(&tar, rest));
            if is_in_force(&signed(&archive, rest), &archive) {
                let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("only JSON is one");
                assert_eq!(read(rest)["files"], read(manifest)["files"], "each file is in the manifest");
            }
        }
        _ => {}
    }
}

/// Whether the guard of what is kept is in force. If not, every event that can be stopped is blocked.
fn is_in_force(statement: &[u8], archive: &[u8]) -> bool {
    let place = tempfile::tempdir().expect("there is room");
    let root = place.path().canonicalize().expect("it is there");
    let digest = sha256(archive);
    let kept = root.join("data/bundle").join(&digest);
    DirBuilder::new().recursive(true).mode(0o700).create(&kept).expect("there is room");
    fs::set_permissions(root.join("data"), Permissions::from_mode(0o700)).expect("it is there");
    write_file(&kept.join("statement"), statement, 0o600);
    write_file(&kept.join("archive.tar.gz"), archive, 0o600);
    let state = format!(
        r#"{{"v":1,"archive":"{digest}","former":null,"since":1,"confirmed":1,"seen":1,"versions":{{}}}}"#
    );
    write_file(&root.join("data/bundle/state.json"), state.as_bytes(), 0o600);
    for (path, mode) in [("core/.openharness/hooks/guard.yaml", 0o400), ("core/scripts/guard.sh", 0o500)] {
        let path = kept.join("files").join(path);
        fs::create_dir_all(path.parent().expect("it is below")).expect("there is room");
        let content: &[u8] = match mode {
            0o400 => include_bytes!("../bundle/guard.yaml"),
            _ => b"#!/bin/sh\nexit 2\n",
        };
        write_file(&path, content, mode);
    }
    fs::create_dir(root.join("shop")).expect("there is room");
    let mut settings = Settings {
        home: Some(root.join("home")),
        system_directory: Some(root.join("home")),
        data: DataDirectory::At(root.join("data")),
        ..Settings::default()
    };
    settings.bundle.keys = vec![public_key()];
    let loaded = load_workspace(&root.join("shop"), None, &settings, &|_| None);
    loaded.diagnostics.iter().for_each(|found| check_text(&found.message));
    let has = |name: &str| loaded.hooks.iter().any(|hook| hook.name.as_str() == name);
    assert_ne!(has("guard"), has("bundle"), "{:?}", loaded.diagnostics);
    has("guard")
}

fn write_file(path: &Path, bytes: &[u8], mode: u32) {
    let mut file = OpenOptions::new();
    let mut file = file.write(true).create_new(true).mode(mode).open(path).expect("there is room");
    file.write_all(bytes).expect("there is room");
}

fn key() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("it is a key")
}

fn public_key() -> String {
    format!("ed25519:{}", digits(key().public_key().as_ref()))
}

/// What is signed of the good statement.
fn signed_lines() -> &'static str {
    STATEMENT.split("signature").next().expect("there is one")
}

/// A statement about an archive with this manifest, which says of itself what the manifest says.
fn signed(archive: &[u8], manifest: &[u8]) -> Vec<u8> {
    let said: Value = serde_json::from_slice(manifest).unwrap_or_default();
    let mut text = String::new();
    for line in signed_lines().lines() {
        let key = line.split(' ').next().unwrap_or_default();
        let value = match key {
            "manifest" => sha256(manifest),
            "archive" => format!("{} {}", sha256(archive), archive.len()),
            "expires" if said["expires"].is_null() => "never".to_owned(),
            "hookyard" => "bundle 1".to_owned(),
            _ => said[key].as_str().map_or_else(|| said[key].to_string(), str::to_owned),
        };
        writeln!(text, "{key} {value}").expect("a text takes everything");
    }
    let signature = digits(key().sign(text.as_bytes()).as_ref());
    format!("{text}signature {} {signature}\n", public_key()).into_bytes()
}

fn digits(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a text takes everything");
    }
    text
}

fn sha256(bytes: &[u8]) -> String {
    digits(digest(&SHA256, bytes).as_ref())
}

fn unpacked(archive: &[u8]) -> Option<Vec<u8>> {
    let mut tar = Vec::new();
    GzDecoder::new(archive).take(LARGEST).read_to_end(&mut tar).ok()?;
    Some(tar)
}

fn packed(tar: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(tar).expect("there is room");
    gzip.finish().expect("there is room")
}

/// The size of the first file, which is the manifest.
fn manifest_size(tar: &[u8]) -> usize {
    let text = std::str::from_utf8(&tar[124..135]).expect("a number");
    usize::from_str_radix(text, 8).expect("a number")
}

fn manifest_of(tar: &[u8]) -> &[u8] {
    &tar[BLOCK..BLOCK + manifest_size(tar)]
}

/// The tar file with another manifest.
fn with_manifest(tar: &[u8], manifest: &[u8]) -> Vec<u8> {
    let mut header = tar[..BLOCK].to_vec();
    header[124..135].copy_from_slice(format!("{:011o}", manifest.len()).as_bytes());
    // The checksum counts itself as blanks.
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:07o}").as_bytes());
    header[155] = 0;
    let mut changed = [&header, manifest].concat();
    changed.resize(changed.len().next_multiple_of(BLOCK), 0);
    changed.extend_from_slice(&tar[BLOCK + manifest_size(tar).next_multiple_of(BLOCK)..]);
    changed
}
