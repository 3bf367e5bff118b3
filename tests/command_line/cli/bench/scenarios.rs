//! Scenario files: each mistake has its place and what to do about it.

use super::*;
use crate::authoring::schemas::objections;

/// A scenario, and where what is said about it; nothing for one that is good.
struct ScenarioCase {
    name: &'static str,
    text: &'static str,
    wrong: &'static [(&'static str, &'static str, &'static str)],
}

const EVENTS: &str = "events: [{ kind: prompt_submitted }]\n";

/// `EVENTS` stands before each text that does not begin with `events` or `#`.
const CASES: [ScenarioCase; 27] = [
    ScenarioCase { name: "least", text: "", wrong: &[] },
    ScenarioCase {
        name: "everything",
        text: "description: d\nsessions: 3\nevents_per_run: 2\nworkspace_id: shop\nload: { rate: 50.5, arrivals: poisson, in_flight: 9, ramp: 0s, warm_up: 0s, duration: 100ms, timeout: 1s, rounds: 2, seed: 7 }\n",
        wrong: &[],
    },
    ScenarioCase {
        name: "empty",
        text: "# nothing\n",
        wrong: &[("s.yaml", "empty document", "write the keys")],
    },
    ScenarioCase {
        name: "no mapping",
        text: "# x\n- a\n",
        wrong: &[("s.yaml:2:1", "the document must be a mapping, not a list", "")],
    },
    ScenarioCase { name: "no YAML", text: "# x\nevents: [\n", wrong: &[("s.yaml", "not valid YAML", "")] },
    ScenarioCase {
        name: "no events key",
        text: "# x\nsessions: 3\n",
        wrong: &[("s.yaml:2:1", "`events` is missing", "write `events: [")],
    },
    ScenarioCase {
        name: "no events",
        text: "events: []\n",
        wrong: &[("s.yaml:1:9", "`events` has 0 entries", "list 1 to 64 kinds of events")],
    },
    ScenarioCase {
        name: "an unknown key",
        text: "sesions: 3\n",
        wrong: &[("s.yaml:2:1", "unknown key `sesions`", "did you mean `sessions`?")],
    },
    ScenarioCase {
        name: "an unknown kind",
        text: "events: [{ kind: before_tool_dispach }]\n",
        wrong: &[(
            "s.yaml:1:18",
            "unknown value `before_tool_dispach` for `kind`",
            "did you mean `before_tool_dispatch`?",
        )],
    },
    ScenarioCase {
        name: "no kind",
        text: "events: [{ weight: 1 }]\n",
        wrong: &[("s.yaml:1:10", "`kind` is missing", "write `kind: ")],
    },
    ScenarioCase {
        name: "weights of 0",
        text: "events: [{ kind: prompt_submitted, weight: 0 }, { kind: run_failed, weight: 0 }]\n",
        wrong: &[("s.yaml:1:9", "all weights are 0", "give one a weight above 0")],
    },
    ScenarioCase {
        name: "a negative weight",
        text: "events: [{ kind: prompt_submitted, weight: -1 }]\n",
        wrong: &[("s.yaml:1:44", "`weight` is out of range", "use 0 to 1000000")],
    },
    ScenarioCase {
        name: "a weight that is no number",
        text: "events: [{ kind: prompt_submitted, weight: .nan }]\n",
        wrong: &[("s.yaml:1:44", "`weight` is out of range", "")],
    },
    ScenarioCase {
        name: "a match that nothing sees",
        text: "events: [{ kind: prompt_submitted, match: Bash }]\n",
        wrong: &[("s.yaml:1:36", "matchers see nothing of `prompt_submitted`", "remove `match`")],
    },
    ScenarioCase {
        name: "a payload without a unit",
        text: "events: [{ kind: prompt_submitted, payload: 100 }]\n",
        wrong: &[("s.yaml:1:45", "`payload` must be a string, not a number", "")],
    },
    ScenarioCase {
        name: "a payload that is too large",
        text: "events: [{ kind: prompt_submitted, payload: 16MiB }]\n",
        wrong: &[("s.yaml:1:45", "`payload` is too large", "up to `15MiB`")],
    },
    ScenarioCase {
        name: "bounds the wrong way around",
        text: "events: [{ kind: prompt_submitted, payload: [2KiB, 1KiB] }]\n",
        wrong: &[("s.yaml:1:45", "the first bound of `payload` is larger", "turn them around")],
    },
    ScenarioCase {
        name: "three bounds",
        text: "events: [{ kind: prompt_submitted, payload: [1B, 2B, 3B] }]\n",
        wrong: &[("s.yaml:1:45", "`payload` has other than two bounds", "write `payload: [1KiB, 8KiB]`")],
    },
    ScenarioCase {
        name: "no sessions",
        text: "sessions: 0\n",
        wrong: &[("s.yaml:2:11", "`sessions` is out of range", "use 1 to 1000000")],
    },
    ScenarioCase {
        name: "a rate of 0",
        text: "load: { rate: 0 }\n",
        wrong: &[("s.yaml:2:15", "`rate` is out of range", "above 0, up to 1000000")],
    },
    ScenarioCase {
        name: "a negative rate",
        text: "load: { rate: -5 }\n",
        wrong: &[("s.yaml:2:15", "`rate` is out of range", "")],
    },
    ScenarioCase {
        name: "too high a rate",
        text: "load: { rate: 1e9 }\n",
        wrong: &[("s.yaml:2:15", "`rate` is out of range", "")],
    },
    ScenarioCase {
        name: "two loops",
        text: "load: { rate: 5, concurrency: 5 }\n",
        wrong: &[(
            "s.yaml:2:31",
            "`load` has both a `rate` and a `concurrency`",
            "`concurrency` sends when one is answered",
        )],
    },
    ScenarioCase {
        name: "arrivals without a rate",
        text: "load: { arrivals: poisson }\n",
        wrong: &[("s.yaml:2:9", "`arrivals` says nothing without a `rate`", "give a `rate`, or remove it")],
    },
    ScenarioCase {
        name: "times that are none",
        text: "load: { warm_up: 5, duration: 0s, ramp: 2h, timeout: soon }\n",
        wrong: &[
            ("s.yaml:2:18", "`warm_up` must be a string", ""),
            ("s.yaml:2:31", "`duration` is 0", "give it some time"),
            ("s.yaml:2:41", "`ramp` is too long", "up to `1h`"),
            ("s.yaml:2:54", "`timeout` is not a duration", "write a number with its unit"),
        ],
    },
    ScenarioCase {
        name: "two sources of hooks",
        text: "hooks: { workspace: ., inline: [] }\n",
        wrong: &[("s.yaml:2:8", "`hooks` needs either `workspace` or `inline`", "")],
    },
    ScenarioCase {
        name: "a hook with a mistake",
        text: "hooks:\n  inline:\n    # the first\n    - name: good\n      events: [run_failed]\n      handler: { type: command, command: 'true' }\n    - name: bad\n      evnts: [run_failed]\n      handler: { type: command, command: 'true' }\n",
        wrong: &[("s.yaml:9:7", "unknown key `evnts`", "did you mean `events`?")],
    },
];

