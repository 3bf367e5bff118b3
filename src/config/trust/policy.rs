//! Whether hooks of workspaces need trust before they run.

/// Whether hooks of workspaces need trust before they run. Hooks of the user's own and of managed files never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TrustPolicy {
    /// They run only as a person has agreed to.
    #[default]
    Enforce,
    /// They run as they are.
    Off,
}

impl TrustPolicy {
    /// Both policies.
    pub(in crate::config) const ALL: [Self; 2] = [Self::Enforce, Self::Off];

    /// The word for it in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Off => "off",
        }
    }
}
