//! Makes the events of a load: by the mix of a scenario, or from a recording. The same seed makes the same events.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    super::{new::sample_event, replay::Recording},
    random::LoadRandom,
    scenario::{EventShare, PayloadSize, Scenario},
    sessions::{SessionLease, SessionPool},
};
use crate::model::{DialectName, Event, EventId, EventKind, MatchField, Target, ToolCallId};

/// What the text of payloads is made of.
const FILLER: &str = "npm run lint -- --fix src/checkout src/cart; ";

/// Where the text comes into an event.
const PAYLOAD_MARK: &str = "%payload%";

/// One event, ready to be sent.
#[derive(Debug)]
pub(super) struct BenchEvent {
    pub(super) kind: EventKind,
    pub(super) dialect: DialectName,
    pub(super) json: Vec<u8>,
}

/// Where the events of a load come from.
#[derive(Debug)]
pub(super) struct EventSource {
    kind: SourceKind,
    sessions: u64,
    /// Distinguishes the ids of this load from those of any other.
    label: String,
    pool: SessionPool,
}

#[derive(Debug)]
enum SourceKind {
    Mix(EventMix),
    Recorded(Vec<RecordedTemplate>),
}

/// The place of events in workspaces: which one they name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventPlace<'p> {
    pub(super) workspace_id: Option<&'p str>,
    /// The working directory of the sessions.
    pub(super) cwd: Option<&'p Path>,
}

/// Events by their shares.
#[derive(Debug)]
struct EventMix {
    templates: Vec<EventTemplate>,
    /// The sum of the weights of all templates before one and its own.
    bounds: Vec<f64>,
    end_of_run: EventTemplate,
    events_per_run: Option<u64>,
    seed: u64,
    filler: String,
}

/// An event without its ids and the text of its payload.
#[derive(Debug)]
struct EventTemplate {
    share: EventShare,
    /// What is before the payload.
    head: String,
    tail: String,
}

/// A recorded event, cut where a copy has something of its own.
#[derive(Debug)]
struct RecordedTemplate {
    kind: EventKind,
    dialect: DialectName,
    pieces: Vec<String>,
}

impl EventSource {
    /// Events as a scenario has them.
    pub(super) fn of_scenario(scenario: &Scenario, place: EventPlace<'_>, seed: u64, label: String) -> Self {
        let shares: Vec<_> = scenario.mix.iter().filter(|share| share.weight > 0.0).collect();
        let most = shares.iter().map(|share| share.payload.most).max().unwrap_or(0);
        let bounds = shares.iter().scan(0.0, |sum, share| {
            *sum += share.weight;
            Some(*sum)
        });
        let end = EventShare {
            kind: EventKind::RunCompleted,
            weight: 1.0,
            matched: None,
            payload: PayloadSize { least: 0, most: 0 },
        };
        let mix = EventMix {
            bounds: bounds.collect(),
            templates: shares.into_iter().map(|share| EventTemplate::new(share, place)).collect(),
            end_of_run: EventTemplate::new(&end, place),
            events_per_run: scenario.events_per_run.map(u64::from),
            seed,
            filler: FILLER.repeat(most / FILLER.len() + 1),
        };
        Self::new(SourceKind::Mix(mix), scenario.sessions, label)
    }

    /// Events as they were recorded, in order, for so many sessions at a time.
    pub(super) fn of_recording(
        recording: &Recording,
        sessions: u32,
        place: EventPlace<'_>,
        label: String,
    ) -> Self {
        let mut events: Vec<_> = recording.runs.iter().flatten().collect();
        events.sort_by_key(|recorded| recorded.line);
        let templates = events.into_iter().map(|recorded| {
            let text = String::from_utf8_lossy(&recorded.json);
            RecordedTemplate::new(&recorded.event, &text, place)
        });
        Self::new(SourceKind::Recorded(templates.collect()), sessions, label)
    }

    fn new(kind: SourceKind, sessions: u32, label: String) -> Self {
        Self { kind, sessions: u64::from(sessions), label, pool: SessionPool::new(sessions) }
    }

    /// The next event, and its session, which has no other until the lease is dropped. Each session begins at another place
    /// of its run, so that not all of them end at once.
    pub(super) fn next_event(&self) -> (BenchEvent, SessionLease<'_>) {
        let lease = self.pool.lease();
        let (session, turn) = (u64::from(lease.session), u64::from(lease.turn));
        let event = match &self.kind {
            SourceKind::Mix(mix) => mix.event(&self.label, session, turn, self.sessions),
            SourceKind::Recorded(templates) => {
                let length = templates.len() as u64;
                let turn = turn + session * length / self.sessions;
                let copy = turn / length;
                let at = usize::try_from(turn % length).unwrap_or(0);
                templates[at].event(&format!("#{}-{session}-{copy}", self.label))
            }
        };
        (event, lease)
    }
}

