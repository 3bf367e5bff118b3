//! Decides for each hook of a workspace that was read whether it may run, and puts a placeholder in the place of each
//! trusted hook that is modified or gone: the policy that was agreed to decides about it.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    super::{
        Settings, WorkspaceSettings,
        account::home_directory,
        broken_hooks::add_block_of_trust,
        digests::sha256,
        files::{self, DefinitionFiles},
        hook_checks::tighten,
        workspace_options::{TrustPolicy, WorkspaceKind},
    },
    in_place::InPlaceAgreement,
    inspect::Inspector,
    record::{TreeFile, TrustRecord},
    shell_words::trust_command,
    store::{Environment, TrustError, TrustStore, is_replaced, store_for, verify_copy},
};
use crate::{
    dialect,
    model::{
        Approval, Capabilities, CommandHandler, CommandLine, CommandMode, Delivery, Diagnostic, DialectName,
        EventKind, ExecutionPolicy, FailurePolicy, Handler, Hook, HookName, HookSource, HookTrust, Matcher,
        Scope, Severity, TrustState, Workspace,
    },
};

/// The variable that hooks from a private copy have, so that Python leaves no compiled code beside the scripts.
pub(crate) const NO_COMPILED_CODE: &str = "PYTHONDONTWRITEBYTECODE";

/// The hooks of a workspace, each with what is decided about it.
#[derive(Default)]
pub(in crate::config) struct CheckedHooks {
    pub(in crate::config) hooks: Vec<Hook>,
    /// The files that decided.
    pub(in crate::config) watched: Vec<PathBuf>,
    pub(in crate::config) diagnostics: Vec<Diagnostic>,
}

/// Says for each hook whether it may run.
pub(in crate::config) fn check_trust(
    workspace: &Workspace,
    mut hooks: Vec<Hook>,
    definitions: &DefinitionFiles,
    given: &WorkspaceSettings,
    settings: &Settings,
    environment: Environment<'_>,
) -> CheckedHooks {
    let inspector = Inspector::new(workspace, definitions);
    note_definitions(&mut hooks, &inspector);
    if settings.trust == TrustPolicy::Off {
        for hook in &mut hooks {
            hook.trust = HookTrust::Approved(Approval::trust_is_off());
        }
        return CheckedHooks { hooks, ..CheckedHooks::default() };
    }
    let root = &workspace.root;
    let home = home_directory(settings, environment);
    let store = store_for(root, settings, environment);
    let records = store.as_ref().map_err(Clone::clone).and_then(TrustStore::read);
    let mut checker = Checker {
        inspector,
        store: store.ok(),
        records: BTreeMap::new(),
        diagnostics: Vec::new(),
        copies: RefCell::default(),
    };
    let needs_trust = |hook: &Hook| !is_of_operator(hook, root, home.as_deref());
    let mut unusable = None;
    match records {
        Ok(records) => checker.keep(records),
        Err(error) if error.is_refusal => {
            checker.report_store(&error, Diagnostic::TRUST_RECORD);
            unusable = Some(error.path);
        }
        Err(error) if hooks.iter().any(needs_trust) => checker.report_store(&error, Diagnostic::TRUST),
        // Where nothing needs trust, nothing is lost.
        Err(_) => {}
    }
    for hook in &mut hooks {
        if needs_trust(hook) {
            checker.check(hook);
        } else {
            hook.trust = HookTrust::Approved(Approval::managed());
        }
    }
    checker.report_untrusted(&hooks, root);
    if given.kind != Some(WorkspaceKind::Chat) {
        hooks.extend(checker.missing(given, &hooks, root));
        tighten_by_name(&mut hooks, settings);
        if let Some(record) = unusable {
            add_block_of_trust(&mut hooks, &record);
        }
    }
    let Checker { inspector, store, diagnostics, .. } = checker;
    let mut watched: Vec<PathBuf> = store.iter().map(TrustStore::file).collect();
    watched.extend(inspector.trees.into_read());
    CheckedHooks { hooks, watched, diagnostics }
}

