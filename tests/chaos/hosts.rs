//! Hosts that send events, send them again where they may, and compare each answer with the reference.

use std::{
    collections::HashMap,
    thread,
    time::{Duration, Instant},
};

use hookyard::daemon::{ClientError, ClientResponse};
use serde_json::{Value, json};

use crate::{
    arena::{Arena, Moment},
    random::Random,
    reference::{Call, HALT_UNDONE, RightAnswer, Tool, judge, judge_native},
    support::wait::LONGEST_WAIT,
    witness::{Runs, Witness},
    workspace::{FINE, FORBIDDEN, ID},
};

/// Between two events of a host, and before it sends one again.
const PAUSE: Duration = Duration::from_millis(2);

/// An answer with a halt that came sooner has waited for the disk.
const LONGEST_SAVE: Duration = Duration::from_secs(2);

/// One host, which has one run at a time.
pub(crate) struct Host {
    number: u64,
    random: Random,
    /// How many events it has sent, of which each has its number as its id.
    sent: u64,
    runs: u64,
    /// The runs that were halted, as it was told.
    halted: Vec<String>,
    /// The events for which it did not wait, and which were accepted.
    notes: Vec<String>,
    /// What is known of the work for each event, by its id.
    work: HashMap<String, Work>,
}

/// What is known of the work for an event.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    /// How often it may have been done without an answer that was seen.
    unseen: u32,
    /// Whether the answer says that the hook ran.
    must_have_run: bool,
    /// Whether the hook was started, and may have said so, without having come to its end.
    may_have_begun: bool,
}

/// What became of an attempt.
enum Attempt {
    Answered(ClientResponse),
    /// Nothing was done; it may be sent again.
    Refused,
    /// It may have been done; it may be sent again.
    Lost,
    /// It must not have come to this.
    Wrong(String),
}

impl Host {
    pub(crate) fn new(number: u64, seed: u64) -> Self {
        Self {
            number,
            random: Random::new(seed),
            sent: 0,
            runs: 0,
            halted: Vec::new(),
            notes: Vec::new(),
            work: HashMap::new(),
        }
    }

    /// Sends events until the arena says that it is over.
    pub(crate) fn play(mut self, arena: &Arena) -> Self {
        let _end = arena.end_on_panic();
        while !arena.is_over() {
            let turn = arena.turn();
            match self.random.below(24) {
                0 => self.halt(arena),
                1 if !self.halted.is_empty() => self.disobey(arena),
                2 => self.end_run(arena),
                3 | 4 => self.note(arena),
                5..=8 => self.call_natively(arena),
                9..=14 => self.call(Tool::Bash, arena),
                15..=18 => self.call(Tool::Work, arena),
                19 => self.call(Tool::Fetch, arena),
                _ => self.call(Tool::Read, arena),
            }
            drop(turn);
            thread::sleep(PAUSE);
        }
        self
    }

    fn run(&self) -> String {
        format!("run-{}-{}", self.number, self.runs)
    }

    fn next_id(&mut self) -> String {
        self.sent += 1;
        format!("{}-{}", self.number, self.sent)
    }

    /// Calls a tool.
    fn call(&mut self, tool: Tool, arena: &Arena) {
        let run = self.run();
        let is_forbidden = tool != Tool::Read && self.random.one_in(3);
        self.send_call(&run, Call { tool, is_forbidden, is_halted: false }, arena);
    }

    /// Does what halts the run, and begins another. A halt whose answer did not wait for a slow disk any more counts once it
    /// is there: until then a kill may undo it, as the documents say.
    fn halt(&mut self, arena: &Arena) {
        let run = self.run();
        let call = Call { tool: Tool::Halt, is_forbidden: false, is_halted: false };
        let (since, begun) = (arena.now(), Instant::now());
        let answer = self.send_call(&run, call, arena);
        let Some(RightAnswer::OfHook | RightAnswer::AlreadyHalted) = answer else { return };
        self.runs += 1;
        if begun.elapsed() < LONGEST_SAVE {
            self.halted.push(run);
        } else if arena.halts_are_stored(since) {
            arena.count("halts that a slow disk kept later");
            self.halted.push(run);
        } else {
            arena.count("halts that a kill came before a slow disk to");
        }
    }

