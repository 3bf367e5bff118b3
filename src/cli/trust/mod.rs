//! `trust`: show what the hooks of a workspace would run, and agree to it. Runs nothing.

mod view;

use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::Path,
};

use clap::Args;
use serde::Serialize;

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{JsonFlag, WorkspaceFlags},
    paths::shell_quoted,
    screen::Screen,
    units::plural,
    workspace::{LocatedWorkspace, note_last_good},
};
use crate::{
    config::{ReviewedHook, TrustError, TrustReview, revoke_trust},
    handler::command::is_inside_hook,
    model::TrustState,
};

const FOOTER: &str = "\
Examples:
  hookyard trust
  hookyard trust --yes 5f0c…
  hookyard trust --list
  hookyard trust --revoke my-guard

Without `--yes` it shows every hook of the workspace, what it gets and what has changed, and asks on a terminal. What \
you agree to runs from a private copy: a later change of a file makes its hooks `modified`, and they do not run. Hooks \
of your own and of managed files need no trust.

Exit codes: 0 all hooks are trusted; 1 they are not.";

/// Show what the hooks of a workspace run, and agree to it
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct TrustCommand {
    /// Agree without a question, if SHA is the digest of everything that is shown
    #[arg(long, value_name = "SHA", conflicts_with_all = ["list", "revoke"])]
    yes: Option<String>,

    /// List the hooks and their state, and ask nothing
    #[arg(long, conflicts_with = "revoke")]
    list: bool,

    /// Forget the trust in one hook, or in all hooks of the workspace
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    revoke: Option<String>,

    /// Run the scripts in the workspace and not from a private copy, for scripts that import other files
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    in_place: bool,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Serialize)]
struct TrustReport<'a> {
    digest: String,
    hooks: Vec<TrustRow<'a>>,
}

#[derive(Serialize)]
struct TrustRow<'a> {
    name: &'a str,
    trust: TrustState,
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn trust_error(error: &TrustError) -> CliError {
    CliError::with_help(escape::line(&error.to_string()), error.help.clone())
}

impl TrustCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        if is_inside_hook() {
            let help = "run `hookyard trust` yourself, outside the agent";
            return Err(CliError::with_help("a hook cannot trust hooks", help));
        }
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?;
        if let Some(name) = &self.revoke {
            return revoke(&found, name, screen);
        }
        let review = TrustReview::of(&found.root, &found.settings, &environment, self.in_place);
        let review = review.map_err(|error| trust_error(&error))?;
        if self.list || self.output.json {
            self.print_list(&review, screen)?;
            if review.hooks.iter().any(|hook| matches!(hook.now, Some(Err(_)))) {
                note_last_good(&found.last_good_remarks(&found.load()), screen);
            }
        }
        match &self.yes {
            Some(given) => return agree_to(&review, &found, given, screen),
            None if self.list || self.output.json => return Ok(agreed(&review)),
            None => {}
        }
        screen.print(&view::page(&review, &found.root, screen))?;
        if review.is_agreed() {
            return Ok(Exit::Done);
        }
        self.ask(&review, &found, screen)
    }

    /// Asks the person at the terminal; elsewhere, prints the command that agrees.
    fn ask(&self, review: &TrustReview, found: &LocatedWorkspace, screen: &Screen) -> CliResult {
        if !io::stdin().is_terminal() || !screen.out.is_terminal {
            let in_place = if self.in_place { " --in-place" } else { "" };
            screen.note(&format!(
                "to agree: hookyard trust{}{}{in_place} --yes {}",
                found.flag(),
                self.settings_flags(),
                review.digest()
            ));
            return Ok(Exit::Failed);
        }
        // The question is for a person: a program that reads the output gets the one above.
        write!(io::stderr(), "Trust exactly this? [y/N] ")?;
        io::stderr().flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if !answer.ends_with('\n') {
            // The end of the input: the question's line is still open.
            writeln!(io::stderr())?;
        }
        if !["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
            screen.note("nothing was changed");
            return Ok(Exit::Failed);
        }
        agree(review, found, screen)
    }

    /// The flags about settings, as they were given: they say where the record of trust is.
    fn settings_flags(&self) -> String {
        let settings = &self.workspace.settings;
        let path = |flag: &str, path: &Path| format!(" {flag} {}", shell_quoted(path));
        let home = settings.home.as_deref().map(|home| path("--home", home));
        let config = settings.config.as_deref().map(|config| path("--config", config));
        let set = settings.set.iter().map(|(key, value)| path("--set", Path::new(&format!("{key}={value}"))));
        home.into_iter().chain(config).chain(set).collect()
    }

    fn print_list(&self, review: &TrustReview, screen: &Screen) -> Result<(), CliError> {
        let row = |hook: &'_ ReviewedHook| (hook.name.clone(), hook.state());
        if self.output.json {
            let hooks = review.hooks.iter().map(|hook| TrustRow { name: &hook.name, trust: hook.state() });
            return screen.print_json(&TrustReport { digest: review.digest(), hooks: hooks.collect() });
        }
        let rows = review.hooks.iter().map(row);
        let lines: Vec<String> =
            rows.map(|(name, state)| format!("{state:<10} {}\n", escape::line(&name))).collect();
        screen.print(&lines.concat())
    }
}