/// Has the stricter policies of the operator count for hooks that are modified or gone, too.
fn tighten_by_name(hooks: &mut [Hook], settings: &Settings) {
    for hook in hooks {
        if let Some(handler) = settings.handlers.get(hook.name.as_str()) {
            tighten(hook, handler);
        }
    }
}

/// Notes in each hook the SHA-256 of its definition.
fn note_definitions(hooks: &mut [Hook], inspector: &Inspector<'_>) {
    for hook in hooks {
        let file = hook.source.file.as_deref();
        let definition = file.and_then(|file| inspector.definition(hook, file).ok());
        hook.execution.definition = definition.map(|text| sha256(text.as_bytes()).into());
    }
}

/// Whether a hook belongs to the user or the administrator. A file of theirs that is inside the workspace does so
/// only where the workspace is the home directory itself: variables of a project could have moved it there.
fn is_of_operator(hook: &Hook, root: &Path, home: Option<&Path>) -> bool {
    // As it really is: a path such as `/proc/self/cwd/…` names the workspace too. A file that is not there any more keeps
    // its rules, and they stay those of its user.
    let is_inside = || hook.source.file.as_deref().is_some_and(|file| files::leads_through(file, root));
    match hook.source.scope {
        Scope::Host => true,
        Scope::Managed | Scope::User => {
            !is_inside() || home.and_then(|home| home.canonicalize().ok()).as_deref() == Some(root)
        }
        Scope::Project | Scope::Local => false,
    }
}

struct Checker<'a> {
    inspector: Inspector<'a>,
    store: Option<TrustStore>,
    /// The records of this workspace that no hook has taken yet, by the names of the hooks.
    records: BTreeMap<String, TrustRecord>,
    diagnostics: Vec<Diagnostic>,
    /// The private copies, and what is wrong with them, by the files of the records: hooks share them.
    copies: RefCell<HashMap<*const TreeFile, VerifiedCopy>>,
}

/// Where a private copy is, or what is wrong with it.
type VerifiedCopy = Result<PathBuf, String>;

