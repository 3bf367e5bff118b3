//! `convert`: hook configuration in another dialect's form. Writes nothing unless it is told to, and never over a
//! file that is there.

use std::{fs, io::Write, path::Path};

use clap::Args;

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{JsonFlag, WorkspaceFlags},
    page::Page,
    paths::io_reason,
    screen::Screen,
    units::plural,
    workspace::LocatedWorkspace,
    wrap,
};
use crate::{
    config,
    dialect::{Conversion, ConvertedFile, convert},
    model::DialectName,
};

const EXAMPLES: &str = "\
Examples:
  hookyard convert --from claude --to openharness
  hookyard convert --from openharness --to codebuddy --write
  hookyard convert --from claude --to openharness --json | jq '.remarks[].message'

Only configuration is converted: scripts have to learn the other dialect's words by themselves.";

/// Writes the hooks of one dialect in another's form
///
/// Shows the files for the other dialect, and says what could not be carried over. Takes the hooks of the
/// workspace, not those of its user. hookyard runs hooks of any dialect for hosts of any other, so this is for
/// those who move.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConvertCommand {
    /// Whose hooks are read
    #[arg(long, value_name = "NAME")]
    from: DialectName,

    /// Whose form they get
    #[arg(long, value_name = "NAME")]
    to: DialectName,

    /// Writes the files into the workspace instead of showing them
    #[arg(long)]
    write: bool,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

impl ConvertCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        for name in [self.from, self.to] {
            if name == DialectName::Canonical {
                let help = "canonical is what hosts speak; take the dialect of an agent";
                return Err(CliError::with_help("there are no hooks in the dialect canonical", help));
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
        if self.write {
            write_all(root, &conversion.files)?;
        }
        if self.output.json {
            screen.print_json(&conversion)?;
        } else {
            screen.print(&self.page(&conversion, screen))?;
            self.tell(&conversion, screen);
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

    fn tell(&self, conversion: &Conversion, screen: &Screen) {
        let paint = screen.err.paint;
        for remark in &conversion.remarks {
            let (word, hook) =
                (if remark.left_out { "left out:" } else { "lost:" }, escape::line(&remark.hook));
            let line = format!("{} `{hook}`: {}", paint.yellow(word), escape::line(&remark.message));
            screen.note(&wrap::hanging(&line, Some(screen.width()), 2));
        }
        let hooks = plural(conversion.hooks, "hook");
        let (files, lost) =
            (plural(conversion.files.len(), "file"), plural(conversion.remarks.len(), "remark"));
        screen.note(&format!("{hooks} in {files}, {lost}"));
        if conversion.hooks > 0 {
            let (from, to) = (self.from, self.to);
            let note = format!("the scripts still read and answer in the words of {from}; {to} has others");
            screen.note(&format!("{} {note}", paint.yellow("note:")));
        }
    }
}

/// Writes all files, or none if one of them is there already.
fn write_all(root: &Path, files: &[ConvertedFile]) -> Result<(), CliError> {
    if let Some(file) = files.iter().find(|file| root.join(&file.path).symlink_metadata().is_ok()) {
        let what = format!("{} is there already, so nothing was written", escape::path(&file.path));
        return Err(CliError::with_help(what, "leave `--write` out and take over what you want by hand"));
    }
    for file in files {
        let path = root.join(&file.path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            fs::OpenOptions::new().write(true).create_new(true).open(&path)?.write_all(file.text.as_bytes())
        });
        written.map_err(|e| {
            CliError::new(format!("{} cannot be written: {}", escape::path(&file.path), io_reason(&e)))
        })?;
    }
    Ok(())
}
