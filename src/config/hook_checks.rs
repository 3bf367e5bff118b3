//! What hook files are checked against, how the settings have hooks run, and what is reported about the hooks that were
//! read.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    num::NonZeroUsize,
};

use super::{
    HandlerMode, HandlerSettings, Settings, files::FileBytes, guards::is_guard, last_good_store::GoodFiles,
};
use crate::{
    dialect::{HookRules, UnixSockets, UnsafeVariables},
    model::{
        CommandMode, Diagnostic, FailurePolicy, Handler, Hook, HookName, HttpHandler, HttpTarget, Scope,
        Severity, WorkerBounds, escaped_line, is_certainly_private, literal_address,
    },
    registry::guards_alike,
};

/// By what the operator switches hooks off.
const OPERATOR_SWITCH: &str = "`handlers` in the settings";

/// What hook files are checked against under these settings.
pub(super) fn hook_rules(settings: &Settings) -> HookRules {
    HookRules {
        default_timeout: settings.default_timeout,
        max_timeout: settings.max_timeout,
        unsafe_variables: if settings.allow_unsafe_environment {
            UnsafeVariables::Allowed
        } else {
            UnsafeVariables::Refused
        },
        unix_sockets: if settings.allow_unix_sockets { UnixSockets::Allowed } else { UnixSockets::Refused },
    }
}

/// Has hooks run as the settings say. Nothing that guards gets weaker: of two policies, the stricter counts.
///
/// Returns a warning about each mode of a hook that starts no process.
pub(super) fn configure(hooks: &mut [Hook], handlers: &BTreeMap<String, HandlerSettings>) -> Vec<Diagnostic> {
    if handlers.is_empty() {
        return Vec::new();
    }
    let mut diagnostics = Vec::new();
    for hook in hooks {
        let by_command = || handlers.get(&*shell_line(hook)?);
        let Some(settings) = handlers.get(hook.name.as_str()).or_else(by_command) else { continue };
        hook.max_concurrency = settings.max_concurrency.or(hook.max_concurrency);
        tighten(hook, settings);
        let Some(mode) = settings.mode else { continue };
        match &mut hook.handler {
            Handler::Command(command) => command.mode = command_mode(mode, settings.processes, command.mode),
            _ => diagnostics.extend(no_process(hook, mode)),
        }
    }
    diagnostics
}

/// The names of the hooks that the settings switch off, by their names or by their commands as they are written.
pub(super) fn switched_off(hooks: &[Hook], handlers: &BTreeMap<String, HandlerSettings>) -> BTreeSet<String> {
    let off = || handlers.iter().filter(|(_, settings)| !settings.enabled).map(|(name, _)| name);
    let by_command = hooks.iter().filter(|hook| {
        let line = shell_line(hook);
        off().any(|name| line.as_deref() == Some(name))
    });
    let mut names: BTreeSet<String> = by_command.map(|hook| hook.name.to_string()).collect();
    names.extend(off().cloned());
    names
}

/// Switches hooks off, whether or not they are trusted: the operator says so. What a level switched off stays as it is.
///
/// Returns a warning about each guard among them.
pub(super) fn switch_off(hooks: &mut [Hook], names: &BTreeSet<String>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for hook in hooks.iter_mut().filter(|hook| hook.enabled && names.contains(hook.name.as_str())) {
        hook.enabled = false;
        hook.execution.switches.disabled_by = Some(OPERATOR_SWITCH.into());
        if let Some(file) = hook.source.file.as_deref().filter(|_| is_guard(hook)) {
            let message = format!("the guard `{}` is switched off by {OPERATOR_SWITCH}", hook.name);
            let warning = Diagnostic::of_file(Severity::Warning, "switched-off", file, message);
            let help = format!("to have it again, run `hookyard enable {}`", hook.name);
            diagnostics.push(Diagnostic { line: hook.source.line, column: 1, ..warning.help(help) });
        }
    }
    diagnostics
}

/// Switches off the hooks in whose place a rule is in force, as the settings say. The rule belongs to the workspace as the hook does:
/// hooks of other workspaces may have the same command.
pub(super) fn replace(hooks: &mut [Hook], handlers: &BTreeMap<String, HandlerSettings>) {
    let replaced =
        handlers.iter().filter_map(|(name, settings)| Some((name, settings.replaced_by.as_ref()?)));
    for (name, rule) in replaced {
        let Some(distance) = hooks
            .iter()
            .find(|hook| hook.name.as_str() == rule && is_rule_in_force(hook))
            .map(Hook::distance)
        else {
            continue;
        };
        let is_meant = |hook: &&mut Hook| {
            hook.name.as_str() != rule
                && is_of_workspace(hook)
                && hook.distance() == distance
                && is_called(hook, name)
        };
        for hook in hooks.iter_mut().filter(is_meant) {
            hook.enabled = false;
            hook.execution.switches.disabled_by =
                Some(format!("the rule `{rule}`, which stands in its place").into());
        }
    }
}

/// Whether a hook is meant by its name or its command.
pub(crate) fn is_called(hook: &Hook, name: &str) -> bool {
    hook.name.as_str() == name || shell_line(hook).as_deref() == Some(name)
}

