//! Which hooks the bundle of this machine has in force at a time, and taking a new one.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use super::{
    super::{Settings, managed_level::ManagedLevel, settings::StalePolicy, trust::data_directory},
    hooks::{BundleHooks, HookPurpose, load_bundle_hooks},
    standing::{BundleStanding, StaleReason},
    store::{BundleStore, ChangedFiles, KeptBundle, KeptFault},
    taking::OlderBundles,
    trusted::BundleTrust,
};
use crate::{
    bundle::{BundleRejection, BundleTime, SignedStatement, open_bundle},
    model::{Diagnostic, FailurePolicy, HookBundle, Severity},
};

/// Looks up variables of hookyard's own environment.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the bundle of this machine comes to.
#[derive(Debug, Clone)]
pub(crate) struct BundleInForce {
    /// Where bundles are kept.
    pub(crate) place: PathBuf,
    /// The bundle with its hooks, or why there is none that can be used.
    pub(crate) found: Result<(KeptBundle, BundleHooks), KeptFault>,
}

/// A time, and when a server has confirmed the bundle last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BundleMoment {
    pub(crate) now: BundleTime,
    pub(crate) confirmed: BundleTime,
}

/// The level of the bundle that the settings name, as it is on disk now; none if they name none. Nothing is written.
pub(crate) fn managed_level(
    settings: &Settings,
    environment: Environment<'_>,
    models: &dyn Fn(&str) -> bool,
) -> Option<ManagedLevel> {
    if !settings.bundle.is_configured() {
        return None;
    }
    let found = BundleInForce::read(settings, environment, models, ChangedFiles::Reported);
    Some(found.level(settings, found.moment(SystemTime::now())))
}

impl BundleInForce {
    /// Reads and verifies what is kept.
    pub(crate) fn read(
        settings: &Settings,
        environment: Environment<'_>,
        models: &dyn Fn(&str) -> bool,
        changed: ChangedFiles,
    ) -> Self {
        let Some(data) = data_directory(settings, environment) else {
            let why = "a bundle is kept in `data`, which is not set".to_owned();
            return Self { place: "bundle".into(), found: Err(KeptFault::Unusable(why)) };
        };
        let store = BundleStore::in_data(&data);
        let found = store.read(&BundleTrust::of(settings), changed).and_then(|kept| {
            let hooks = load_bundle_hooks(
                &kept.bundle,
                &kept.files,
                settings,
                environment,
                models,
                HookPurpose::InForce,
            );
            let hooks = hooks.map_err(|refusal| KeptFault::Hooks(refusal.message))?;
            Ok((kept, hooks))
        });
        Self { place: store.directory().to_owned(), found }
    }

    /// The version of the bundle, if there is one that can be used.
    #[cfg(feature = "daemon")]
    pub(crate) fn version(&self) -> Option<u64> {
        self.found.as_ref().ok().map(|(kept, _)| kept.signed.statement.version)
    }

    /// What counts as the time of a clock, for what is kept as it is on disk.
    pub(crate) fn moment(&self, clock: SystemTime) -> BundleMoment {
        let now = BundleTime::of(clock);
        match &self.found {
            // A clock that was set back does not revive what is over.
            Ok((kept, _)) => BundleMoment { now: now.max(kept.seen), confirmed: kept.confirmed },
            Err(_) => BundleMoment { now, confirmed: now },
        }
    }

    /// Whether what is kept is stale; nothing if there is none that can be used.
    pub(crate) fn standing(&self, settings: &Settings, moment: BundleMoment) -> Option<BundleStanding> {
        let (kept, _) = self.found.as_ref().ok()?;
        let max_age = settings.bundle.max_age.filter(|_| settings.bundle.url.is_some());
        Some(BundleStanding::of(&kept.signed.statement, moment.confirmed, max_age, moment.now))
    }

    /// Its hooks, and the block that its state calls for.
    pub(crate) fn level(&self, settings: &Settings, moment: BundleMoment) -> ManagedLevel {
        let policy = settings.bundle.on_stale;
        let (kept, hooks) = match &self.found {
            Ok(found) => found,
            Err(fault) => {
                let why = fault.message(settings);
                return ManagedLevel::unusable(&self.place, policy, &why);
            }
        };
        let mut level = ManagedLevel {
            hooks: hooks.hooks.clone(),
            required: hooks.required.clone(),
            diagnostics: hooks.diagnostics.clone(),
        };
        level.diagnostics.extend(self.powerless(settings, hooks));
        match self.standing(settings, moment) {
            Some(BundleStanding::Stale(reason)) => self.add_stale(&mut level, kept, policy, reason),
            _ => level.diagnostics.push(self.remark(kept, hooks.hooks.len())),
        }
        level
    }

    /// Warnings about settings that would switch its hooks off if they could.
    fn powerless(&self, settings: &Settings, hooks: &BundleHooks) -> Vec<Diagnostic> {
        let off = settings.handlers.iter().filter(|(_, handler)| !handler.enabled).map(|(name, _)| name);
        let of_bundle = off.filter(|name| hooks.hooks.iter().any(|hook| hook.name.as_str() == *name));
        let warnings = of_bundle.map(|name| {
            let message = format!(
                "`handlers` in the settings cannot switch off `{name}`, which is of the signed bundle"
            );
            let code = Diagnostic::CANNOT_DISABLE;
            Diagnostic::of_file(Severity::Warning, code, &self.place, message).help("remove the entry")
        });
        warnings.collect()
    }

