//! The settings of what is shipped to a server of an organisation, and their types.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use super::{
    declare::settings,
    keys::ValueType,
    urls::url,
    value_types::{MIB, Size, count},
};
use crate::{dialect::Value, model::Address};

settings! {
    /// Audit lines and the state of the daemon, sent to a server. They are kept in `data` until it has taken them.
    #[derive(Debug, Clone, PartialEq)]
    pub section ShipSettings {
        /// URL that takes the lines, over `https://`, or `http://` on this machine; `null` sends nothing.
        #[example = "https://audit.example.com/v1/lines"]
        url: Option<Address> as Option<ShipUrl> = None,

        /// What a request holds: `ndjson`, lines of JSON, or `otlp`, logs as OTLP over HTTP has them in JSON.
        format: ShipFormat = ShipFormat::NdJson,

        /// File with the token of requests, which only its owner may read. It is read for each request.
        #[example = "/etc/hookyard/ship-token"]
        token_file: Option<PathBuf> = None,

        /// Maximum number of lines in one request.
        batch: NonZeroUsize = count(512),

        /// Longest time that a line waits for others before it is sent.
        max_age: Duration = Duration::from_secs(5),

        /// Maximum size of the lines that wait in `data`; beyond it the oldest are dropped and counted.
        max_size: usize as Size = 256 * MIB,

        /// How often a line with the state of the daemon is sent.
        state_every: Duration = Duration::from_mins(5),
    }
}

/// What a request to the server holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShipFormat {
    /// Lines of JSON.
    NdJson,
    /// Logs in OTLP, as JSON.
    Otlp,
}

/// An address that lines may be sent to: nobody else can read what goes there.
pub(super) struct ShipUrl;

impl ShipFormat {
    pub(super) const ALL: [Self; 2] = [Self::NdJson, Self::Otlp];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::NdJson => "ndjson",
            Self::Otlp => "otlp",
        }
    }
}

impl ValueType for ShipFormat {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|format| (format.as_str(), format)))
    }
}

impl ValueType for ShipUrl {
    type Field = Address;

    fn parse(value: &Value<'_>) -> Option<Address> {
        let help = "write it as `https://server/path`";
        let why_not = |address: &Address| match address.socket() {
            Some(_) => Some("lines are not sent to a socket"),
            None if address.is_safe_on_the_way() => None,
            None => Some("lines are sent to another machine over `https://` only"),
        };
        url(value, why_not, help, Some(help))
    }
}