/// Whether a hook is in the files of a workspace.
fn is_of_workspace(hook: &Hook) -> bool {
    matches!(hook.source.scope, Scope::Project | Scope::Local) && hook.source.bundle.is_none()
}

fn is_rule_in_force(hook: &Hook) -> bool {
    let is_rule = matches!(hook.handler, Handler::Rule(_));
    is_rule && hook.enabled && is_of_workspace(hook) && hook.trust.approval().is_some()
}

/// Gives a hook the policies of the settings where they are stricter.
pub(super) fn tighten(hook: &mut Hook, settings: &HandlerSettings) {
    hook.on_error = stricter(hook.on_error, settings.on_error);
    hook.on_timeout = stricter(hook.on_timeout, settings.on_timeout);
}

/// The stricter of what a hook's own file and the settings say.
fn stricter(own: FailurePolicy, settings: Option<FailurePolicy>) -> FailurePolicy {
    match (own, settings) {
        (FailurePolicy::Deny, _) | (_, None) => own,
        (FailurePolicy::Ask | FailurePolicy::Ignore, Some(settings)) => settings,
    }
}

fn command_mode(mode: HandlerMode, processes: NonZeroUsize, own: CommandMode) -> CommandMode {
    match (mode, own) {
        (HandlerMode::Oneshot, _) => CommandMode::Oneshot,
        (HandlerMode::Prespawn, _) => CommandMode::Prespawn { spares: processes },
        (HandlerMode::Worker, CommandMode::Worker(own)) => {
            CommandMode::Worker(WorkerBounds { workers: processes, ..own })
        }
        (HandlerMode::Worker, _) => {
            CommandMode::Worker(WorkerBounds { workers: processes, ..WorkerBounds::default() })
        }
    }
}

fn no_process(hook: &Hook, mode: HandlerMode) -> Option<Diagnostic> {
    let message = format!(
        "`handlers` in the settings has the mode `{}` for `{}`, which is no command",
        mode.as_str(),
        hook.name
    );
    let diagnostic =
        Diagnostic::of_file(Severity::Warning, "handlers", hook.source.file.as_deref()?, message);
    Some(Diagnostic { line: hook.source.line, column: 1, ..diagnostic.help("remove the mode there") })
}

/// Errors about hooks whose handler is not compiled in. They stay loaded and fail at each event, so that the policy of
/// a guard decides.
pub(super) fn missing_features(hooks: &[Hook]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for hook in hooks.iter().filter(|hook| hook.enabled) {
        let (Some(feature), Some(file)) = (hook.handler.missing_feature(), &hook.source.file) else {
            continue;
        };
        let kind = hook.handler.kind();
        let message =
            format!("`{}` cannot run: this build of hookyard lacks the feature `{feature}`", hook.name);
        let help = format!("build hookyard with the feature `{feature}`, which {kind} hooks need");
        let diagnostic =
            Diagnostic::of_file(Severity::Error, Diagnostic::MISSING_FEATURE, file, message).help(help);
        diagnostics.push(Diagnostic { line: hook.source.line, column: 1, ..diagnostic });
    }
    diagnostics
}

/// An error about each enabled hook of the workspace that would be refused its server. It stays loaded and fails at
/// each event, so that the policy of a guard decides. What a name stands for is only known when it is resolved.
pub(super) fn refused_targets(hooks: &[Hook], settings: &Settings) -> Vec<Diagnostic> {
    let mut refused = Vec::new();
    for hook in hooks.iter().filter(|hook| hook.enabled) {
        let Handler::Http(http) = &hook.handler else { continue };
        let is_of_workspace = matches!(hook.source.scope, Scope::Project | Scope::Local);
        if is_of_workspace && is_refused(http, &settings.http.allow) {
            refused.extend(refusal(hook, http));
        }
    }
    refused
}

fn is_refused(http: &HttpHandler, allow: &[HttpTarget]) -> bool {
    let url = http.address.url();
    let is_allowed = |target: &HttpTarget| {
        target.is_server_of(url) || literal_address(url).is_some_and(|address| target.has_address(address))
    };
    http.address.socket().is_none() && is_certainly_private(url) && !allow.iter().any(is_allowed)
}

fn refusal(hook: &Hook, http: &HttpHandler) -> Option<Diagnostic> {
    let server = http.address.server();
    let message = format!(
        "`{}` may not connect to {server}: it is not a public server, and `http.allow` does not list it",
        hook.name
    );
    let help = format!("to allow it, add `{server}` to `http.allow` in the settings");
    let file = hook.source.file.as_deref()?;
    let diagnostic = Diagnostic::of_file(Severity::Error, Diagnostic::HTTP_TARGET, file, message).help(help);
    Some(Diagnostic { line: hook.source.line, column: 1, ..diagnostic })
}