impl EventMix {
    fn event(&self, label: &str, session: u64, turn: u64, sessions: u64) -> BenchEvent {
        let mut random = LoadRandom::of_item(self.seed, turn.wrapping_mul(sessions).wrapping_add(session));
        let (run, is_end) = match self.events_per_run {
            None => (0, false),
            Some(events) => {
                let length = events + 1;
                let turn = turn + session * length / sessions;
                (turn / length, turn % length == events)
            }
        };
        let template = if is_end { &self.end_of_run } else { self.pick(&mut random) };
        let bytes = template.payload_bytes(&mut random);
        let ids = format!(
            r#"{{"event":"{}","session_id":"{label}-{session}","run_id":"{label}-{session}-{run}""#,
            template.share.kind
        );
        let call = if template.share.kind.match_field() == Some(MatchField::ToolName) {
            format!(r#","tool_call_id":"call-{turn}""#)
        } else {
            String::new()
        };
        let text = &self.filler[..bytes];
        let json = [ids.as_str(), &call, &template.head, text, &template.tail].map(str::as_bytes).concat();
        BenchEvent { kind: template.share.kind, dialect: DialectName::Canonical, json }
    }

    fn pick(&self, random: &mut LoadRandom) -> &EventTemplate {
        let at = random.share() * self.bounds.last().copied().unwrap_or_default();
        let place = self.bounds.partition_point(|bound| *bound <= at);
        &self.templates[place.min(self.templates.len() - 1)]
    }
}

impl EventTemplate {
    fn new(share: &EventShare, place: EventPlace<'_>) -> Self {
        let mut event = sample_event(share.kind);
        if let Some((field, matched)) = share.kind.match_field().zip(share.matched.as_deref()) {
            event[field.as_str()] = matched.into();
        }
        let (field, value) = payload_field(share.kind);
        event[field] = value;
        if let Some(id) = place.workspace_id {
            event["workspace_id"] = id.into();
        }
        if let Some(cwd) = place.cwd {
            event["cwd"] = cwd.to_string_lossy().into();
        }
        if let Value::Object(fields) = &mut event {
            fields.retain(|name, _| {
                !["event", "session_id", "run_id", "tool_call_id"].contains(&name.as_str())
            });
        }
        let text = event.to_string();
        let (head, tail) = text.split_once(PAYLOAD_MARK).unwrap_or((&text, ""));
        // The object goes on after its ids.
        Self { share: share.clone(), head: head.replacen('{', ",", 1), tail: tail.to_owned() }
    }

    fn payload_bytes(&self, random: &mut LoadRandom) -> usize {
        let size = self.share.payload;
        let range = (size.most - size.least + 1) as u64;
        size.least + usize::try_from(random.next_number() % range).unwrap_or(0)
    }
}

/// The field of an event with its large part, and that part with a mark where its text is.
fn payload_field(kind: EventKind) -> (&'static str, Value) {
    let messages = json!({ "messages": [{ "role": "user", "content": PAYLOAD_MARK }] });
    let value = match kind.target() {
        None | Some(Target::Prompt) => json!(PAYLOAD_MARK),
        Some(Target::Context | Target::ModelRequest) => messages,
        Some(Target::ModelResponse) => json!({ "content": PAYLOAD_MARK }),
        Some(Target::ToolConfig) => json!({ "tools": [PAYLOAD_MARK] }),
        Some(Target::ToolInput) => json!({ "command": PAYLOAD_MARK }),
        Some(Target::ToolOutput) => json!({ "output": PAYLOAD_MARK }),
    };
    (kind.target().map_or("data", Target::as_str), value)
}

impl RecordedTemplate {
    fn new(event: &Event, text: &str, place: EventPlace<'_>) -> Self {
        let mut text = text.to_owned();
        if let Some((recorded, cwd)) = event.cwd.as_deref().zip(place.cwd) {
            text = text.replace(&quoted(recorded), &quoted(&cwd.to_string_lossy()));
        }
        let ids = [
            Some(event.session_id.as_str()),
            Some(event.run_id.as_str()),
            event.id.as_ref().map(EventId::as_str),
            event.tool_call_id.as_ref().map(ToolCallId::as_str),
        ];
        let ids: Vec<String> = ids.into_iter().flatten().map(quoted).collect();
        let mut cuts = Vec::new();
        for id in &ids {
            let found = text.match_indices(id.as_str()).filter(|(start, _)| is_id_field(&text[..*start]));
            cuts.extend(found.map(|(start, found)| start + found.len() - 1));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([text.len()]);
        let pieces = starts.zip(ends).map(|(start, end)| text[start..end].to_owned()).collect();
        Self { kind: event.kind, dialect: event.dialect, pieces }
    }

    /// The event with this at the end of each of its ids.
    fn event(&self, suffix: &str) -> BenchEvent {
        BenchEvent { kind: self.kind, dialect: self.dialect, json: self.pieces.join(suffix).into_bytes() }
    }
}

/// Whether JSON ends where the value of a field comes that is called an id, in whatever way its dialect writes it.
fn is_id_field(before: &str) -> bool {
    let name = before.trim_end().strip_suffix(':').map(str::trim_end).and_then(|name| name.strip_suffix('"'));
    name.is_some_and(|name| {
        name.get(name.len().saturating_sub(2)..).is_some_and(|end| end.eq_ignore_ascii_case("id"))
    })
}

/// A text as JSON writes it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use super::{super::scenario_file, *};
    use crate::dialect;