    /// Calls a tool in a run that was halted.
    fn disobey(&mut self, arena: &Arena) {
        let position = self.random.index(self.halted.len());
        let run = self.halted[position].clone();
        let tool = self.random.pick(&[Tool::Read, Tool::Bash, Tool::Halt]);
        self.send_call(&run, Call { tool, is_forbidden: false, is_halted: true }, arena);
    }

    fn send_call(&mut self, run: &str, call: Call, arena: &Arena) -> Option<RightAnswer> {
        let id = self.next_id();
        let text = if call.is_forbidden { FORBIDDEN } else { FINE };
        let event = json!({
            "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
            "event_id": format!("{}{id}{}", ID.0, ID.1), "tool_name": call.tool.name(),
            "tool_input": { "command": text },
        });
        let since = arena.now();
        let outcome = read(&self.send("/v1/events", &event, &id, arena)?);
        match judge(call, &outcome) {
            Ok(RightAnswer::FailedClosed)
                if call.tool != Tool::Fetch && !arena.was_starved(since, call.tool) =>
            {
                arena.report([format!("a hook failed without a cause: {event}: {outcome}")]);
                None
            }
            Ok(answer) => {
                arena.count(if answer == RightAnswer::FailedClosed {
                    "guards that failed closed"
                } else {
                    "right answers"
                });
                let work = self.work.entry(id).or_default();
                work.must_have_run = answer == RightAnswer::OfHook && call.tool.has_witness();
                work.may_have_begun = answer == RightAnswer::FailedClosed;
                Some(answer)
            }
            Err(wrong) => {
                arena.report([format!("{wrong}: {event}: {outcome}")]);
                None
            }
        }
    }

    /// Calls a tool as Claude Code does, in a session of its own.
    fn call_natively(&mut self, arena: &Arena) {
        let id = self.next_id();
        let is_forbidden = self.random.one_in(3);
        let text = if is_forbidden { FORBIDDEN } else { FINE };
        let directory = arena.client().socket().parent().unwrap().join("shop");
        let event = json!({
            "hook_event_name": "PreToolUse", "session_id": format!("claude-{}", self.number), "cwd": directory,
            "tool_name": "Bash", "tool_use_id": format!("{}{id}{}", ID.0, ID.1), "tool_input": { "command": text },
        });
        let since = arena.now();
        let Some(response) = self.send("/v1/events/claude", &event, &id, arena) else { return };
        let is_instead_of_error = response.header("x-hookyard-error").is_some();
        let answer = read(&response);
        match judge_native(is_forbidden, is_instead_of_error, &answer) {
            Ok(RightAnswer::FailedClosed)
                if !is_instead_of_error && !arena.was_starved(since, Tool::Bash) =>
            {
                arena.report([format!("a hook failed without a cause: {event}: {answer}")]);
            }
            Ok(right) => {
                arena.count(if right == RightAnswer::FailedClosed {
                    "guards that failed closed"
                } else {
                    "right answers"
                });
                // The answer does not say whether the hook ran, or failed.
                self.work.entry(id).or_default().may_have_begun = true;
            }
            Err(wrong) => arena.report([format!("{wrong}: {event}: {answer}")]),
        }
    }

    /// Reports something for which nobody waits.
    fn note(&mut self, arena: &Arena) {
        let id = self.next_id();
        let event = json!({
            "event": "run_failed", "session_id": "s", "run_id": format!("note-{id}"), "workspace_id": "shop",
            "event_id": format!("{}{id}{}", ID.0, ID.1), "trigger_type": "user", "run_status": "failed", "wait": false,
        });
        if self.send("/v1/events", &event, &id, arena).is_some() {
            arena.count("events without waiting");
            self.work.remove(&id);
            self.notes.push(id);
        }
    }

