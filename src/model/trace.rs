//! The trace of an event in the format of W3C Trace Context. Ids are parsed here, never generated.

use std::{
    fmt,
    num::{NonZeroU64, NonZeroU128},
    str::FromStr,
    time::Instant,
};

/// The length of a version 00 header.
const LENGTH: usize = 55;

/// The `sampled` flag.
const SAMPLED: u8 = 1;

/// The `random-trace-id` flag.
const RANDOM: u8 = 2;

/// The header `traceparent` of a host's request: the ids of a trace and of the calling span.
///
/// # Examples
/// ```
/// use hookyard::model::TraceParent;
///
/// let written = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let parent: TraceParent = written.parse()?;
/// assert_eq!(parent.to_string(), written);
/// assert!("00-0-0-01".parse::<TraceParent>().is_err());
/// # Ok::<(), hookyard::model::TraceParentError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace: NonZeroU128,
    span: NonZeroU64,
    flags: u8,
}

/// A text is not a valid traceparent. The standard says to ignore such a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a valid traceparent; write 00-<32 hex digits>-<16 hex digits>-<2 hex digits> in lower case")]
pub struct TraceParentError;

/// The span of an event, if traces are on. Hooks receive its id in [`Event::trace`](super::Event::trace).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSpan {
    /// The calling span of the host; `None` if the trace begins here.
    pub parent: Option<NonZeroU64>,
    /// When the event arrived.
    pub started: Instant,
}

impl TraceParent {
    /// The first span of a trace with these ids.
    pub fn new(trace: NonZeroU128, span: NonZeroU64, sampling: Sampling) -> Self {
        let flags = match sampling {
            Sampling::Kept => SAMPLED,
            Sampling::Dropped => 0,
        };
        Self { trace, span, flags }
    }

    /// Another span of the same trace.
    #[must_use]
    pub fn with_span(self, span: NonZeroU64) -> Self {
        Self { span, flags: self.flags & (SAMPLED | RANDOM), ..self }
    }

    /// The id of the trace.
    pub fn trace(&self) -> NonZeroU128 {
        self.trace
    }

    /// The id of the calling span.
    pub fn span(&self) -> NonZeroU64 {
        self.span
    }

    /// Whether the trace is sampled.
    pub fn sampling(&self) -> Sampling {
        if self.flags & SAMPLED == 0 { Sampling::Dropped } else { Sampling::Kept }
    }
}

/// Whether the spans of a trace are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// They are exported.
    Kept,
    /// They are dropped.
    Dropped,
}

impl FromStr for TraceParent {
    type Err = TraceParentError;

    /// Parses any version. Of a later one only the fields of version 00 are used, as the standard says.
    fn from_str(text: &str) -> Result<Self, TraceParentError> {
        read(text).ok_or(TraceParentError)
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, flags } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{flags:02x}")
    }
}

fn read(text: &str) -> Option<TraceParent> {
    let (known, later) = text.split_at_checked(LENGTH)?;
    let mut parts = known.split('-');
    let version = hex(parts.next()?, 2)?;
    let trace = NonZeroU128::new(hex(parts.next()?, 32)?)?;
    let span = NonZeroU64::new(hex(parts.next()?, 16)?.try_into().ok()?)?;
    let flags = hex(parts.next()?, 2)?.try_into().ok()?;
    let flags = match version {
        0 if later.is_empty() => flags,
        1..0xff if later.is_empty() || later.starts_with('-') => flags & SAMPLED,
        _ => return None,
    };
    Some(TraceParent { trace, span, flags })
}

/// Parses exactly `count` lower-case hex digits.
fn hex(digits: &str, count: usize) -> Option<u128> {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let right = digits.len() == count && digits.bytes().all(is_digit);
    right.then(|| u128::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: &str = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";

    fn read(text: &str) -> Option<String> {
        text.parse().ok().map(|parent: TraceParent| parent.to_string())
    }

    #[test]
    fn the_first_version_is_passed_on_as_it_came() {
        for flags in ["00", "01", "02", "ff"] {
            let text = format!("00-{IDS}-{flags}");
            assert_eq!(read(&text), Some(text));
        }
        let small = "00-00000000000000000000000000000001-0000000000000001-00";
        assert_eq!(read(small).as_deref(), Some(small));
    }

    #[test]
    fn another_span_of_a_trace_has_the_flags_that_are_known() {
        let span = NonZeroU64::new(7).unwrap();
        let of = |flags: &str| format!("00-{IDS}-{flags}").parse::<TraceParent>().unwrap();
        for (flags, known, sampling) in
            [("00", "00", Sampling::Dropped), ("01", "01", Sampling::Kept), ("ff", "03", Sampling::Kept)]
        {
            let (trace, _) = IDS.split_once('-').unwrap();
            let other = of(flags).with_span(span);
            assert_eq!(other.to_string(), format!("00-{trace}-0000000000000007-{known}"));
            assert_eq!((other.sampling(), other.trace()), (sampling, of(flags).trace()));
            assert_eq!(of(flags).sampling(), sampling);
        }
        let first = TraceParent::new(NonZeroU128::MIN, span, Sampling::Kept);
        assert_eq!((first.span(), first.sampling()), (span, Sampling::Kept));
        assert_eq!(TraceParent::new(NonZeroU128::MIN, span, Sampling::Dropped).sampling(), Sampling::Dropped);
    }

    #[test]
    fn of_a_later_version_the_known_part_is_kept() {
        for text in ["01-IDS-01", "cc-IDS-01-what-comes-later", "fe-IDS-ff-", "01-IDS-03"] {
            assert_eq!(read(&text.replace("IDS", IDS)), Some(format!("00-{IDS}-01")), "{text}");
        }
    }

    #[test]
    fn what_the_standard_forbids_is_refused() {
        let forbidden = [
            "",
            "00",
            "00-IDS",
            "00-IDS-",
            "00-IDS-1",
            "00-IDS-011",
            "00-IDS-01-",
            "00-IDS-01-more",
            "00-IDS-0G",
            "00-IDS-+1",
            "0-IDS-01",
            "ff-IDS-01",
            "FE-IDS-01",
            "01-IDS-01.more",
            " 00-IDS-01",
            "00-IDS-01 ",
            "00_IDS_01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\u{e9}-1",
        ];
        for text in forbidden {
            assert_eq!(read(&text.replace("IDS", IDS)), None, "{text}");
        }
    }
}
