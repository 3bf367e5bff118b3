//! Archives and statements that nobody should take.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

use std::{io::Write, time::Duration};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::{
    archive::{BundleFile, MAX_ARCHIVE, MAX_UNPACKED, read_archive, write_archive},
    keys::{BundleSigningKey, BundleVerifyingKey},
    manifest::{BundleManifest, BundleName, sha256_hex},
    path::BundlePath,
    rejection::RejectionKind,
    statement::{BundleStatement, SignedStatement},
    time::BundleTime,
    verify::{check_time, check_version, open_archive, open_bundle},
};

fn file(path: &str, text: &str) -> BundleFile {
    let path = BundlePath::new(path).unwrap();
    BundleFile { path, bytes: text.as_bytes().to_vec(), is_executable: false }
}

fn manifest(version: u64, files: &[BundleFile]) -> BundleManifest {
    BundleManifest {
        name: BundleName::new("acme/guards").unwrap(),
        version,
        not_before: BundleTime::from_seconds(1000),
        expires: Some(BundleTime::from_seconds(2_000_000)),
        min_hookyard: "0.1".to_owned(),
        required: Vec::new(),
        files: files.iter().map(|file| (file.path.clone(), sha256_hex(&file.bytes))).collect(),
    }
}

/// A tar file of these entries, compressed, without any of our checks.
fn raw(write: impl FnOnce(&mut Builder<Vec<u8>>)) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    write(&mut tar);
    gzip(&tar.into_inner().unwrap())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A header as bundles have it, with a name that is not checked.
