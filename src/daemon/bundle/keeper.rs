//! What the daemon knows of its bundle: what is in force, and what came of the last poll.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use reqwest::header::HeaderValue;
use tokio::{task::spawn_blocking, time::Instant};

use super::{clock::BundleClock, fetch::BundleServer};
use crate::{
    Orchestrator,
    bundle::{BundleRejection, BundleTime, RejectionKind, SignedStatement},
    config::{
        BundleInForce, BundleMoment, BundleStanding, BundleStore, BundleTaker, ChangedFiles, ClockTrust,
        KeptFault, OlderBundles, Settings, StatementCheck, TakenBundle, data_directory,
    },
    telemetry::{BundleGauges, PollResult, expect_bundles},
};

/// After which time something that was wrong is tried again: the archive of a bundle that was not taken is downloaded, and
/// what is kept and could not be used is read. What was missing on this machine, or at the server, may be there by then.
pub(super) const SECOND_TRY: Duration = Duration::from_mins(10);

/// The bundle of a daemon.
#[derive(Debug)]
pub(in crate::daemon) struct BundleKeeper {
    /// The settings of everything: hooks of bundles are loaded with some of them.
    settings: Arc<Settings>,
    pub(super) store: Option<BundleStore>,
    pub(super) server: Option<BundleServer>,
    pub(super) clock: BundleClock,
    /// What was read last.
    pub(super) read: ArcSwapOption<BundleInForce>,
    read_at: Mutex<Option<Instant>>,
    /// What every workspace was loaded with last.
    in_force: ArcSwapOption<BundleInForce>,
    confirmed: Mutex<ConfirmedTimes>,
    /// Whether a server has borne out the clock of this machine.
    is_borne_out: AtomicBool,
    /// What was in force when the hooks were published last.
    published: Mutex<Option<PublishedBundle>>,
    /// The archive that the disk names, as it was when that was looked up last.
    looked_at: Mutex<Option<String>>,
    pub(super) memory: Mutex<PollMemory>,
    pub(super) changes: Mutex<CopyChanges>,
    gauges: Mutex<BundleGauges>,
}

/// What a published statement comes to, before its archive is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckedOffer {
    /// The archive is needed.
    Needed,
    /// It is in force.
    InForce,
    /// It is in force, and brought signatures that are kept now.
    Signed,
}

/// When a server has confirmed the bundle.
#[derive(Debug)]
struct ConfirmedTimes {
    /// The last time in the life of this daemon.
    here: BundleTime,
    /// What the disk says may be from a clock that was ahead, and counts as this at the latest.
    latest: BundleTime,
}

impl ConfirmedTimes {
    fn bound(&mut self, now: BundleTime) {
        self.here = self.here.min(now);
        self.latest = self.latest.min(now);
    }
}

/// How much a server is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BundleNeed {
    /// What is in force is as it should be.
    None,
    /// It is stale.
    Stale,
    /// There is none that can be used.
    Unusable,
}

/// What is remembered from poll to poll.
#[derive(Debug, Default)]
pub(super) struct PollMemory {
    /// The entity tag of a statement, and the archive that it is about.
    pub(super) etag: Option<(HeaderValue, String)>,
    /// A statement that was not taken, and when it is tried again.
    pub(super) rejected: Option<RejectedStatement>,
    pub(super) last: Option<LastPoll>,
}

/// What was found changed in the copy since the daemon started.
#[derive(Debug, Clone, Default)]
pub(in crate::daemon) struct CopyChanges {
    /// How often.
    pub(in crate::daemon) count: u64,
    /// What it was last.
    pub(in crate::daemon) last: Option<String>,
    /// Why it could not be undone; while that is so, no command of the bundle starts.
    pub(in crate::daemon) fault: Option<String>,
}

/// A statement that was not taken.
#[derive(Debug, Clone)]
pub(super) struct RejectedStatement {
    pub(super) bytes: Vec<u8>,
    pub(super) rejection: BundleRejection,
    pub(super) again: Instant,
}

/// The last poll, for people.
#[derive(Debug, Clone)]
pub(in crate::daemon) struct LastPoll {
    pub(in crate::daemon) result: PollResult,
    pub(in crate::daemon) at: SystemTime,
    /// Why it failed, or why the bundle was not taken.
    pub(in crate::daemon) why: Option<String>,
}

/// What decides which hooks of a bundle are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PublishedBundle {
    archive: Option<String>,
    standing: Option<&'static str>,
}