    fn end_run(&mut self, arena: &Arena) {
        let id = self.next_id();
        let event = json!({
            "event": "run_completed", "session_id": "s", "run_id": self.run(), "workspace_id": "shop",
            "event_id": format!("{}{id}{}", ID.0, ID.1), "trigger_type": "user",
        });
        self.runs += 1;
        self.send("/v1/events", &event, &id, arena);
    }

    /// Sends an event until there is an answer.
    fn send(&mut self, path: &str, event: &Value, id: &str, arena: &Arena) -> Option<ClientResponse> {
        let body = event.to_string().into_bytes();
        let deadline = Instant::now() + LONGEST_WAIT;
        self.work.entry(id.to_owned()).or_default();
        while Instant::now() < deadline {
            let since = arena.now();
            match attempt(path, &body, since, arena) {
                Attempt::Answered(response) => return Some(response),
                Attempt::Refused => arena.count("attempts refused"),
                Attempt::Lost => {
                    arena.count("attempts lost");
                    self.work.entry(id.to_owned()).or_default().unseen += 1;
                }
                Attempt::Wrong(why) => {
                    arena.report([format!("{why}: {event}")]);
                    return None;
                }
            }
            thread::sleep(PAUSE * 10);
        }
        arena.report([format!("no answer within a minute: {event}")]);
        None
    }

    /// Each run that was halted must be so for ever.
    pub(crate) fn assert_halted_runs(&self, arena: &Arena) {
        for run in &self.halted {
            let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
                                "tool_name": "Read", "tool_input": {} });
            let response =
                arena.client().send("POST", "/v1/events", Some(event.to_string().as_bytes())).unwrap();
            if read(&response)["verdict"] != "halt" {
                arena.report([format!("{HALT_UNDONE} in {run}: {}", read(&response))]);
            }
            arena.count("halts that held to the end");
        }
    }

    /// The accepted events for which no hook has run yet.
    pub(crate) fn undelivered<'h>(&'h self, witness: &'h Witness) -> impl Iterator<Item = &'h String> {
        self.notes.iter().filter(|id| !witness.has(id))
    }

    /// Compares what hooks say that they did with what the answers say.
    pub(crate) fn compare_with(&self, ran: &Runs, arena: &Arena) {
        for (id, work) in &self.work {
            let times = ran.get(id).copied().unwrap_or_default();
            let most = work.unseen + u32::from(work.must_have_run || work.may_have_begun);
            if times > most {
                arena.report([format!("the hook of event {id} ran {times} times: {work:?}")]);
            }
            if work.must_have_run && times == 0 {
                arena.report([format!("the hook of event {id} did not run: {work:?}")]);
            }
        }
    }
}

fn attempt(path: &str, body: &[u8], since: Moment, arena: &Arena) -> Attempt {
    let response = match arena.client().send("POST", path, Some(body)) {
        Ok(response) => response,
        Err(ClientError::Down { .. }) => return Attempt::Refused,
        Err(_) if arena.was_killed(since) => return Attempt::Lost,
        Err(error) => return Attempt::Wrong(format!("no answer from a daemon that lives: {error}")),
    };
    if (200..300).contains(&response.status) {
        return Attempt::Answered(response);
    }
    let error = response.error_response();
    let ClientError::Refused { retry, .. } = &error else {
        return Attempt::Wrong(format!("an error without a word on retries: {error}"));
    };
    match retry.map(|retry| serde_json::to_value(retry).unwrap()) {
        Some(Value::String(retry)) if retry == "safe" => Attempt::Refused,
        Some(Value::String(retry)) if retry == "may_repeat" => Attempt::Lost,
        _ => Attempt::Wrong(format!("{} {}", response.status, String::from_utf8_lossy(&response.body))),
    }
}

fn read(response: &ClientResponse) -> Value {
    serde_json::from_slice(&response.body).unwrap_or(Value::Null)
}