    fn source(sessions: u32, events_per_run: Option<u32>) -> EventSource {
        let scenario = scenario_file::built_in().unwrap();
        let scenario = Scenario { sessions, events_per_run, ..scenario };
        EventSource::of_scenario(&scenario, EventPlace::default(), 1, "b".to_owned())
    }

    fn read(event: &BenchEvent) -> Event {
        let read = dialect::named(event.dialect).read_event(&event.json);
        read.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&event.json)))
    }

    #[test]
    fn every_kind_can_be_sent() {
        for kind in EventKind::ALL.iter().filter(|kind| **kind != EventKind::HostEvent) {
            let payload = PayloadSize { least: 300, most: 300 };
            let matched = kind.match_field().map(|_| "Bash".to_owned());
            let share = EventShare { kind: *kind, weight: 1.0, matched, payload };
            let scenario =
                Scenario { mix: vec![share], events_per_run: None, ..scenario_file::built_in().unwrap() };
            let place = EventPlace { workspace_id: Some("shop"), cwd: Some(Path::new("/srv/shop")) };
            let event = EventSource::of_scenario(&scenario, place, 1, "b".to_owned()).next_event().0;
            let found = read(&event);
            assert_eq!((found.kind, found.session_id.as_str()), (*kind, "b-0"));
            assert_eq!(found.workspace_id.unwrap().as_str(), "shop");
            assert_eq!(found.cwd.as_deref(), Some("/srv/shop"));
            assert!((300..800).contains(&event.json.len()), "{kind}: {}", event.json.len());
            let has_target = found.kind.target().is_none_or(|target| found.targets.get(target).is_some());
            assert!(has_target, "{kind}");
        }
    }

    #[test]
    fn events_are_as_many_as_their_weights_say_and_the_same_for_a_seed() {
        let (one, other) = (source(10, None), source(10, None));
        let mut counts: BTreeMap<(EventKind, Option<String>), u32> = BTreeMap::new();
        for _ in 0..20_000 {
            let event = one.next_event().0;
            assert_eq!(event.json, other.next_event().0.json);
            let found = read(&event);
            *counts.entry((found.kind, found.match_text().map(str::to_owned))).or_default() += 1;
        }
        for ((kind, matched), count) in counts {
            let of_twenty = match (kind, matched.as_deref()) {
                (EventKind::AfterToolDispatch, _) => 9.0,
                (EventKind::BeforeToolDispatch, Some("Bash")) => 6.0,
                (EventKind::BeforeToolDispatch, Some("Edit")) => 3.0,
                _ => 1.0,
            };
            let share = f64::from(count) / 1000.0;
            assert!((share - of_twenty).abs() < 0.3, "{kind}: {share}");
        }
    }

    #[test]
    fn runs_end_after_their_events_and_their_sessions_begin_others() {
        let source = source(4, Some(3));
        let mut events: BTreeMap<String, Vec<EventKind>> = BTreeMap::new();
        for _ in 0..4 * 40 {
            let found = read(&source.next_event().0);
            events.entry(found.run_id.as_str().to_owned()).or_default().push(found.kind);
        }
        let ended = |kinds: &&Vec<EventKind>| kinds.last() == Some(&EventKind::RunCompleted);
        assert_eq!(events.values().filter(ended).count(), 4 * 10);
        assert_eq!(
            events.values().filter(|kinds| kinds.len() == 4).count(),
            4 * 10 - 3,
            "first runs are shorter"
        );
        assert!(events.values().all(|kinds| kinds.len() <= 4));
    }

    #[test]
    fn every_copy_of_a_recording_has_ids_of_its_own_and_nothing_else_changes() {
        let text = r#"{"event":"after_tool_dispatch","session_id":"s","run_id":"r", "tool_call_id": "t","s":1,"agent_name":"s",
            "cwd":"/old","tool_name":"Bash","tool_output":{"output":"\"s\" and s"}}"#;
        let recorded = dialect::named(DialectName::Canonical).read_event(text.as_bytes()).unwrap();
        let place = EventPlace { workspace_id: None, cwd: Some(Path::new("/srv/shop")) };
        let template = RecordedTemplate::new(&recorded, text, place);
        let copy = String::from_utf8(template.event("#1").json).unwrap();
        let expected = text
            .replace(r#""session_id":"s""#, r#""session_id":"s#1""#)
            .replace(r#""run_id":"r""#, r#""run_id":"r#1""#)
            .replace(r#""tool_call_id": "t""#, r#""tool_call_id": "t#1""#)
            .replace("/old", "/srv/shop");
        assert_eq!(copy, expected);
        let recording = SourceKind::Recorded(vec![template]);
        let source = EventSource::new(recording, 3, "b".to_owned());
        let ids: HashSet<_> =
            (0..30).map(|_| read(&source.next_event().0).run_id.as_str().to_owned()).collect();
        assert_eq!(ids.len(), 30);
    }
}