/// The hooks with unique names. Of two with the same name, either may be the one that was meant, so neither is loaded;
/// except that a hook of a broken file that is read as it was stays where a namesake does not guard what it guards. Of
/// copies of one file, the first is loaded.
pub(super) fn unique_names(named: Vec<(Hook, FileBytes)>, good: &GoodFiles) -> (Vec<Hook>, Vec<Diagnostic>) {
    let (named, mut diagnostics) = without_copies(named);
    let mut places: HashMap<HookName, Vec<String>> = HashMap::new();
    let mut kept: HashMap<HookName, Vec<Hook>> = HashMap::new();
    for (hook, file) in &named {
        if good.contains_key(&file.path) {
            kept.entry(hook.name.clone()).or_default().push(hook.clone());
        }
        let file = file.path.file_name().unwrap_or_default().to_string_lossy();
        places.entry(hook.name.clone()).or_default().push(escaped_line(&file).into_owned());
    }
    // The only kept hook of a name, unless another one guards the same.
    kept.retain(|name, hooks| {
        let mut rivals =
            named.iter().filter(|(hook, file)| hook.name == *name && !good.contains_key(&file.path));
        hooks.len() == 1 && !rivals.any(|(rival, _)| hooks.iter().any(|hook| guards_alike(rival, hook)))
    });
    let mut hooks = Vec::new();
    for (hook, file) in named {
        let is_kept = kept.contains_key(&hook.name) && good.contains_key(&file.path);
        match places.get(&hook.name).map(Vec::as_slice) {
            Some(files) if files.len() > 1 && !is_kept => {
                diagnostics.push(duplicate_name(&hook, &file, files));
            }
            _ => hooks.push(hook),
        }
    }
    (hooks, diagnostics)
}

/// The hooks without those of files that are copies of one before, and a warning about each of these.
fn without_copies(named: Vec<(Hook, FileBytes)>) -> (Vec<(Hook, FileBytes)>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut first: Vec<(Hook, FileBytes)> = Vec::with_capacity(named.len());
    let mut known: HashMap<HookName, usize> = HashMap::new();
    for (hook, file) in named {
        let original =
            known.get(&hook.name).map(|&at| &first[at].1).filter(|original| original.bytes == file.bytes);
        if let Some(original) = original {
            let name = original.path.file_name().unwrap_or_default().to_string_lossy();
            let message = format!("it is a copy of {}, which is loaded", escaped_line(&name));
            let warning = Diagnostic::of_file(Severity::Warning, "duplicate-name", &file.path, message);
            diagnostics.push(Diagnostic {
                line: hook.source.line,
                column: 1,
                ..warning.help("remove one of the two")
            });
            continue;
        }
        known.entry(hook.name.clone()).or_insert(first.len());
        first.push((hook, file));
    }
    (first, diagnostics)
}

/// The error about a hook whose name others have, too.
fn duplicate_name(hook: &Hook, file: &FileBytes, files: &[String]) -> Diagnostic {
    let name = hook.name.as_str();
    let message = format!("the name `{name}` is used by {} hooks, so none of them is loaded", files.len());
    let mut diagnostic = Diagnostic::of_file(Severity::Error, "duplicate-name", &file.path, message)
        .help(format!("rename all but one; it is in {}", files.join(", ")));
    diagnostic.line = hook.source.line;
    diagnostic.column = column_of(&file.bytes, hook.source.line, name);
    diagnostic.length = name.len();
    diagnostic
}

/// The column of a name in its line, in characters from 1.
fn column_of(bytes: &[u8], line: usize, name: &str) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let found = text.lines().nth(line.saturating_sub(1)).and_then(|line| {
        let value = line.find(':').map_or(0, |colon| colon + 1);
        let at = value + line[value..].find(name)?;
        Some(line[..at].chars().count() + 1)
    });
    found.unwrap_or(1)
}

/// Warnings about commands that hooks of two dialects run for the same event.
pub(super) fn duplicate_commands(hooks: &[Hook]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut seen: HashMap<String, Vec<&Hook>> = HashMap::new();
    for hook in hooks {
        let (Some(line), Some(file)) = (command_line(hook), &hook.source.file) else { continue };
        let known = seen.entry(line).or_default();
        if let Some(twin) = known.iter().find(|other| are_twins(other, hook)) {
            let message = format!("`{}` runs what `{}` runs for the same event", hook.name, twin.name);
            let help = "keep one of the two, or name the `dialects` you want in .openharness/settings.yaml";
            let diagnostic = Diagnostic::of_file(Severity::Warning, "twin", file, message).help(help);
            diagnostics.push(Diagnostic { line: hook.source.line, column: 1, ..diagnostic });
        }
        known.push(hook);
    }
    diagnostics
}

/// The shell line of an enabled command hook.
fn command_line(hook: &Hook) -> Option<String> {
    shell_line(hook).filter(|_| hook.enabled).map(Cow::into_owned)
}

/// The command of a hook, as a shell takes it.
fn shell_line(hook: &Hook) -> Option<Cow<'_, str>> {
    match &hook.handler {
        Handler::Command(command) => Some(command.line.in_a_shell()),
        _ => None,
    }
}

/// Whether two hooks of different dialects run for the same events.
fn are_twins(one: &Hook, other: &Hook) -> bool {
    one.dialect.name() != other.dialect.name()
        && one.execution.host_event == other.execution.host_event
        && one.events.iter().any(|kind| other.events.contains(kind))
}