impl BundleKeeper {
    /// The keeper for the bundle of the settings, if they have one.
    pub(in crate::daemon) fn of(settings: &Settings) -> Option<Self> {
        expect_bundles(RejectionKind::ALL.iter().map(|kind| kind.as_str()));
        let data = data_directory(settings, &|name| std::env::var(name).ok());
        if !settings.bundle.is_configured() {
            let kept = data.map(|data| BundleStore::in_data(&data));
            if let Some(store) = kept.filter(|store| store.archive_in_force().is_some()) {
                let directory = store.directory().display().to_string();
                tracing::warn!(
                    directory,
                    "a signed bundle is kept here, and the settings name none: its hooks are not in force"
                );
            }
            return None;
        }
        Some(Self {
            store: data.map(|data| BundleStore::in_data(&data)),
            server: settings.bundle.url.clone().map(BundleServer::new),
            settings: Arc::new(settings.clone()),
            clock: BundleClock::start(),
            read: ArcSwapOption::empty(),
            read_at: Mutex::default(),
            in_force: ArcSwapOption::empty(),
            confirmed: Mutex::new(ConfirmedTimes {
                here: BundleTime::default(),
                latest: BundleTime::from_seconds(u64::MAX),
            }),
            is_borne_out: AtomicBool::new(false),
            published: Mutex::default(),
            looked_at: Mutex::default(),
            memory: Mutex::default(),
            changes: Mutex::default(),
            gauges: Mutex::default(),
        })
    }

    /// What is in force in every workspace, once they were loaded.
    pub(in crate::daemon) fn in_force(&self) -> Option<Arc<BundleInForce>> {
        self.in_force.load_full()
    }

    pub(in crate::daemon) fn last_poll(&self) -> Option<LastPoll> {
        self.memory.lock().last.clone()
    }

    /// The name of the server, if there is one.
    pub(in crate::daemon) fn server_name(&self) -> Option<String> {
        self.server.as_ref().map(BundleServer::name)
    }

    /// The time that counts for what is in force.
    pub(in crate::daemon) fn moment(&self, found: &BundleInForce) -> BundleMoment {
        let clock = self.clock.now();
        let moment = found.moment(clock);
        // Once a server has borne the clock out, what was seen before counts no more.
        let is_borne_out = self.is_borne_out.load(Ordering::Relaxed);
        let now = if is_borne_out { BundleTime::of(clock) } else { moment.now };
        let confirmed = self.confirmed.lock();
        let confirmed = moment.confirmed.min(confirmed.latest).max(confirmed.here);
        BundleMoment { now, confirmed: confirmed.min(now) }
    }

    /// Reads what is kept, mends its files, and has its hooks apply to what is loaded from now on.
    pub(in crate::daemon) async fn read(&self, orchestrator: &Orchestrator) {
        let (settings, has_model) = (Arc::clone(&self.settings), orchestrator.model_lookup());
        let read = spawn_blocking(move || {
            let environment = |name: &str| std::env::var(name).ok();
            BundleInForce::read(&settings, &environment, &*has_model, ChangedFiles::Replaced)
        });
        // Fails only where the daemon ends.
        let Ok(found) = read.await else { return };
        self.note_restored(&found);
        *self.read_at.lock() = Some(Instant::now());
        let moment = self.moment(&found);
        orchestrator.set_managed(found.level(&self.settings, moment));
        *self.published.lock() = Some(self.published_as(&found, moment));
        self.read.store(Some(Arc::new(found)));
    }

    /// Every workspace has been loaded with what was read last.
    pub(in crate::daemon) fn settle(&self) {
        let found = self.read.load_full();
        if let Some(found) = &found {
            self.measure(found, self.moment(found));
        }
        self.in_force.store(found);
    }

    fn published_as(&self, found: &BundleInForce, moment: BundleMoment) -> PublishedBundle {
        let kept = found.found.as_ref().ok();
        PublishedBundle {
            archive: kept.map(|(kept, _)| kept.signed.statement.archive.clone()),
            standing: found.standing(&self.settings, moment).map(BundleStanding::as_str),
        }
    }

    fn measure(&self, found: &BundleInForce, moment: BundleMoment) {
        let version = found.version();
        let age = version.map(|_| moment.now.since(moment.confirmed));
        let standing = found.standing(&self.settings, moment);
        let is_stale = matches!(standing, Some(BundleStanding::Stale(_)));
        self.gauges.lock().set(version, age, is_stale);
    }

    /// Whether other hooks are to be in force than were published: time has gone on, or somebody has installed a bundle.
    pub(super) async fn is_outdated(&self) -> bool {
        let Some(found) = self.read.load_full() else { return true };
        let moment = self.moment(&found);
        self.measure(&found, moment);
        if self.published.lock().as_ref() != Some(&self.published_as(&found, moment)) {
            return true;
        }
        let is_faulty = found.found.as_ref().is_err_and(|fault| *fault != KeptFault::Missing);
        if is_faulty && self.read_at.lock().is_some_and(|at| at.elapsed() >= SECOND_TRY) {
            return true;
        }
        let Some(store) = self.store.clone() else { return false };
        let on_disk = spawn_blocking(move || store.archive_in_force()).await.ok().flatten();
        let known = found.found.as_ref().ok().map(|(kept, _)| kept.signed.statement.archive.clone());
        let looked_at = std::mem::replace(&mut *self.looked_at.lock(), on_disk.clone());
        // What cannot be used stays so until something else is there.
        on_disk.is_some() && on_disk != known && on_disk != looked_at
    }

