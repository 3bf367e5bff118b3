//! Rules in place of commands: what is proposed, and where it would stand.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio::time::Instant;

use super::{
    super::{
        escape,
        guard::{GuardFailures, GuardRule},
        paths::display_path,
        screen::Screen,
        table::Page,
        units::{plural, precise_duration},
        wrap,
    },
    place::{RulePlace, written_as},
    proof::{NoRule, ProvenRule, RuleProof},
    trial::{TrialEvent, TrialStop},
};
use crate::{model::Hook, registry::Snapshot};

/// A rule that would take the place of a command.
#[derive(Debug, Serialize)]
pub(super) struct RuleProposal {
    pub(super) hook: String,
    /// Events by which both were compared.
    recorded: usize,
    made_up: usize,
    /// Events of them for which the command fails.
    #[serde(skip_serializing_if = "is_zero")]
    failed: usize,
    command_ms: f64,
    rule_us: f64,
    #[serde(skip)]
    times: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<&'static str>,
    /// The file that would have it.
    file: Option<PathBuf>,
    /// The text of that file, or of the handler alone.
    text: String,
    /// What the file would take the place of: the former text of the file.
    #[serde(skip)]
    pub(super) place: RulePlace,
    pub(super) written: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A hook that is no rule, and why.
#[derive(Debug, Serialize)]
pub(super) struct RuleRefusal {
    pub(super) hook: String,
    why: String,
    /// Whether a rule was found that did something else.
    differs: bool,
}

impl RuleProposal {
    /// The proposal for a hook of a workspace, or why it cannot be written down.
    pub(super) fn new(
        hook: &Hook,
        proven: &ProvenRule,
        snapshot: &Snapshot,
        root: &Path,
    ) -> Result<Self, RuleRefusal> {
        let name = hook.name.as_str().to_owned();
        let handler = match proven.rule.handler() {
            Ok(handler) => handler,
            Err(why) => return Err(RuleRefusal { hook: name, why: why.0, differs: false }),
        };
        let written = written_as(hook, &handler, proven.rule.failures, snapshot, root);
        let (text, place) = written.unwrap_or_else(|why| {
            let text = serde_yaml::to_string(&handler).unwrap_or_default();
            (text, RulePlace::ByHand(why))
        });
        let file = match &place {
            RulePlace::InFile { path, .. } | RulePlace::Instead { path, .. } => Some(path.clone()),
            RulePlace::ByHand(_) => None,
        };
        Ok(Self {
            hook: name,
            recorded: proven.recorded,
            made_up: proven.made_up,
            failed: proven.failed,
            command_ms: (proven.command.as_secs_f64() * 1e6).round() / 1e3,
            rule_us: (proven.evaluation.as_secs_f64() * 1e8).round() / 1e2,
            times: format!("{} → {}", precise_duration(proven.command), precise_duration(proven.evaluation)),
            remarks: remarks(&proven.rule),
            file,
            text,
            place,
            written: false,
        })
    }

    /// Whether it was written, and the settings with it.
    pub(super) fn changes_settings(&self) -> bool {
        self.written && matches!(self.place, RulePlace::Instead { .. })
    }

    /// Whether there is a place for it.
    pub(super) fn can_be_written(&self) -> bool {
        !matches!(self.place, RulePlace::ByHand(_))
    }