fn header(name: &[u8], size: usize) -> Header {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(EntryType::Regular);
    header.set_size(size as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    header
}

fn refusal(archive: &[u8]) -> String {
    match read_archive(archive) {
        Ok(_) => "taken".to_owned(),
        Err(refusal) => {
            assert_eq!(refusal.kind, RejectionKind::Archive);
            refusal.message
        }
    }
}

#[test]
fn the_same_files_give_the_same_bytes_and_come_back() {
    let files =
        [file("a/.openharness/hooks/x.yaml", "x"), BundleFile { is_executable: true, ..file("b", "#!") }];
    let manifest = manifest(7, &files);
    let archive = write_archive(&manifest.write(), &files).unwrap();
    assert_eq!(archive, write_archive(&manifest.write(), &files).unwrap());
    let opened = open_archive(&archive).unwrap();
    assert_eq!((opened.manifest, opened.files), (manifest, files.to_vec()));
}

#[test]
fn an_archive_has_plain_files_with_plain_names_only() {
    let entry = |name: &[u8], change: &dyn Fn(&mut Header)| {
        raw(|tar| {
            tar.append(&header(b"manifest.json", 2), &b"{}"[..]).unwrap();
            let mut odd = header(name, 1);
            change(&mut odd);
            odd.set_cksum();
            tar.append(&odd, &b"x"[..]).unwrap();
        })
    };
    let kind = |kind: EntryType| entry(b"x", &|header| header.set_entry_type(kind));
    assert_eq!(refusal(&entry(b"x", &|_| {})), "taken");
    for (archive, expected) in [
        (kind(EntryType::Symlink), "`x` is a symbolic link"),
        (kind(EntryType::Link), "`x` is a hard link"),
        (kind(EntryType::Char), "`x` is a device"),
        (kind(EntryType::Block), "`x` is a device"),
        (kind(EntryType::Fifo), "`x` is a pipe"),
        (kind(EntryType::Directory), "`x` is a directory of its own"),
        (kind(EntryType::XHeader), "`x` is no plain file"),
        (kind(EntryType::XGlobalHeader), "`x` is no plain file"),
        (kind(EntryType::GNULongName), "`x` is no plain file"),
        (kind(EntryType::GNUSparse), "`x` is no plain file"),
        (kind(EntryType::Continuous), "`x` is no plain file"),
        (entry(b"/etc/passwd", &|_| {}), "`/etc/passwd` may not be in it: an absolute path"),
        (entry(b"../x", &|_| {}), "`../x` may not be in it: a name in it is empty, `.` or `..`"),
        (entry(b"a/../../x", &|_| {}), "`a/../../x` may not be in it: a name in it is empty, `.` or `..`"),
        (entry(b"./x", &|_| {}), "`./x` may not be in it: a name in it is empty, `.` or `..`"),
        (entry(b"MANIFEST.JSON", &|_| {}), "`MANIFEST.JSON` and `manifest.json` collide"),
        (entry(b"manifest.json", &|_| {}), "`manifest.json` and `manifest.json` collide"),
        (entry(b"manifest.json/x", &|_| {}), "`manifest.json` and `manifest.json` collide"),
        (entry(b"caf\xc3\xa9", &|_| {}), "names have ASCII letters"),
        (entry(b"caf\xe9", &|_| {}), "the name of a file in it is no text"),
        (entry(b"a\x01", &|_| {}), "names have ASCII letters"),
        (entry(b"x", &|header| header.set_mode(0o4755)), "`x` has attributes that no file of a bundle has"),
        (entry(b"x", &|header| header.set_uid(1)), "`x` has attributes that no file of a bundle has"),
        (entry(b"x", &|header| header.set_mtime(1)), "`x` has attributes that no file of a bundle has"),
        (entry(b"x", &|header| header.set_size(1 << 40)), "`x` is too large"),
    ] {
        let found = refusal(&archive);
        assert!(
            found.contains(expected) || expected.contains("collide") && found.contains("collide"),
            "{found}"
        );
    }
}

#[test]
fn files_that_one_file_system_takes_for_one_are_refused() {
    let of = |names: &[&str]| {
        raw(|tar| {
            tar.append(&header(b"manifest.json", 2), &b"{}"[..]).unwrap();
            for name in names {
                tar.append(&header(name.as_bytes(), 1), &b"x"[..]).unwrap();
            }
        })
    };
    assert_eq!(refusal(&of(&["a", "b"])), "taken");
    assert_eq!(refusal(&of(&["a", "a"])), "`a` and `a` collide");
    assert_eq!(refusal(&of(&["Guard", "guard"])), "`guard` and `Guard` collide");
    assert_eq!(refusal(&of(&["A/x", "a/y"])), "`a/y` and `A` collide");
    assert_eq!(refusal(&of(&["a", "a/b"])), "`a/b` and `a` collide");
    assert_eq!(refusal(&of(&["b", "a"])), "`a` is not in its order");
}

#[test]
fn bombs_are_refused_by_their_bounds() {
    let many = raw(|tar| {
        tar.append(&header(b"manifest.json", 2), &b"{}"[..]).unwrap();
        for number in 0..5000 {
            tar.append(&header(format!("{number:05}").as_bytes(), 0), &b""[..]).unwrap();
        }
    });
    assert!(many.len() < 200_000, "it is a small archive");
    assert_eq!(refusal(&many), "it has more than 4096 files");
    let large = gzip(&vec![0; MAX_UNPACKED + 1]);
    assert!(large.len() < 1 << 20, "it is a small archive");
    assert!(refusal(&large).starts_with("it has more than 67108864 bytes"), "{}", refusal(&large));
    assert_eq!(refusal(&vec![0; MAX_ARCHIVE + 1]), "it is too large");
    let manifest =
        raw(|tar| tar.append(&header(b"manifest.json", 2 << 20), &vec![b' '; 2 << 20][..]).unwrap());
    assert_eq!(refusal(&manifest), "`manifest.json` is too large");
}

#[test]
fn what_follows_the_end_is_refused() {
    let files = [file("x", "x")];
    let archive = write_archive(&manifest(1, &files).write(), &files).unwrap();
    assert_eq!(refusal(&[archive.as_slice(), b"x"].concat()), "something follows it");
    assert_eq!(refusal(&[archive.as_slice(), &archive].concat()), "something follows it");
    let hidden = raw(|tar| tar.append(&header(b"manifest.json", 2), &b"{}"[..]).unwrap());
    let tar = {
        let mut tar = Builder::new(Vec::new());
        tar.append(&header(b"manifest.json", 2), &b"{}"[..]).unwrap();
        let mut bytes = tar.into_inner().unwrap();
        bytes.extend(vec![0; 512]);
        bytes
    };
    assert_eq!(refusal(&hidden), "taken");
    assert_eq!(refusal(&gzip(&tar)), "it does not end as it should");
    assert!(refusal(&raw(|_| {})).starts_with("it does not end"));
    assert!(
        refusal(&raw(|tar| tar.append(&header(b"x", 1), &b"x"[..]).unwrap()))
            .starts_with("it begins with `x`")
    );
}

#[test]
fn a_manifest_has_one_form_and_fits_the_files() {
    let files = [file("x", "x")];
    let good = String::from_utf8(manifest(1, &files).write()).unwrap();
    let with = |manifest: &str| {
        let archive = write_archive(manifest.as_bytes(), &files).unwrap();
        open_archive(&archive).map_err(|refusal| (refusal.kind, refusal.message))
    };
    assert!(with(&good).is_ok());
    for (from, to, expected) in [
        ("\"v\": 1", "\"v\": 2", "another format"),
        ("\"v\": 1,", "\"v\": 1, \"extra\": 1,", "unknown field"),
        ("\"v\": 1,", "\"v\": 1, \"v\": 1,", "duplicate field"),
        ("\"v\": 1", "\"v\":1", "as hookyard writes it"),
        ("acme/guards", "acme//guards", "no name"),
        ("acme/guards", "Acme", "no name"),
        ("1970-01-01T00:16:40Z", "1970-01-01", "`not_before`"),
        ("1970-01-24T03:33:20Z", "soon", "`expires`"),
        ("\"0.1\"", "\"new\"", "`min_hookyard`"),
        ("\"x\":", "\"y\":", "`x` is not in its manifest"),
        ("\"x\":", "\"../x\":", "may not be in it"),
        ("\"x\": \"2d", "\"x\": \"2e", "`x` is not as its manifest says"),
        ("\"x\": \"2d", "\"x\": \"2D", "no SHA-256"),
    ] {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from}");
        let (kind, message) = with(&changed).unwrap_err();
        assert!(kind == RejectionKind::Manifest && message.contains(expected), "{expected}: {message}");
    }
    let digest = sha256_hex(b"y");
    let two = good.replace("\"x\": ", &format!("\"a\": \"{digest}\",\n    \"x\": "));
    assert!(with(&two).unwrap_err().1.contains("`a` is in its manifest and not in its archive"));
}

