//! Reads a scenario from YAML. Every mistake has its place and what to do about it.

use std::{
    io::Read,
    ops::{Range, RangeInclusive},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    super::paths::open_input,
    scenario::{
        DEFAULT_SESSIONS, EventShare, InlineHook, PayloadSize, Scenario, ScenarioHooks, ScenarioLoad,
    },
    schedule::ArrivalProcess,
};
use crate::{
    config::{duration, size},
    dialect::{Document, Mapping, Value},
    model::{Diagnostic, EventKind, Severity, io_reason},
};

/// The scenario that is used if none is named.
const BUILT_IN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/bench/agents.yaml"));

/// What the built-in scenario is called.
const BUILT_IN_NAME: &str = "built-in (config/bench/agents.yaml)";

/// The largest file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// The most entries of a list.
const MOST_ENTRIES: usize = 64;

/// The largest weight. With `MOST_ENTRIES`, the smallest share is still far from the limits of numbers.
const LARGEST_WEIGHT: f64 = 1_000_000.0;

/// The largest payload of an event, in bytes: what a daemon takes by default.
const LARGEST_PAYLOAD: usize = 15 << 20;

/// The payload of an event that does not say it.
const USUAL_PAYLOAD: PayloadSize = PayloadSize { least: 256, most: 256 };

/// How many sessions there may be.
const SESSIONS: RangeInclusive<i64> = 1..=1_000_000;

/// How many events a run may have.
const EVENTS_PER_RUN: RangeInclusive<i64> = 1..=1_000_000;

/// How many events may be under way.
pub(super) const SENDERS: RangeInclusive<i64> = 1..=10_000;

/// Into how many rounds the time may be divided.
pub(super) const ROUNDS: RangeInclusive<i64> = 2..=1000;

/// The highest rate, in events a second.
pub(super) const HIGHEST_RATE: f64 = 1_000_000.0;

/// The longest times: of what is measured, and of the ramp, the warm-up and an answer.
pub(super) const LONGEST_DURATION: Duration = Duration::from_hours(24);
pub(super) const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// The scenario that is used if none is named.
pub(super) fn built_in() -> Result<Scenario, Vec<Diagnostic>> {
    let scenario = parse(BUILT_IN.as_bytes(), Path::new(BUILT_IN_NAME))?;
    Ok(Scenario { name: BUILT_IN_NAME.to_owned(), ..scenario })
}

/// Reads a scenario from a file.
///
/// Returns what is wrong with it.
pub(super) fn read(file: &Path) -> Result<Scenario, Vec<Diagnostic>> {
    let mut bytes = Vec::new();
    let opened = open_input(file).and_then(|opened| opened.take(LARGEST_FILE + 1).read_to_end(&mut bytes));
    let unusable = |what: String| vec![Diagnostic::of_file(Severity::Error, "unreadable", file, what)];
    opened.map_err(|error| unusable(format!("the scenario cannot be read: {}", io_reason(&error))))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(unusable(format!("the scenario is larger than the {LARGEST_FILE} bytes allowed")));
    }
    parse(&bytes, file)
}

fn parse(bytes: &[u8], file: &Path) -> Result<Scenario, Vec<Diagnostic>> {
    let document = Document::parse(bytes, file).map_err(|diagnostic| vec![*diagnostic])?;
    let text = str::from_utf8(bytes).unwrap_or_default().trim_start_matches('\u{feff}');
    let scenario = document.root().map(|root| scenario(&root, text, file));
    match scenario {
        Some(scenario) if !document.has_errors() => Ok(scenario),
        _ => Err(document.into_diagnostics()),
    }
}

/// What a mapping says. Where it is wrong, there is a mistake in its document, and some value here.
fn scenario(root: &Mapping<'_>, text: &str, file: &Path) -> Scenario {
    const KEYS: [&str; 7] =
        ["description", "sessions", "events_per_run", "events", "workspace_id", "hooks", "load"];
    root.allow_only(&KEYS);
    let number = |key: &str, range| root.get(key).and_then(|value| whole_number(&value, range));
    let word = |key: &str| root.get(key).and_then(|value| value.text().map(str::to_owned));
    let base = file.parent().unwrap_or(Path::new(""));
    Scenario {
        name: file.to_string_lossy().into_owned(),
        description: word("description"),
        sessions: number("sessions", SESSIONS).unwrap_or(DEFAULT_SESSIONS),
        events_per_run: number("events_per_run", EVENTS_PER_RUN),
        mix: root.require("events", EXAMPLE_EVENTS).map(|events| mix(&events)).unwrap_or_default(),
        hooks: root.get("hooks").map_or(ScenarioHooks::Unsaid, |hooks| self::hooks(&hooks, text, base)),
        workspace_id: word("workspace_id"),
        load: root
            .get("load")
            .and_then(|load| load.mapping())
            .map(|load| self::load(&load))
            .unwrap_or_default(),
    }
}