    /// What there is to say about a bundle that is as it should be.
    fn remark(&self, kept: &KeptBundle, hooks: usize) -> Diagnostic {
        let statement = &kept.signed.statement;
        let expires = statement.expires.map_or_else(|| "never".to_owned(), |moment| moment.to_string());
        let message = format!(
            "the bundle {} {} is in force since {}: {hooks} hooks above those of users, signed by {}, expires {expires}",
            statement.name, statement.version, kept.since, kept.signed_by
        );
        Diagnostic::of_file(Severity::Info, Diagnostic::BUNDLE, &self.place, message)
    }

    fn add_stale(
        &self,
        level: &mut ManagedLevel,
        kept: &KeptBundle,
        policy: StalePolicy,
        reason: StaleReason,
    ) {
        let statement = &kept.signed.statement;
        let bundle = HookBundle::new(statement.name.as_str(), statement.version);
        let why = format!("the bundle {bundle} is stale: {reason}");
        let (policy, severity) = match policy {
            StalePolicy::Keep => (FailurePolicy::Ignore, Severity::Warning),
            StalePolicy::Ask => (FailurePolicy::Ask, Severity::Error),
            StalePolicy::Deny => (FailurePolicy::Deny, Severity::Error),
        };
        level.add_block(&self.place, policy, severity, &why, bundle);
    }
}

impl KeptFault {
    /// What is wrong and what to do, as it follows the name of a hook.
    pub(crate) fn message(&self, settings: &Settings) -> String {
        let next = match &settings.bundle.url {
            Some(_) => "see `hookyard status` for the last answer of its server",
            None => "give this machine one with `hookyard bundle install FILE`",
        };
        match self {
            Self::Missing => format!("no signed bundle has been taken yet; {next}"),
            Self::Unusable(why) => format!("the signed bundle cannot be used: {why}; {next}"),
            Self::Hooks(why) => format!("the hooks of the signed bundle cannot be loaded here: {why}"),
        }
    }
}

/// What became of a bundle that was offered and is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenBundle {
    Now,
    /// It was in force before.
    Already,
    /// It was in force before, with fewer signatures.
    Signed,
}

/// Takes bundles that are offered.
pub(crate) struct BundleTaker<'a> {
    pub(crate) store: BundleStore,
    pub(crate) settings: &'a Settings,
    pub(crate) environment: Environment<'a>,
    pub(crate) models: &'a dyn Fn(&str) -> bool,
    pub(crate) older: OlderBundles,
}

/// What is offered, beside what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementCheck {
    /// It may take the place of what is in force.
    New,
    /// It is in force.
    InForce,
    /// It is in force, and its statement brought signatures that are kept now.
    Signed,
}

impl BundleTaker<'_> {
    /// Checks a statement before the archive is fetched, and keeps the signatures that it brings for what is in force.
    pub(crate) fn check(
        &self,
        signed: &SignedStatement,
        clock: SystemTime,
    ) -> Result<StatementCheck, BundleRejection> {
        let trust = BundleTrust::of(self.settings);
        if !self.store.check_offer(signed, &trust, clock, self.older)? {
            return Ok(StatementCheck::New);
        }
        let is_new = self.store.keep_signatures(signed, &trust)?;
        Ok(if is_new { StatementCheck::Signed } else { StatementCheck::InForce })
    }

    /// Whether what is kept is what was signed.
    pub(crate) fn is_whole(&self) -> bool {
        self.store.read(&BundleTrust::of(self.settings), ChangedFiles::Reported).is_ok()
    }

    /// Takes a bundle as a whole, or leaves all as it is. What is in force already is taken again only if it is damaged.
    pub(crate) fn take(
        &self,
        signed: &SignedStatement,
        archive: &[u8],
        clock: SystemTime,
    ) -> Result<TakenBundle, BundleRejection> {
        match self.check(signed, clock)? {
            StatementCheck::InForce if self.is_whole() => return Ok(TakenBundle::Already),
            StatementCheck::Signed if self.is_whole() => return Ok(TakenBundle::Signed),
            _ => {}
        }
        let trust = BundleTrust::of(self.settings);
        // Nothing is written for what is refused.
        let bundle = Arc::new(open_bundle(&signed.statement, archive)?);
        let _lock = self.store.lock()?;
        // Another process may have taken another one meanwhile.
        let is_known = self.store.check_offer(signed, &trust, clock, self.older)?;
        if is_known && self.is_whole() {
            return Ok(TakenBundle::Already);
        }
        let files = self.store.stage(signed, archive, &bundle)?;
        let loaded = load_bundle_hooks(
            &bundle,
            &files,
            self.settings,
            self.environment,
            self.models,
            HookPurpose::InForce,
        );
        if let Err(refusal) = loaded {
            self.store.discard(signed);
            return Err(refusal);
        }
        self.store.activate(signed, &trust, clock, self.older)?;
        Ok(TakenBundle::Now)
    }
}
