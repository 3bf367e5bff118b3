//! Whether a hook may run, and the proof that it may.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

/// What is known about the trust in a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TrustState {
    /// It needs none: it belongs to the embedding program, the user or the administrator.
    Managed,
    /// A person has agreed to exactly what it is now.
    Trusted,
    /// It is not what a person has agreed to.
    Modified,
    /// A person has agreed to it, and it is gone.
    Missing,
    /// Nobody has agreed to it.
    Untrusted,
    /// Its file is broken, and it does not run as it was before.
    Broken,
}

impl TrustState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Managed, Self::Trusted, Self::Modified, Self::Missing, Self::Untrusted, Self::Broken];

    /// The name, as in listings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Trusted => "trusted",
            Self::Modified => "modified",
            Self::Missing => "missing",
            Self::Untrusted => "untrusted",
            Self::Broken => "broken",
        }
    }
}

impl fmt::Display for TrustState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for TrustState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Proof that a program may be started or a server asked. Every process and every connection of hookyard needs one. Those
/// of hooks are made by the check of trust and the builder of native hooks only; `tests/house` has the list of the files
/// that make any.
#[derive(Debug, Clone)]
pub struct Approval {
    source: ApprovalSource,
    /// What has to be so still when it is used.
    condition: Option<Arc<dyn StartCondition>>,
}

/// What must be so each time something is started that runs files which others may change.
pub(crate) trait StartCondition: fmt::Debug + Send + Sync {
    /// A digest of what was agreed to.
    fn agreement(&self) -> &str;

    /// Compares the files with what was agreed to. Reads the disk, and little of it where nothing has changed.
    ///
    /// Returns what is different.
    fn check(&self) -> Result<(), String>;
}

/// Why something may be started or asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ApprovalSource {
    /// It belongs to the embedding program, the user or the administrator.
    Managed,
    /// It is of a signed bundle; what runs is a verified copy.
    Bundle,
    /// A person has agreed to it; what runs is a copy that only this user can write.
    Copy,
    /// A person has agreed to it; what runs is in the workspace.
    InPlace,
    /// The operator has switched trust off.
    Off,
    /// The embedding program runs it itself.
    Host,
    /// A launcher was started for it, which had an approval.
    Launcher,
    /// The operator's settings name it.
    Settings,
}

impl Approval {
    fn unconditional(source: ApprovalSource) -> Self {
        Self { source, condition: None }
    }

    /// For a hook of the embedding program, the user or the administrator.
    pub(crate) fn managed() -> Self {
        Self::unconditional(ApprovalSource::Managed)
    }

    /// For a hook of a signed bundle, under the condition that the files of the bundle are what was signed.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only a build with bundles loads any"))]
    pub(crate) fn of_bundle(condition: Arc<dyn StartCondition>) -> Self {
        Self { source: ApprovalSource::Bundle, condition: Some(condition) }
    }

    /// For a hook that a person has agreed to, and that runs from its private copy.
    pub(crate) fn of_copy() -> Self {
        Self::unconditional(ApprovalSource::Copy)
    }

    /// For a hook that a person has agreed to, and that runs or reads what is in the workspace: its files, under the
    /// condition that they are what was agreed to, or what the agreement does not cover.
    pub(crate) fn in_place(condition: Option<Arc<dyn StartCondition>>) -> Self {
        Self { source: ApprovalSource::InPlace, condition }
    }

    /// For any hook where the operator has switched trust off.
    pub(crate) fn trust_is_off() -> Self {
        Self::unconditional(ApprovalSource::Off)
    }

    /// For a program that the embedding program starts itself, without a hook.
    pub fn of_host() -> Self {
        Self::unconditional(ApprovalSource::Host)
    }

    /// For the program that this process was started to confine and to become.
    pub(crate) fn of_launcher() -> Self {
        Self::unconditional(ApprovalSource::Launcher)
    }

    /// For a server that the operator's settings name, such as the collector of traces.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only traces are sent to such a server"))]
    pub(crate) fn of_settings() -> Self {
        Self::unconditional(ApprovalSource::Settings)
    }

    /// Whether it holds for as long as the hook's definition does, whatever happens to the files of the workspace.
    pub(crate) fn outlasts_changes(&self) -> bool {
        self.source != ApprovalSource::InPlace
    }

    /// Checks its condition, if it has one, right before the start of what it approves.
    ///
    /// Returns why it may not be started.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.condition.as_ref().map_or(Ok(()), |condition| condition.check())
    }

    fn agreement(&self) -> Option<&str> {
        self.condition.as_ref().map(|condition| condition.agreement())
    }

    /// What is known about the trust; nothing if trust is off.
    fn state(&self) -> Option<TrustState> {
        match self.source {
            ApprovalSource::Managed | ApprovalSource::Bundle => Some(TrustState::Managed),
            ApprovalSource::Copy | ApprovalSource::InPlace => Some(TrustState::Trusted),
            ApprovalSource::Off
            | ApprovalSource::Host
            | ApprovalSource::Launcher
            | ApprovalSource::Settings => None,
        }
    }
}

/// Equal for the same reason and the same agreement, whenever that was checked.
impl PartialEq for Approval {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.agreement() == other.agreement()
    }
}

impl Eq for Approval {}

/// Whether a hook may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookTrust {
    /// It may.
    Approved(Approval),
    /// It may, and it runs or reads more than the agreement covers, as the person who agreed was shown.
    ApprovedInPart {
        /// The proof that it may run.
        approval: Approval,
        /// What the agreement does not cover.
        not_covered: Arc<[String]>,
    },
    /// It may not: each of its invocations ends `untrusted`, or `failed` if its file is broken.
    Refused {
        /// What is known about the trust in it.
        state: TrustState,
        /// Why, as it follows the hook's name.
        reason: Arc<str>,
    },
}

/// A hook may not run before its trust was checked.
impl Default for HookTrust {
    fn default() -> Self {
        Self::refused(TrustState::Untrusted, "its trust was not checked")
    }
}

impl HookTrust {
    /// A refusal.
    pub(crate) fn refused(state: TrustState, reason: impl Into<Arc<str>>) -> Self {
        Self::Refused { state, reason: reason.into() }
    }

    /// What is known about the trust; nothing if trust is off.
    pub fn state(&self) -> Option<TrustState> {
        match self {
            Self::Approved(approval) | Self::ApprovedInPart { approval, .. } => approval.state(),
            Self::Refused { state, .. } => Some(*state),
        }
    }

    /// The proof that the hook may run.
    pub fn approval(&self) -> Option<Approval> {
        match self {
            Self::Approved(approval) | Self::ApprovedInPart { approval, .. } => Some(approval.clone()),
            Self::Refused { .. } => None,
        }
    }

    /// Why the hook may not run.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Approved(_) | Self::ApprovedInPart { .. } => None,
            Self::Refused { reason, .. } => Some(reason),
        }
    }

    /// What the hook runs or reads that the agreement to it does not cover.
    pub fn not_covered(&self) -> &[String] {
        match self {
            Self::ApprovedInPart { not_covered, .. } => not_covered,
            Self::Approved(_) | Self::Refused { .. } => &[],
        }
    }
}