/// What is written where events are missing.
const EXAMPLE_EVENTS: &str =
    "events: [{ kind: before_tool_dispatch, match: Bash, weight: 1, payload: 1KiB }]";

fn mix(events: &Value<'_>) -> Vec<EventShare> {
    let Some(items) = events.list() else { return Vec::new() };
    if items.is_empty() || items.len() > MOST_ENTRIES {
        let message = format!("`events` has {} entries", items.len());
        events.error("events", message, format!("list 1 to {MOST_ENTRIES} kinds of events"));
        return Vec::new();
    }
    let count = items.len();
    let shares: Vec<_> = items.into_iter().filter_map(|item| event_share(&item)).collect();
    if shares.len() == count && shares.iter().all(|share| share.weight <= 0.0) {
        events.error("weights", "all weights are 0, so no event would be sent", "give one a weight above 0");
    }
    shares
}

fn event_share(item: &Value<'_>) -> Option<EventShare> {
    let mapping = item.mapping()?;
    mapping.allow_only(&["kind", "weight", "match", "payload"]);
    let kinds: Vec<(&str, EventKind)> = EventKind::ALL
        .iter()
        .filter(|kind| **kind != EventKind::HostEvent)
        .map(|kind| (kind.as_str(), *kind))
        .collect();
    let kind = mapping.require("kind", "kind: before_tool_dispatch").and_then(|kind| kind.choice(&kinds));
    let weight = mapping.get("weight").map_or(Some(1.0), |weight| self::weight(&weight));
    let matched = mapping.get("match");
    if let (Some(kind), Some(matched)) = (kind, &matched)
        && kind.match_field().is_none()
    {
        let message = format!("matchers see nothing of `{kind}`");
        matched.error_at(matched.key_span(), "match", message, "remove `match`");
    }
    let payload = mapping.get("payload").map_or(Some(USUAL_PAYLOAD), |payload| payload_size(&payload));
    Some(EventShare {
        kind: kind?,
        weight: weight?,
        matched: matched.and_then(|matched| matched.text().map(str::to_owned)),
        payload: payload?,
    })
}

fn weight(value: &Value<'_>) -> Option<f64> {
    let number = value.number()?;
    if (0.0..=LARGEST_WEIGHT).contains(&number) {
        return Some(number);
    }
    value.error("weight", "`weight` is out of range", format!("use 0 to {LARGEST_WEIGHT}"));
    None
}

fn payload_size(value: &Value<'_>) -> Option<PayloadSize> {
    if !value.is_list() {
        let bytes = byte_count(value)?;
        return Some(PayloadSize { least: bytes, most: bytes });
    }
    let items = value.list()?;
    let [least, most] = items.as_slice() else {
        value.error("payload", "`payload` has other than two bounds", "write `payload: [1KiB, 8KiB]`");
        return None;
    };
    let size = PayloadSize { least: byte_count(least)?, most: byte_count(most)? };
    if size.least > size.most {
        value.error("payload", "the first bound of `payload` is larger than the second", "turn them around");
        return None;
    }
    Some(size)
}

fn byte_count(value: &Value<'_>) -> Option<usize> {
    let text = value.text()?;
    let bytes = if text == "0B" { Some(0) } else { size(text) };
    if let Some(bytes) = bytes.filter(|bytes| *bytes <= LARGEST_PAYLOAD) {
        return Some(bytes);
    }
    let message = if bytes.is_some() { "`payload` is too large" } else { "`payload` is not a size" };
    value.error("payload", message, "write a number with its unit, such as `512B` or `4KiB`, up to `15MiB`");
    None
}

fn hooks(value: &Value<'_>, text: &str, base: &Path) -> ScenarioHooks {
    let Some(mapping) = value.mapping() else { return ScenarioHooks::Unsaid };
    mapping.allow_only(&["workspace", "inline"]);
    match (mapping.get("workspace"), mapping.get("inline")) {
        (Some(workspace), None) => {
            let directory = workspace.text().map(PathBuf::from).unwrap_or_default();
            ScenarioHooks::Workspace(base.join(directory))
        }
        (None, Some(inline)) => ScenarioHooks::Inline(inline_hooks(&inline, text)),
        _ => {
            let help = "`workspace: DIR` names one; `inline: [...]` has hooks of its own";
            value.error("hooks", "`hooks` needs either `workspace` or `inline`", help);
            ScenarioHooks::Unsaid
        }
    }
}

fn inline_hooks(value: &Value<'_>, text: &str) -> Vec<InlineHook> {
    let Some(items) = value.list() else { return Vec::new() };
    if items.len() > MOST_ENTRIES {
        value.error("hooks", "there are too many hooks", format!("list up to {MOST_ENTRIES}"));
        return Vec::new();
    }
    let mappings = items.iter().filter(|item| item.mapping().is_some());
    mappings.filter_map(|item| hook_text(text, item.span().range())).map(|text| InlineHook { text }).collect()
}