    /// The text that its file would have.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What is shown of it.
    fn add_to(&self, page: &mut Page, screen: &Screen) {
        let title = format!(
            "`{}`: {} agree, {} of them recorded; {}",
            escape::line(&self.hook),
            plural(self.recorded + self.made_up, "event"),
            self.recorded,
            self.times
        );
        let failed = format!("; for {} the command fails, and lets them pass as the rule does", self.failed);
        let failed = if self.failed > 0 { failed } else { String::new() };
        let width = screen.table_width();
        page.line("");
        page.line(&wrap::hanging(&[title, failed].concat(), width, 2));
        for remark in &self.remarks {
            page.line(&wrap::hanging(&format!("  note: {remark}"), width, 4));
        }
        match &self.place {
            RulePlace::InFile { before, path } => {
                let diff = similar::TextDiff::from_lines(before.as_str(), &self.text);
                let shown = display_path(path);
                let diff = diff.unified_diff().context_radius(2).header(&shown, &shown).to_string();
                page.line(&escape::block(&diff, 0));
            }
            RulePlace::Instead { path, key } => {
                page.line(&screen.out.paint.bold(&format!("# {}", display_path(path))));
                page.line(&escape::block(self.text.trim_end(), 0));
                page.line(&format!("and `{}` is switched off in the settings", escape::line(key)));
            }
            RulePlace::ByHand(why) => {
                page.line(&escape::block(self.text.trim_end(), 0));
                page.line(&wrap::hanging(
                    &format!("put it where it belongs by hand: {}", escape::line(why)),
                    width,
                    2,
                ));
            }
        }
    }
}

/// Everything about rules, for people. Why hooks are none is said only if it is asked for.
pub(super) fn add_to(page: &mut Page, proposals: &[RuleProposal], refusals: &[RuleRefusal], screen: &Screen) {
    if !proposals.is_empty() {
        let are = if proposals.len() == 1 { "is" } else { "are" };
        let what = plural(proposals.len(), "hook");
        page.line(&format!(
            "\n{what} {are} only a pattern and an answer, which a rule gives without a process:"
        ));
        for proposal in proposals {
            proposal.add_to(page, screen);
        }
        let is_left =
            |proposal: &RuleProposal| !proposal.written && !matches!(proposal.place, RulePlace::ByHand(_));
        if proposals.iter().any(is_left) {
            page.line("\n`--write --rules` puts the rules there");
        }
        for written in proposals.iter().filter(|proposal| proposal.written) {
            let file = written.file.as_deref().map(display_path).unwrap_or_default();
            page.line(&format!("\nthe rule of `{}` is in {file}", escape::line(&written.hook)));
        }
    }
    for refusal in refusals {
        let line = format!("{}, no rule: {}", escape::line(&refusal.hook), escape::line(&refusal.why));
        page.line(&wrap::hanging(&line, screen.table_width(), 2));
    }
}

/// Whether it is said why hooks are no rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleDetail {
    Proposals,
    WithRefusals,
}

impl RuleRefusal {
    pub(super) fn new(hook: &Hook, why: NoRule) -> Self {
        let hook = hook.name.as_str().to_owned();
        match why {
            NoRule::Unclear(why) => Self { hook, why, differs: false },
            NoRule::Differs(why) => Self { hook, why, differs: true },
            NoRule::OutOfTime => {
                Self { hook, why: "time was up; `--for` gives more".to_owned(), differs: false }
            }
        }
    }
}

/// Where a rule could say more than its command does.
pub(in crate::cli) fn remarks(rule: &GuardRule) -> Vec<&'static str> {
    let mut remarks = Vec::new();
    if rule.searches_a_command() {
        remarks.push(
            "it searches the text of a command, which a shell reads in other ways too, such as `g''it push`: \
             `shell.commands(…)` of docs/rules.md sees what would run",
        );
    }
    if rule.failures != GuardFailures::AsBefore {
        remarks.push(
            "where the field is no text, the rule has no value and `on_error` decides: a script would test its JSON, or fail",
        );
    }
    remarks
}

/// The rule that would take the place of a hook, or why there is none.
///
/// Returns an error if everything was stopped.
pub(super) async fn rule_for(
    proof: &RuleProof<'_>,
    hook: &Hook,
    recorded: &[TrialEvent],
    deadline: Instant,
) -> Result<Result<RuleProposal, RuleRefusal>, TrialStop> {
    match proof.find(hook, recorded, deadline).await {
        Ok(Ok(proven)) => {
            Ok(RuleProposal::new(hook, &proven, proof.snapshot, &proof.snapshot.workspace().root))
        }
        Ok(Err(why)) => Ok(Err(RuleRefusal::new(hook, why))),
        // What was measured counts all the same.
        Err(TrialStop::OutOfTime) => Ok(Err(RuleRefusal::new(hook, NoRule::OutOfTime))),
        Err(stop) => Err(stop),
    }
}