    /// Takes note of the time of a server, before anything that it has is judged by the clock.
    ///
    /// Returns whether it bears the clock out.
    pub(super) async fn bear_out(&self, server: Option<SystemTime>) -> ClockTrust {
        if !self.clock.confirm(server) {
            return ClockTrust::Alone;
        }
        self.is_borne_out.store(true, Ordering::Relaxed);
        let clock = self.clock.now();
        let now = BundleTime::of(clock);
        self.confirmed.lock().bound(now);
        self.note(move |store| store.note_time(clock, ClockTrust::Confirmed)).await;
        ClockTrust::Confirmed
    }

    /// Notes that the server has confirmed what is in force.
    pub(super) async fn confirm(&self, trust: ClockTrust) {
        let clock = self.clock.now();
        self.confirmed.lock().here = BundleTime::of(clock);
        self.note(move |store| store.confirm(clock, trust)).await;
    }

    /// Notes the time, so that a clock that is set back before the next start revives nothing.
    pub(super) async fn note_time(&self) {
        let clock = self.clock.now();
        self.note(move |store| store.note_time(clock, ClockTrust::Alone)).await;
    }

    async fn note(&self, write: impl FnOnce(&BundleStore) -> Result<(), BundleRejection> + Send + 'static) {
        let Some(store) = self.store.clone() else { return };
        let noted = spawn_blocking(move || write(&store)).await;
        if let Ok(Err(error)) = noted {
            tracing::warn!(%error, "the time of the bundle cannot be written down");
        }
    }

    /// Checks a statement before its archive is fetched.
    pub(super) async fn check(&self, signed: SignedStatement) -> Result<CheckedOffer, BundleRejection> {
        let is_usable = self.is_usable();
        let check = move |taker: &BundleTaker<'_>, clock| {
            let offered = taker.check(&signed, clock)?;
            Ok(match offered {
                StatementCheck::New => CheckedOffer::Needed,
                // Nothing is wrong with what is kept where only its hooks cannot be loaded.
                _ if !is_usable && !taker.is_whole() => CheckedOffer::Needed,
                StatementCheck::InForce => CheckedOffer::InForce,
                StatementCheck::Signed => CheckedOffer::Signed,
            })
        };
        self.with_taker(None, check).await
    }

    /// The entity tag with which the server may answer that nothing is new: that of what is in force and can be used.
    pub(super) fn etag(&self) -> Option<HeaderValue> {
        let found = self.read.load_full()?;
        let (kept, _) = found.found.as_ref().ok()?;
        let (tag, archive) = self.memory.lock().etag.clone()?;
        (kept.signed.statement.archive == archive).then_some(tag)
    }

    /// How much the server is needed.
    pub(super) fn need(&self) -> BundleNeed {
        let Some(found) = self.read.load_full() else { return BundleNeed::Unusable };
        match found.standing(&self.settings, self.moment(&found)) {
            None => BundleNeed::Unusable,
            Some(BundleStanding::Stale(_)) => BundleNeed::Stale,
            Some(BundleStanding::Current) => BundleNeed::None,
        }
    }

    /// Whether there is a bundle that can be used.
    pub(super) fn is_usable(&self) -> bool {
        self.read.load().as_ref().is_some_and(|found| found.found.is_ok())
    }

    /// Takes a bundle.
    pub(super) async fn take(
        &self,
        orchestrator: &Orchestrator,
        signed: SignedStatement,
        archive: Vec<u8>,
    ) -> Result<TakenBundle, BundleRejection> {
        self.with_taker(Some(orchestrator), move |taker, clock| taker.take(&signed, &archive, clock)).await
    }

    async fn with_taker<T: Send + 'static>(
        &self,
        orchestrator: Option<&Orchestrator>,
        work: impl FnOnce(&BundleTaker<'_>, SystemTime) -> Result<T, BundleRejection> + Send + 'static,
    ) -> Result<T, BundleRejection> {
        let storage = |why: &str| BundleRejection::new(RejectionKind::Storage, why);
        let store = self.store.clone().ok_or_else(|| storage("there is no directory to keep it in"))?;
        let (settings, clock) = (Arc::clone(&self.settings), self.clock.now());
        let has_model = orchestrator.map(Orchestrator::model_lookup);
        let done = spawn_blocking(move || {
            let models = |reference: &str| has_model.as_ref().is_some_and(|has| has(reference));
            let taker = BundleTaker {
                store,
                settings: &settings,
                environment: &|name| std::env::var(name).ok(),
                models: &models,
                older: OlderBundles::Refused,
            };
            work(&taker, clock)
        });
        done.await.map_err(|_| storage("the daemon is ending"))?
    }
}