#[test]
fn a_statement_is_read_in_one_form_and_counts_by_its_signature() {
    let files = [file("x", "x")];
    let archive = write_archive(&manifest(3, &files).write(), &files).unwrap();
    let keys = [1, 2].map(|seed| BundleSigningKey::from_seed([seed; 32]).unwrap());
    let mut signed = SignedStatement::unsigned(BundleStatement::about(&manifest(3, &files), &archive));
    let own = [keys[0].public()];
    assert_eq!(signed.verify(&own).unwrap_err().message, "nobody has signed it");
    signed.sign(&keys[1]).unwrap();
    assert!(signed.verify(&own).unwrap_err().message.starts_with("none of the keys"));
    assert!(signed.verify(&[]).is_err());
    signed.sign(&keys[0]).unwrap();
    assert_eq!(signed.verify(&own), Ok(own[0]));
    let text = signed.write();
    assert!(text.len() < 1024, "a poll with two signatures is small: {}", text.len());
    assert_eq!(SignedStatement::read(text.as_bytes()), Ok(signed.clone()));
    // Every bit of it counts.
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            let is_good = |read: SignedStatement| {
                read.verify(&[keys[0].public()]).and(read.verify(&[keys[1].public()]))
            };
            let taken = SignedStatement::read(&bytes).and_then(is_good);
            assert!(taken.is_err(), "byte {at}, bit {bit}");
        }
    }
    for length in 0..text.len() {
        let taken = SignedStatement::read(&text.as_bytes()[..length]);
        let is_whole = taken.is_ok_and(|read| read.verify(&own).is_ok() && read.signatures_left() == 2);
        assert!(!is_whole, "{length} bytes");
    }
    assert!(SignedStatement::read(&[b' '; 5000]).is_err());
    assert!(open_bundle(&signed.statement, &archive).is_ok());
    assert_eq!(open_bundle(&signed.statement, &archive[1..]).unwrap_err().kind, RejectionKind::Damaged);
}

#[test]
fn a_bundle_counts_in_its_time_and_follows_an_older_one_of_its_name() {
    let statement = |name: &str, version: u64| {
        let files = [file("x", "x")];
        let mut found = BundleStatement::about(&manifest(version, &files), b"");
        found.name = BundleName::new(name).unwrap();
        found
    };
    let one = statement("acme/guards", 5);
    let kind = |result: Result<(), super::BundleRejection>| result.err().map(|refusal| refusal.kind);
    let at = |seconds: u64| kind(check_time(&one, BundleTime::from_seconds(seconds)));
    assert_eq!((at(1000), at(1_999_999)), (None, None));
    assert_eq!(at(2_000_000), Some(RejectionKind::Expired));
    let mut later = one.clone();
    later.not_before = BundleTime::from_seconds(1_000_000);
    let day = Duration::from_hours(24);
    let early = later.not_before.minus(day);
    assert_eq!(kind(check_time(&later, early)), None, "a clock may be a day late");
    let too_early = BundleTime::from_seconds(early.seconds() - 1);
    assert_eq!(kind(check_time(&later, too_early)), Some(RejectionKind::NotYet));
    assert_eq!(kind(check_version(&statement("acme/guards", 6), "acme/guards", 5)), None);
    assert_eq!(
        kind(check_version(&statement("acme/guards", 5), "acme/guards", 5)),
        Some(RejectionKind::Older)
    );
    assert_eq!(
        kind(check_version(&statement("acme/guards", 4), "acme/guards", 5)),
        Some(RejectionKind::Older)
    );
    assert_eq!(kind(check_version(&statement("acme/other", 6), "acme/guards", 5)), Some(RejectionKind::Name));
}

#[test]
fn a_key_has_one_form() {
    let key = BundleSigningKey::from_seed([7; 32]).unwrap();
    let public = key.public().to_string();
    assert_eq!(BundleVerifyingKey::parse(&public), Some(key.public()));
    assert_eq!(BundleSigningKey::parse(&key.secret_line()).unwrap().public(), key.public());
    for wrong in ["", "ed25519:", &public.to_uppercase(), &format!("{public}0"), &format!(" {public}")] {
        assert_eq!(BundleVerifyingKey::parse(wrong), None, "{wrong}");
    }
    assert!(!format!("{key:?}").contains("0707"), "a private key is never printed");
    assert_ne!(
        BundleSigningKey::generate().unwrap().public(),
        BundleSigningKey::generate().unwrap().public()
    );
}