fn revoke(found: &LocatedWorkspace, name: &str, screen: &Screen) -> CliResult {
    let name = Some(name).filter(|name| !name.is_empty());
    let revoked = revoke_trust(&found.root, name, &found.settings, &environment);
    let revoked = revoked.map_err(|error| trust_error(&error))?;
    if let (Some(name), true) = (name, revoked.is_empty()) {
        return Err(CliError::new(format!("no trusted hook has the name `{}`", escape::line(name))));
    }
    screen.note(&format!("{} not trusted any more", plural(revoked.len(), "hook")));
    Ok(Exit::Done)
}

fn agreed(review: &TrustReview) -> Exit {
    if review.is_agreed() { Exit::Done } else { Exit::Failed }
}

fn agree_to(review: &TrustReview, found: &LocatedWorkspace, given: &str, screen: &Screen) -> CliResult {
    let digest = review.digest();
    if given != digest {
        let what = format!("the digest is {digest} and not {}", escape::short(given, 64));
        return Err(CliError::with_help(what, "look at the hooks again with `hookyard trust`"));
    }
    agree(review, found, screen)
}

/// Agrees to everything that was shown.
fn agree(review: &TrustReview, found: &LocatedWorkspace, screen: &Screen) -> CliResult {
    review.agree(&found.root).map_err(|error| trust_error(&error))?;
    let refused = review.hooks.iter().filter(|hook| matches!(hook.now, Some(Err(_)))).count();
    let trusted = review.hooks.iter().filter(|hook| matches!(hook.now, Some(Ok(_)))).count();
    screen.note(&format!("{} trusted", plural(trusted, "hook")));
    Ok(if refused == 0 { Exit::Done } else { Exit::Failed })
}

/// How a hook that `new` wrote gets trusted.
pub(super) enum NewTrust {
    /// It is trusted, or needs no trust.
    Given,
    /// A person has to look at other hooks too.
    Asked,
    /// By the command with this digest.
    Digest(String),
}

/// Whether nothing of a trusted hook has changed but that these files are beside its own.
fn has_only_gained(hook: &ReviewedHook, written: &[&Path]) -> bool {
    let (Some(before), Some(Ok(now))) = (&hook.before, &hook.now) else { return false };
    let is_new = |path: &String| {
        // Its own file is no gain: what it says has changed.
        let is_own = *path == before.file || *path == now.file;
        !is_own && written.contains(&Path::new(path)) && !before.tree.iter().any(|file| file.path == *path)
    };
    let changes = before.changes(now);
    !changes.is_empty() && changes.iter().all(is_new)
}

/// Agrees to the hook that `new` has just written, if a person is at the terminal and no other hook waits for an answer.
pub(super) fn agree_to_new(
    found: &LocatedWorkspace,
    name: &str,
    written: &[&Path],
    screen: &Screen,
) -> Result<NewTrust, CliError> {
    let review = TrustReview::of(&found.root, &found.settings, &environment, false);
    let review = review.map_err(|error| trust_error(&error))?;
    let written: Vec<&Path> =
        written.iter().map(|path| path.strip_prefix(&found.root).unwrap_or(path)).collect();
    let waits = |hook: &ReviewedHook| {
        hook.name != name && hook.state() != TrustState::Trusted && !has_only_gained(hook, &written)
    };
    if review.hooks.iter().any(waits) {
        return Ok(NewTrust::Asked);
    }
    let is_person = io::stdin().is_terminal() && screen.out.is_terminal;
    if !is_person || is_inside_hook() {
        return Ok(NewTrust::Digest(review.digest()));
    }
    agree(&review, found, screen).map(|_| NewTrust::Given)
}

/// The hooks of the workspace that are trusted as they are.
#[cfg(feature = "daemon")]
pub(super) fn trusted_hooks(found: &LocatedWorkspace) -> Result<Vec<String>, CliError> {
    let review = TrustReview::of(&found.root, &found.settings, &environment, false);
    let hooks = review.map_err(|error| trust_error(&error))?.hooks;
    let trusted = hooks.into_iter().filter(|hook| hook.state() == TrustState::Trusted);
    Ok(trusted.map(|hook| hook.name).collect())
}

/// Agrees to hooks that the program has brought itself, each with the text of its file, and again to hooks that have only
/// gained these files beside their own.
#[cfg(feature = "daemon")]
pub(super) fn agree_to_own(
    found: &LocatedWorkspace,
    own: &[(&str, &str)],
    written: &[&Path],
) -> Result<(), CliError> {
    let review = TrustReview::of(&found.root, &found.settings, &environment, false);
    let review = review.map_err(|error| trust_error(&error))?;
    let written: Vec<&Path> =
        written.iter().map(|path| path.strip_prefix(&found.root).unwrap_or(path)).collect();
    let is_own = |hook: &ReviewedHook| {
        let Some(Ok(now)) = &hook.now else { return false };
        own.iter().any(|(name, text)| hook.name == *name && now.definition == *text)
    };
    let agreed: Vec<&ReviewedHook> =
        review.hooks.iter().filter(|hook| is_own(hook) || has_only_gained(hook, &written)).collect();
    review.agree_to(&found.root, &agreed).map_err(|error| trust_error(&error))
}