/// The text of a hook file, whose lines and columns are those of the scenario. `place` is all of a mapping in braces, or
/// else the first key of one.
fn hook_text(text: &str, place: Range<usize>) -> Option<String> {
    let before = text.get(..place.start)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let columns = before[line_start..].chars().count();
    let mut hook = "\n".repeat(before.matches('\n').count()) + &" ".repeat(columns);
    if text[place.start..].starts_with('{') {
        hook.push_str(text.get(place)?);
    } else {
        let belongs = |line: &&str| {
            let content = line.trim_start();
            content.is_empty() || content.starts_with('#') || line.len() - content.len() >= columns
        };
        let mut lines = text[place.start..].split_inclusive('\n');
        hook.extend(lines.next());
        hook.extend(lines.take_while(belongs));
    }
    hook.push('\n');
    Some(hook)
}

fn load(mapping: &Mapping<'_>) -> ScenarioLoad {
    const KEYS: [&str; 10] = [
        "rate",
        "arrivals",
        "in_flight",
        "concurrency",
        "ramp",
        "warm_up",
        "duration",
        "timeout",
        "rounds",
        "seed",
    ];
    const ARRIVALS: [(&str, ArrivalProcess); 2] =
        [("constant", ArrivalProcess::Constant), ("poisson", ArrivalProcess::Poisson)];
    mapping.allow_only(&KEYS);
    let (rate, concurrency) = (mapping.get("rate"), mapping.get("concurrency"));
    if let (Some(_), Some(concurrency)) = (&rate, &concurrency) {
        let help = "`rate` sends whatever the answers take; `concurrency` sends when one is answered";
        concurrency.error("load", "`load` has both a `rate` and a `concurrency`", help);
    }
    if rate.is_none() {
        for value in ["arrivals", "in_flight"].into_iter().filter_map(|key| mapping.get(key)) {
            let message = format!("`{}` says nothing without a `rate`", value.name());
            value.error_at(value.key_span(), "load", message, "give a `rate`, or remove it");
        }
    }
    let number = |key: &str, range| mapping.get(key).and_then(|value| whole_number(&value, range));
    let time = |key: &str, longest| mapping.get(key).and_then(|value| span_of_time(&value, longest));
    let seed = mapping.get("seed").and_then(|value| {
        let seed = u64::try_from(value.integer()?).ok();
        if seed.is_none() {
            value.error("seed", "`seed` is negative", "use a number from 0");
        }
        seed
    });
    ScenarioLoad {
        rate: rate.and_then(|value| rate_of(&value)),
        arrivals: mapping.get("arrivals").and_then(|value| value.choice(&ARRIVALS)),
        in_flight: number("in_flight", SENDERS),
        concurrency: concurrency.and_then(|value| whole_number(&value, SENDERS)),
        ramp: time("ramp", LONGEST_WAIT),
        warm_up: time("warm_up", LONGEST_WAIT),
        duration: time("duration", LONGEST_DURATION)
            .filter(|length| above_zero(*length, mapping, "duration")),
        timeout: time("timeout", LONGEST_WAIT).filter(|length| above_zero(*length, mapping, "timeout")),
        rounds: number("rounds", ROUNDS),
        seed,
    }
}

fn above_zero(length: Duration, mapping: &Mapping<'_>, key: &str) -> bool {
    if let Some(value) = mapping.get(key).filter(|_| length.is_zero()) {
        value.error("duration", format!("`{key}` is 0"), "give it some time, such as `10s`");
    }
    !length.is_zero()
}

fn rate_of(value: &Value<'_>) -> Option<f64> {
    let rate = value.number()?;
    if rate > 0.0 && rate <= HIGHEST_RATE {
        return Some(rate);
    }
    let help = format!("use a number of events a second above 0, up to {HIGHEST_RATE}");
    value.error("rate", "`rate` is out of range", help);
    None
}

fn whole_number(value: &Value<'_>, range: RangeInclusive<i64>) -> Option<u32> {
    let number = value.integer()?;
    if range.contains(&number) {
        return u32::try_from(number).ok();
    }
    let help = format!("use {} to {}", range.start(), range.end());
    value.error("range", format!("`{}` is out of range", value.name()), help);
    None
}

/// A time; `0s` is one here.
pub(super) fn time(text: &str) -> Option<Duration> {
    if text == "0s" { Some(Duration::ZERO) } else { duration(text) }
}

fn span_of_time(value: &Value<'_>, longest: Duration) -> Option<Duration> {
    let found = time(value.text()?);
    if let Some(found) = found.filter(|found| *found <= longest) {
        return Some(found);
    }
    let name = value.name();
    let what = if found.is_some() { "too long" } else { "not a duration" };
    let help = format!(
        "write a number with its unit, such as `500ms` or `10s`, up to `{}h`",
        longest.as_secs() / 3600
    );
    value.error("duration", format!("`{name}` is {what}"), help);
    None
}
