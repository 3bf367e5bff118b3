//! The page that browsers get: its files, who has signed in, what hooks do now, and the last decisions. `routes/page.rs`
//! and its neighbours answer the requests.

mod assets;
mod decision;
mod decision_trace;
mod former;
mod history;
mod live;
mod live_view;
mod rule_trial;
mod sessions;

pub(super) use assets::{CONTENT_SECURITY_POLICY, PageFile, page_file};
pub(super) use decision::{DecisionDetails, DecisionEvent, DecisionPayload, DecisionSummary, millis};
pub(super) use decision_trace::DecisionTrace;
pub(super) use former::former_decisions;
pub(super) use history::{DecisionFilter, DecisionHistory, FoundDecisions, HistoryScope};
pub(super) use live::LiveActivity;
pub(super) use rule_trial::{RuleTrial, RuleTrialView};
pub(super) use sessions::{PageLink, PageSessions, SessionStream, SignInError};