impl ScenarioCase {
    fn whole_text(&self) -> String {
        let is_whole = self.text.starts_with("events") || self.text.starts_with('#');
        if is_whole { self.text.to_owned() } else { format!("{EVENTS}{}", self.text) }
    }
}

/// Mistakes that no schema can see: they are between two values, in the amount of a text with a unit, or in what is no YAML at all.
const UNSEEN_BY_SCHEMA: [&str; 5] = [
    "weights of 0",
    "a match that nothing sees",
    "a payload that is too large",
    "bounds the wrong way around",
    "no YAML",
];

#[test]
fn the_schema_refuses_what_the_program_refuses() {
    for case in &CASES {
        let Ok(value) = serde_yaml::from_str::<serde_json::Value>(&case.whole_text()) else {
            assert!(UNSEEN_BY_SCHEMA.contains(&case.name), "{} is no YAML", case.name);
            continue;
        };
        let objections = objections("scenario", &value);
        let is_refused = !case.wrong.is_empty() && !UNSEEN_BY_SCHEMA.contains(&case.name);
        assert_eq!(!objections.is_empty(), is_refused, "{}: {objections:?}", case.name);
    }
}

#[test]
fn good_scenarios_run_and_bad_ones_say_where_and_what_to_do() {
    let place = workspace(&[("guard", RULE)]);
    for case in &CASES {
        std::fs::write(place.path().join("s.yaml"), case.whole_text()).unwrap();
        let done = run(place.path(), &[&["bench", "s.yaml", "--trust-workspace"], &SHORT[..]].concat());
        if case.wrong.is_empty() {
            assert!([0, 4].contains(&done.code), "{}: {}", case.name, done.err);
            continue;
        }
        assert_eq!((done.code, done.out.as_str()), (1, ""), "{}: {}", case.name, done.err);
        let said = done.err.split_whitespace().collect::<Vec<_>>().join(" ");
        for (at, what, help) in case.wrong {
            for part in [at, what, help] {
                assert!(said.contains(part), "{}: {part} is not in\n{}", case.name, done.err);
            }
        }
    }
}

#[test]
fn the_scenarios_of_the_repository_are_good() {
    let place = workspace(&[("guard", RULE)]);
    let mut files: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/config/bench"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let path = file.to_str().unwrap();
        let value = serde_yaml::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(objections("scenario", &value), Vec::<String>::new(), "{path}");
        let done = run(
            place.path(),
            &[&["bench", path, "--trust-workspace", "--workspace", "."], &SHORT[..]].concat(),
        );
        assert!([0, 4].contains(&done.code), "{path}: {}", done.err);
    }
}

#[test]
fn a_scenario_that_cannot_be_read_is_an_error() {
    let place = workspace(&[("guard", RULE)]);
    let done = run(place.path(), &["bench", "none.yaml"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("the scenario cannot be read: no such file or directory"), "{}", done.err);
    std::fs::write(place.path().join("large.yaml"), "#".repeat((1 << 20) + 1)).unwrap();
    let done = run(place.path(), &["bench", "large.yaml"]);
    assert!(done.code == 1 && done.err.contains("larger than the 1048576 bytes allowed"), "{}", done.err);
}