impl Checker<'_> {
    fn command(&self) -> String {
        trust_command(&self.inspector.workspace.root, "")
    }

    fn keep(&mut self, records: Vec<TrustRecord>) {
        let root = self.inspector.root().unwrap_or_default();
        let own = records.into_iter().filter(|record| record.root == root);
        self.records = own.map(|record| (record.hook.clone(), record)).collect();
    }

    fn report_store(&mut self, error: &TrustError, code: &'static str) {
        let diagnostic = Diagnostic::of_file(Severity::Error, code, &error.path, &*error.why);
        self.diagnostics.push(diagnostic.help(&*error.help));
    }

    /// Says whether a hook of the workspace may run.
    fn check(&mut self, hook: &mut Hook) {
        let Some(record) = self.records.remove(hook.name.as_str()) else {
            withhold(hook);
            hook.trust = HookTrust::refused(
                TrustState::Untrusted,
                format!("nobody has agreed to it; run {} to see what it does", self.command()),
            );
            return;
        };
        match self.approve(hook, &record) {
            Ok(approval) if record.outside.is_empty() => hook.trust = HookTrust::Approved(approval),
            Ok(approval) => {
                self.note_reach(hook, &record.outside);
                hook.trust =
                    HookTrust::ApprovedInPart { approval, not_covered: record.outside.as_slice().into() };
            }
            Err(why) => {
                let message = format!("`{}` does not run: {why}", hook.name);
                self.report_hook(hook, message);
                let reason = format!("{why}; run {} to see the difference", self.command());
                *hook = placeholder(&record, TrustState::Modified, reason, Some(hook));
            }
        }
    }

    fn approve(&self, hook: &mut Hook, record: &TrustRecord) -> Result<Approval, String> {
        let now = self.inspector.inspect(hook, record.in_place)?;
        record.confirm(&now)?;
        if record.in_place {
            let condition = InPlaceAgreement::confirm(&self.inspector, hook, record)?;
            keep_sources_alone(hook);
            return Ok(Approval::in_place(Some(Arc::new(condition))));
        }
        // What it reaches besides its files is read in the workspace.
        let approval = if record.outside.is_empty() { Approval::of_copy() } else { Approval::in_place(None) };
        if record.tree.is_empty() {
            return Ok(approval);
        }
        keep_sources_alone(hook);
        let store = self.store.as_ref().ok_or("there is no state directory")?;
        let copy = self.copy(store, record)?;
        let Handler::Command(command) = &hook.handler else { return Ok(approval) };
        let line = self.inspector.redirected(hook, command, &copy, &record.tree);
        let line = line.ok_or("its private copy lacks a file that it runs")?;
        if let Handler::Command(command) = &mut hook.handler {
            command.line = line;
            if let Some(sandbox) = &mut command.sandbox {
                // The copy lies outside the workspace.
                Arc::make_mut(sandbox).read.push(copy);
            }
        }
        Ok(approval)
    }

    /// The private copy of the files of a record, verified once.
    fn copy(&self, store: &TrustStore, record: &TrustRecord) -> VerifiedCopy {
        let mut copies = self.copies.borrow_mut();
        let known = copies.entry(Arc::as_ptr(&record.tree).cast()).or_insert_with(|| {
            let copy = store.copy_of(record);
            verify_copy(&copy, &record.tree).map(|()| copy)
        });
        known.clone()
    }

    /// Notes what a trusted hook reaches besides what was agreed to.
    fn note_reach(&mut self, hook: &Hook, outside: &[String]) {
        let Some(file) = hook.source.file.as_deref() else { return };
        let message =
            format!("the trust in `{}` does not cover all of it: {}", hook.name, outside.join("; "));
        let diagnostic = Diagnostic::of_file(Severity::Info, Diagnostic::TRUST, file, message);
        self.diagnostics.push(Diagnostic { line: hook.source.line, column: 1, ..diagnostic });
    }

    fn report_hook(&mut self, hook: &Hook, message: String) {
        let Some(file) = hook.source.file.as_deref() else { return };
        let diagnostic = Diagnostic::of_file(Severity::Error, Diagnostic::TRUST, file, message);
        let help = format!("run {} to see the difference and agree to it, or undo it", self.command());
        let diagnostic = diagnostic.help(help);
        self.diagnostics.push(Diagnostic { line: hook.source.line, column: 1, ..diagnostic });
    }

    /// One warning about all hooks that nobody has agreed to.
    fn report_untrusted(&mut self, hooks: &[Hook], root: &Path) {
        let untrusted = hooks.iter().filter(|hook| hook.trust.state() == Some(TrustState::Untrusted));
        let names: Vec<&str> = untrusted.map(|hook| hook.name.as_str()).collect();
        let [first, rest @ ..] = names.as_slice() else { return };
        let message = match rest.len() {
            0 => format!("the hook `{first}` does not run: nobody has agreed to it"),
            others => {
                format!("{} hooks do not run: nobody has agreed to `{first}` and {others} more", others + 1)
            }
        };
        let diagnostic = Diagnostic::of_file(Severity::Warning, Diagnostic::TRUST, root, message);
        let help = format!("run {} to see what they do and to agree to it", self.command());
        self.diagnostics.push(diagnostic.help(help));
    }

    /// The placeholders of the records that no hook has taken, unless the operator has left their dialect out.
    fn missing(&mut self, given: &WorkspaceSettings, known: &[Hook], root: &Path) -> Vec<Hook> {
        let records = std::mem::take(&mut self.records);
        let mut hooks = Vec::new();
        for record in records.into_values() {
            let is_left_out =
                given.dialects.as_ref().is_some_and(|dialects| !dialects.has(dialect_of(&record)));
            if is_left_out || known.iter().any(|hook| hook.name.as_str() == record.hook) {
                continue;
            }
            let file = root.join(&record.file);
            let (state, why) = if is_replaced(root) {
                (TrustState::Missing, "a link is in the place of its directory".to_owned())
            } else if file.is_file() {
                (TrustState::Modified, format!("`{}` no longer has it, or has errors", record.file))
            } else {
                (TrustState::Missing, format!("`{}` is gone", record.file))
            };
            let reason = format!("a person has agreed to it, and {why}");
            let hook = placeholder(&record, state, reason, None);
            self.diagnostics.push(missing_hook(&record, root, &file, &why));
            hooks.push(hook);
        }
        hooks
    }
}

