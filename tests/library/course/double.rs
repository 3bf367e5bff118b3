//! Dialects whose rules are data.

use std::{fmt, sync::LazyLock, time::Duration};

use bytes::Bytes;
use hookyard::model::{
    Dialect, DialectName, Draft, Event, EventError, EventKind, Failure, Hook, HostResponse, Json, JsonError,
    MatchField, MergeRule, Outcome, RawReply, Reply, ResponseFormat, Strategy, Target, Verdict, Workspace,
    WorkspaceId, merge_deep, merge_one_level,
};

/// How the hooks of a dialect run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Running {
    AsTheKind,
    Serial,
    Parallel,
}

/// Which verdicts end the chain. A halt always does, since nothing can come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Halt,
    Block,
    Ask,
    AnyVerdict,
}

/// How a patch joins what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    Replace,
    OneLevel,
    Deep,
    Refuse,
}

/// What the matchers of a dialect look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matching {
    AsTheKind,
    Nothing,
}

/// A dialect made of four rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Double {
    pub(crate) name: DialectName,
    pub(crate) running: Running,
    pub(crate) ends: Ends,
    pub(crate) join: Join,
    pub(crate) matching: Matching,
}

/// Every combination of a name and rules: dialects live as long as the program.
static ALL: LazyLock<Vec<Double>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for name in [DialectName::Canonical, DialectName::OpenHarness] {
        for running in [Running::AsTheKind, Running::Serial, Running::Parallel] {
            for ends in [Ends::Block, Ends::Ask, Ends::Halt, Ends::AnyVerdict] {
                for join in [Join::Replace, Join::OneLevel, Join::Deep, Join::Refuse] {
                    for matching in [Matching::AsTheKind, Matching::Nothing] {
                        all.push(Double { name, running, ends, join, matching });
                    }
                }
            }
        }
    }
    all
});

impl Double {
    /// The dialects of a name, the plainest first.
    pub(crate) fn all(name: DialectName) -> impl Iterator<Item = &'static Self> {
        ALL.iter().filter(move |double| double.name == name)
    }

    /// A dialect whose hooks run as the kind of event says, end the chain at block and halt, and merge deep.
    pub(crate) fn plain() -> &'static Self {
        Self::with(Running::AsTheKind, Ends::Block)
    }

    /// A dialect with these rules, whose patches merge deep.
    pub(crate) fn with(running: Running, ends: Ends) -> &'static Self {
        Self::all(DialectName::Canonical)
            .find(|double| {
                (double.running, double.ends, double.join) == (running, ends, Join::Deep)
                    && double.matching == Matching::AsTheKind
            })
            .expect("every combination is there")
    }

    /// What a hook is told about a draft: the dialect's name and the parts of the payload.
    pub(crate) fn told<'a>(name: DialectName, parts: impl Iterator<Item = (Target, &'a str)>) -> String {
        parts.fold(name.to_string(), |told, (target, value)| format!("{told} {target}={value}"))
    }
}

impl fmt::Debug for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, running, ends, join, matching } = self;
        write!(f, "{name}: runs {running:?}, ends {ends:?}, joins {join:?}, matches {matching:?}")
    }
}

impl Dialect for Double {
    fn name(&self) -> DialectName {
        self.name
    }

    fn match_field(&self, kind: EventKind) -> Option<MatchField> {
        match self.matching {
            Matching::AsTheKind => kind.match_field(),
            Matching::Nothing => None,
        }
    }

    fn strategy(&self, kind: EventKind) -> Strategy {
        match self.running {
            Running::AsTheKind => kind.strategy(),
            Running::Serial => Strategy::Serial,
            Running::Parallel => Strategy::Parallel,
        }
    }

    fn ends_chain(&self, _: EventKind, verdict: Verdict) -> bool {
        match self.ends {
            Ends::Halt => verdict == Verdict::Halt,
            Ends::Block => matches!(verdict, Verdict::Halt | Verdict::Block),
            Ends::Ask => matches!(verdict, Verdict::Halt | Verdict::Block | Verdict::Ask),
            Ends::AnyVerdict => verdict != Verdict::Proceed,
        }
    }

    fn envelope(&self, draft: &Draft, _: &Workspace) -> Bytes {
        let parts = Target::ALL.into_iter().filter_map(|t| Some((t, draft.target(t)?.as_str())));
        Self::told(self.name, parts).into()
    }

    fn merge_rule(&self, _: EventKind) -> MergeRule {
        MergeRule::Strictest
    }

    fn combine(&self, _: &Draft, _: &[Reply], reply: Reply) -> Reply {
        reply
    }

    fn apply_patch(&self, _: Target, current: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
        match self.join {
            Join::Replace => Ok(patch.clone()),
            Join::OneLevel => merge_one_level(current, patch),
            Join::Deep => merge_deep(current, patch),
            Join::Refuse => {
                Err(JsonError { message: "this dialect joins nothing".into(), line: 0, column: 0 })
            }
        }
    }

    fn read_event(&self, _: &[u8]) -> Result<Event, EventError> {
        unreachable!("an event on its course has been read")
    }

    fn kind_of(&self, _: &[u8]) -> Option<EventKind> {
        unreachable!("an event on its course has been read")
    }

    fn cwd_of(&self, _: &[u8]) -> Option<std::sync::Arc<str>> {
        None
    }

    fn write_response(&self, _: &Event, _: &Outcome) -> HostResponse {
        unreachable!("a course ends with the canonical outcome")
    }

    fn environment(&self, _: &Draft, _: &Workspace, _: Duration) -> Vec<(&'static str, String)> {
        unreachable!("a course starts no process")
    }

    fn response_format(&self, _: &Hook, _: EventKind) -> ResponseFormat {
        ResponseFormat { instructions: String::new(), schema: serde_json::Value::Null, placeholder: None }
    }

    fn read_reply(&self, _: &Hook, _: EventKind, _: RawReply) -> Result<Reply, Failure> {
        unreachable!("a course is given replies that have been read")
    }
}

/// The place all test hooks run in.
pub(crate) fn place() -> Workspace {
    Workspace::new(WorkspaceId::new("shop").unwrap(), "/srv/shop")
}
