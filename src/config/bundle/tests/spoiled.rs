//! Bundles that are spoiled, cut off, old or of somebody else: none is taken.

use std::collections::BTreeMap;

use super::{
    super::{KeptFault, TakenBundle},
    machine::{DAY, OfferedBundle, START, TestMachine, file, manifest_of, offer_of, usual_files},
};
use crate::bundle::{BundleFile, BundleManifest, BundleName, BundleTime, RejectionKind};

/// Numbers that depend on nothing but a seed: `SplitMix64`.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 1).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn flip(&mut self, bytes: &mut [u8]) {
        let at = self.next() % bytes.len();
        bytes[at] ^= 1 << (self.next() % 8);
    }

    fn cut(&mut self, bytes: &mut Vec<u8>) {
        bytes.truncate(self.next() % bytes.len());
    }
}

/// The ways to spoil an offer.
const SPOILS: usize = 18;

/// An offer that nobody should take: `good` is newer than what is in force, and right.
fn spoiled(machine: &TestMachine, good: &OfferedBundle, way: usize, random: &mut Numbers) -> OfferedBundle {
    let mut offer = good.clone();
    let version = 6 + random.next() as u64 % 1000;
    let files = usual_files(version);
    let manifest = manifest_of("acme/guards", version, &files);
    let key = &machine.key;
    let with = |change: &dyn Fn(&mut BundleManifest, &mut Vec<BundleFile>)| {
        let (mut manifest, mut files) = (manifest.clone(), files.clone());
        change(&mut manifest, &mut files);
        offer_of(&manifest, &files, key)
    };
    match way {
        0 => random.flip(&mut offer.archive),
        1 => random.flip(&mut offer.statement),
        2 => random.cut(&mut offer.archive),
        3 => random.cut(&mut offer.statement),
        4 => {
            let at = random.next() % (offer.archive.len() + 1);
            offer.archive.insert(at, random.byte());
        }
        5 => {
            let at = random.next() % (offer.statement.len() + 1);
            offer.statement.insert(at, random.byte());
        }
        // The archive of another bundle that was signed, and the other way round.
        6 => offer.archive = offer_of(&manifest, &files, key).archive,
        7 => offer.statement = offer_of(&manifest, &files, key).statement,
        // What is old, is in force already with another content, or was signed by somebody else.
        8 => offer = machine.offer(random.next() as u64 % 5),
        9 => {
            offer = with(&|manifest, _| {
                manifest.version = 5;
                "0.0.9".clone_into(&mut manifest.min_hookyard);
            });
        }
        10 => offer = offer_of(&manifest, &files, &machine.other),
        // A statement about a spoiled archive that carries the signature of the good one.
        11 => {
            let mut files = files.clone();
            files[1].bytes.extend_from_slice(b"rm -rf /\n");
            let forged = offer_of(&manifest_of("acme/guards", version, &files), &files, &machine.other);
            let text = String::from_utf8(forged.statement).unwrap();
            let good = String::from_utf8(good.statement.clone()).unwrap();
            let signature = good.lines().last().unwrap();
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("signature")).collect();
            offer.statement = format!("{}\n{signature}\n", lines.join("\n")).into_bytes();
            offer.archive = forged.archive;
        }
        12 => offer = with(&|manifest, _| manifest.expires = Some(BundleTime::from_seconds(START + 10))),
        13 => {
            offer = with(&|manifest, _| manifest.not_before = BundleTime::from_seconds(START + 80 * DAY));
        }
        14 => offer = with(&|manifest, _| manifest.name = BundleName::new("acme/other").unwrap()),
        // Signed, and wrong inside: an extra file, a missing one, a swapped one.
        15 => offer = with(&|_, files| files.push(file("z", "extra"))),
        16 => offer = with(&|_, files| files.truncate(2)),
        _ => offer = with(&|_, files| files[1].bytes = b"#!/bin/sh\nexit 0\n".to_vec()),
    }
    offer
}

#[test]
fn of_ten_thousand_spoiled_bundles_none_is_taken() {
    use RejectionKind::{Damaged, Expired, Manifest, Name, NotYet, Older, Signature, Statement};
    let machine = TestMachine::new();
    let now = START + DAY * 2;
    assert_eq!(machine.take(&machine.offer(5), now), Ok(TakenBundle::Now));
    let good = machine.offer(6);
    let mut random = Numbers(20_261_126);
    let mut kinds: BTreeMap<RejectionKind, usize> = BTreeMap::new();
    let mut tried = 0;
    for round in 0..10_000 {
        let way = round % SPOILS;
        let offer = spoiled(&machine, &good, way, &mut random);
        // An insertion of the byte that is there already, or the like, spoils nothing.
        if offer.statement == good.statement && offer.archive == good.archive {
            continue;
        }
        tried += 1;
        match machine.take(&offer, now) {
            Ok(taken) => panic!("way {way}, round {round}: {taken:?}"),
            Err(refusal) => *kinds.entry(refusal.kind).or_default() += 1,
        }
    }
    assert!(tried > 9_990, "{tried}");
    assert_eq!(machine.version(), Some(5));
    for kind in [Statement, Signature, Older, Name, Expired, NotYet, Damaged, Manifest] {
        assert!(kinds.get(&kind).is_some_and(|count| *count > 100), "{kind}: {kinds:?}");
    }
    assert_eq!(machine.take(&good, now), Ok(TakenBundle::Now), "the good one is taken");
    assert_eq!((machine.version(), machine.take(&good, now)), (Some(6), Ok(TakenBundle::Already)));
}

#[test]
fn a_bundle_that_is_cut_off_at_any_byte_is_not_taken() {
    let machine = TestMachine::new();
    let good = machine.offer(1);
    for length in 0..good.archive.len() {
        let cut = OfferedBundle { archive: good.archive[..length].to_vec(), ..good.clone() };
        assert!(machine.take(&cut, START).is_err(), "archive, {length}");
    }
    for length in 0..good.statement.len() {
        let cut = OfferedBundle { statement: good.statement[..length].to_vec(), ..good.clone() };
        assert!(machine.take(&cut, START).is_err(), "statement, {length}");
    }
    assert_eq!(machine.fault(), Some(KeptFault::Missing));
    assert!(!machine.store().directory().exists(), "nothing was written");
    machine.take(&good, START).unwrap();
}