fn missing_hook(record: &TrustRecord, root: &Path, file: &Path, why: &str) -> Diagnostic {
    let message = format!("the trusted hook `{}` does not run: {why}", record.hook);
    let command = trust_command(root, &format!(" --revoke {}", record.hook));
    let help = format!("restore it, or run {command} if it is not wanted any more");
    Diagnostic::of_file(Severity::Error, Diagnostic::TRUST, file, message).help(help)
}

/// Has Python leave no compiled code beside the scripts: it would be a file that nobody has agreed to.
pub(in crate::config) fn keep_sources_alone(hook: &mut Hook) {
    if let Handler::Command(command) = &mut hook.handler
        && !command.environment.iter().any(|(name, _)| name == NO_COMPILED_CODE)
    {
        command.environment.push((NO_COMPILED_CODE.to_owned(), "1".into()));
    }
}

/// Drops the secrets and variables of a hook that does not run.
fn withhold(hook: &mut Hook) {
    match &mut hook.handler {
        Handler::Command(command) => command.environment.clear(),
        Handler::Http(http) => http.headers.clear(),
        Handler::Prompt(_) | Handler::Agent(_) | Handler::Rule(_) | Handler::Rego(_) | Handler::Native(_) => {
        }
    }
}

fn dialect_of(record: &TrustRecord) -> DialectName {
    let known = DialectName::ALL.iter().find(|name| name.as_str() == record.dialect);
    known.copied().unwrap_or(DialectName::OpenHarness)
}

/// A hook that never runs and counts as the record says. `now` is what the file has in its place.
fn placeholder(record: &TrustRecord, state: TrustState, reason: String, now: Option<&Hook>) -> Hook {
    let policies = &record.policies;
    // A condition cannot be made again from its text; without it, the hook counts for more events.
    let condition = now.and_then(|hook| hook.execution.condition.clone());
    let condition = condition.filter(|known| Some(known.text()) == policies.condition);
    let scope =
        [Scope::Local, Scope::User, Scope::Managed].into_iter().find(|scope| scope.as_str() == record.scope);
    let file = Path::new(&record.root).join(&record.file);
    let source = now.map(|hook| hook.source.clone());
    let mut hook = Hook {
        // A name that was recorded is valid.
        name: now
            .map_or_else(|| HookName::new(&record.hook).ok(), |hook| Some(hook.name.clone()))
            .unwrap_or_else(unnamed),
        dialect: dialect::named(dialect_of(record)),
        events: policies.events.iter().filter_map(|name| EventKind::from_name(name)).collect(),
        matcher: policies.matcher.as_deref().and_then(|expression| Matcher::javascript(expression).ok()),
        handler: now.map_or_else(|| missing_command(&record.root), |hook| hook.handler.clone()),
        capabilities: Capabilities::default(),
        priority: record.priority,
        enabled: policies.enabled,
        timeout: std::time::Duration::from_secs(1),
        max_concurrency: None,
        on_error: policies.on_error(),
        on_timeout: FailurePolicy::Ignore,
        execution: ExecutionPolicy {
            host_event: policies.host_event.as_deref().map(Into::into),
            condition,
            delivery: if policies.detached { Delivery::Detached } else { Delivery::Awaited },
            ..ExecutionPolicy::default()
        },
        source: source.unwrap_or(HookSource {
            scope: scope.unwrap_or(Scope::Project),
            file: Some(file.into()),
            line: 0,
            position: 0,
            content: None,
            bundle: None,
        }),
        trust: HookTrust::refused(state, reason),
    };
    withhold(&mut hook);
    hook
}

fn unnamed() -> HookName {
    HookName::new("unnamed").expect("a valid name")
}

fn missing_command(root: &str) -> Handler {
    Handler::Command(CommandHandler {
        line: CommandLine::Shell("(missing)".to_owned()),
        cwd: root.into(),
        environment: Vec::new(),
        mode: CommandMode::Oneshot,
        sandbox: None,
    })
}
