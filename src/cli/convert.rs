//! `convert`: write the hooks of one dialect in the format of another. Never overwrites a file.

#[cfg(feature = "daemon")]
mod rules;

use std::path::Path;

use clap::Args;

#[cfg(feature = "daemon")]
use super::flags::TrustFlag;
use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{JsonFlag, WorkspaceFlags},
    new_file::write_new,
    screen::Screen,
    table::Page,
    units::plural,
    workspace::LocatedWorkspace,
    wrap,
};
use crate::{
    config,
    dialect::{Conversion, ConvertedFile, convert},
    model::DialectName,
};

const FOOTER: &str = "\
Examples:
  hookyard convert --from claude --to openharness
  hookyard convert --from openharness --to codebuddy --write
  hookyard convert --from claude --to openharness --rules
  hookyard convert --from claude --to openharness --json | jq '.remarks[].message'

Only configuration is converted. Adapt the scripts by hand: they read and answer in the format of their dialect.";

/// Convert hook configuration to another dialect
///
/// Prints the files in the other dialect, and reports what could not be converted. Reads the hooks of the workspace,
/// not those of the user. hookyard runs hooks of any dialect for any host; use `convert` only to migrate permanently.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct ConvertCommand {
    /// Dialect to read
    #[arg(long, value_name = "NAME")]
    from: DialectName,

    /// Dialect to write
    #[arg(long, value_name = "NAME")]
    to: DialectName,

    /// Write the files into the workspace instead of printing them
    #[arg(long)]
    write: bool,

    /// Take a rule in the place of each command that is only a pattern and an answer, and gives the same ones: both are
    /// tried with made-up events, so the commands are run
    #[cfg(feature = "daemon")]
    #[arg(long)]
    rules: bool,

    #[cfg(feature = "daemon")]
    #[command(flatten)]
    trust: TrustFlag,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

/// The result as JSON, with what became of the commands.
#[cfg(feature = "daemon")]
#[derive(serde::Serialize)]
struct ConversionWithRules<'c> {
    #[serde(flatten)]
    conversion: &'c Conversion,
    rules: &'c [rules::ConvertedRule],
}

impl ConvertCommand {
    /// Whether it starts hooks.
    #[cfg(feature = "daemon")]
    pub(super) fn starts_hooks(&self) -> bool {
        self.rules
    }

    #[cfg_attr(
        not(feature = "daemon"),
        expect(clippy::unused_async, reason = "with the daemon it waits for commands")
    )]
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        for name in [self.from, self.to] {
            if name == DialectName::Canonical {
                let help = "canonical is a format of events only; name the dialect of an agent";
                return Err(CliError::with_help("the dialect canonical has no hook files", help));
            }
        }
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?;
        let root = &found.root;
        let files = config::raw_hook_files(root, self.from, &found.settings);
        if files.is_empty() {
            let what = format!("the workspace has no hooks in the dialect {}", self.from);
            return Err(CliError::with_help(what, "name another with `--from`; `hookyard list` shows them"));
        }
        let conversion =
            convert(self.from, &files, self.to, &|relative| config::workspace_text(root, relative));
        #[cfg(feature = "daemon")]
        if self.to == DialectName::OpenHarness && self.from != self.to {
            return self.run_with_rules(conversion, found, screen).await;
        }
        self.finish(&conversion, root, screen)
    }

    /// The same where the commands can become rules.
    #[cfg(feature = "daemon")]
    async fn run_with_rules(
        &self,
        mut conversion: Conversion,
        found: LocatedWorkspace,
        screen: &Screen,
    ) -> CliResult {
        if !self.rules {
            let number = rules::count(&conversion, &found, self.from);
            let done = self.finish(&conversion, &found.root, screen);
            if number > 0 {
                let what = if number == 1 {
                    "1 hook may be a rule"
                } else {
                    &format!("{number} hooks may be rules")
                };
                screen.note(&format!(
                    "{} {what}: `--rules` compares, and takes them",
                    screen.err.paint.yellow("note:")
                ));
            }
            return done;
        }
        let found = found.trusting(self.trust);
        let taken = match rules::take(&mut conversion, &found, self.from).await? {
            Ok(taken) => taken,
            Err(exit) => return Ok(exit),
        };
        if self.output.json {
            if self.write {
                write_all(&found.root, &conversion.files)?;
            }
            screen.print_json(&ConversionWithRules { conversion: &conversion, rules: &taken })?;
            return Ok(if conversion.hooks == 0 { Exit::Failed } else { Exit::Done });
        }
        let done = self.finish(&conversion, &found.root, screen);
        for rule in &taken {
            screen.note(&wrap::hanging(&escape::line(&rule.line()), Some(screen.width()), 2));
            for remark in rule.remarks() {
                screen.note(&wrap::hanging(&format!("  note: {remark}"), Some(screen.width()), 4));
            }
        }
        done
    }

    fn finish(&self, conversion: &Conversion, root: &Path, screen: &Screen) -> CliResult {
        if self.write {
            write_all(root, &conversion.files)?;
        }
        if self.output.json {
            screen.print_json(conversion)?;
        } else {
            screen.print(&self.page(conversion, screen))?;
            self.print_remarks(conversion, screen);
        }
        Ok(if conversion.hooks == 0 { Exit::Failed } else { Exit::Done })
    }

    fn page(&self, conversion: &Conversion, screen: &Screen) -> String {
        let mut page = Page::default();
        for file in &conversion.files {
            let path = escape::path(&file.path);
            if self.write {
                page.line(&format!("wrote {path}"));
            } else {
                page.line(&screen.out.paint.bold(&format!("# {path}")));
                page.line(file.text.trim_end());
            }
        }
        page.into_text()
    }

    fn print_remarks(&self, conversion: &Conversion, screen: &Screen) {
        let paint = screen.err.paint;
        for remark in &conversion.remarks {
            let word = if remark.left_out { "left out:" } else { "lost:" };
            let hook = escape::line(&remark.hook);
            let line = format!("{} `{hook}`: {}", paint.yellow(word), escape::line(&remark.message));
            screen.note(&wrap::hanging(&line, Some(screen.width()), 2));
        }
        let hooks = plural(conversion.hooks, "hook");
        let files = plural(conversion.files.len(), "file");
        let remarks = plural(conversion.remarks.len(), "remark");
        screen.note(&format!("{hooks} in {files}, {remarks}"));
        if conversion.hooks > 0 && self.from != self.to {
            let note =
                format!("the scripts still read and answer in {}; adapt them to {}", self.from, self.to);
            screen.note(&format!("{} {note}", paint.yellow("note:")));
        }
    }
}

/// Writes all files, or none if one of them exists.
fn write_all(root: &Path, files: &[ConvertedFile]) -> Result<(), CliError> {
    if let Some(file) = files.iter().find(|file| root.join(&file.path).symlink_metadata().is_ok()) {
        let what = format!("{} already exists, so nothing was written", escape::path(&file.path));
        return Err(CliError::with_help(what, "leave `--write` out and copy what you want by hand"));
    }
    for file in files {
        write_new(&root.join(&file.path), &file.text).map_err(|error| {
            CliError::new(format!(
                "{} cannot be written: {}",
                escape::path(&file.path),
                crate::model::io_reason(&error)
            ))
        })?;
    }
    Ok(())
}
