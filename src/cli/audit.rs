//! `audit`: search the daemon's audit, and follow it.

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufRead, BufReader, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use clap::Args;
use serde_json::Value;

use super::{
    daemon_flag::{SocketFlag, StoppedDaemon},
    escape,
    exit::{CliError, CliResult, Exit},
    flags::JsonFlag,
    paths::open_input,
    screen::Screen,
    verdict_line::{VerdictLine, verdict_name},
};
use crate::{
    daemon::{Client, ClientError, DaemonStatus},
    model::Verdict,
};

const FOOTER: &str = "\
Examples:
  hookyard audit --verdict block --since 2026-01-31
  hookyard audit --decision 69b960cd7cb04e7e-2 --json
  hookyard audit --hook guard --tool Bash --follow
  hookyard audit /var/log/hookyard/audit.jsonl --run 7f3a

Rotated files (`audit.jsonl.1` and so on) are searched too, the oldest first.

Exit codes: 0 lines were found; 1 there are none, or the file cannot be read.";

/// How often a followed file is looked at.
const POLL: Duration = Duration::from_millis(200);

/// There are never more rotated files than this.
const MOST_ROTATED: u32 = 10_000;

/// Search the audit, and follow it
///
/// Prints the lines that match all of the given conditions: one line each, or as they were written with `--json`.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct AuditCommand {
    /// Audit file; default: that of the daemon
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    filter: AuditFilter,

    /// Only the last lines that match
    #[arg(long, short = 'n', value_name = "NUMBER")]
    last: Option<usize>,

    /// Then print new lines as they are written, until interrupted
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

/// What a line has to have.
#[derive(Debug, Default, Args)]
struct AuditFilter {
    /// The decision of this id
    #[arg(long, value_name = "ID")]
    decision: Option<String>,

    /// Decisions of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,

    /// Decisions of this workspace, by its id in the daemon
    #[arg(long, visible_alias = "workspace", value_name = "ID")]
    workspace_id: Option<String>,

    /// Decisions for which this hook ran
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,

    /// Decisions about this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// Decisions with this verdict; can be repeated
    #[arg(long, value_name = "VERDICT", value_parser = verdict_name)]
    verdict: Vec<Verdict>,

    /// Decisions at this time or later, in UTC: `2026-01-31` or `2026-01-31T09:30`
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<String>,

    /// Decisions before the end of this time, in UTC
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<String>,

    /// What `hookyard log` shows.
    #[arg(skip)]
    notable: bool,
}

/// Where the audit of a daemon is.
#[derive(Debug)]
pub(super) enum AuditPlace {
    File(PathBuf),
    /// The daemon's standard output.
    Stdout,
    /// It writes none.
    Nowhere,
}

impl AuditPlace {
    /// That of the daemon of a client. Without one, it is the file that it has left.
    ///
    /// Returns an error if there is neither.
    pub(super) fn of(client: &Client) -> Result<Self, CliError> {
        match client.ask::<DaemonStatus>("GET", "/v1/status", None) {
            Ok(status) => Ok(match status.audit.map(|audit| audit.to) {
                None => Self::Nowhere,
                Some(to) if to.starts_with('/') => Self::File(to.into()),
                Some(_) => Self::Stdout,
            }),
            Err(error @ ClientError::Down { .. }) => {
                let stopped = StoppedDaemon::at(client.socket());
                stopped.audit().map(Self::File).ok_or_else(|| stopped.no_decisions(&error))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The beginning of a time as lines have it.
fn time(text: &str) -> Result<String, &'static str> {
    const FORM: &[u8] = b"0000-00-00T00:00:00.000Z";
    let fits = |(given, form): (u8, &u8)| {
        if form.is_ascii_digit() { given.is_ascii_digit() } else { given == *form }
    };
    let is_time = text.len() >= 4 && text.len() <= FORM.len() && text.bytes().zip(FORM).all(fits);
    is_time.then(|| text.to_owned()).ok_or("write it in UTC as 2026-01-31 or 2026-01-31T09:30")
}

impl AuditFilter {
    fn matches(&self, line: &Value) -> bool {
        let is = |key: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| line[key].as_str() == Some(wanted.as_str()))
        };
        let ran = |hook: &String| {
            let hooks = line["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
            hooks.iter().any(|report| report["hook"].as_str() == Some(hook.as_str()))
        };
        let at = line["at"].as_str().unwrap_or_default();
        let verdict = line["verdict"].as_str();
        is("decision_id", &self.decision)
            && is("run_id", &self.run)
            && is("workspace_id", &self.workspace_id)
            && is("tool", &self.tool)
            && self.hook.as_ref().is_none_or(ran)
            && (self.verdict.is_empty() || self.verdict.iter().any(|wanted| verdict == Some(wanted.as_str())))
            && self.since.as_ref().is_none_or(|since| at >= since.as_str())
            && self.until.as_ref().is_none_or(|until| at < until.as_str() || at.starts_with(until.as_str()))
            && (!self.notable || VerdictLine::of_audit(line).is_notable())
    }
}

impl AuditCommand {
    /// The last decisions in a file that `hookyard log` shows.
    pub(super) fn last_notable(
        file: PathBuf,
        number: usize,
        workspace_id: Option<String>,
        (socket, output): (SocketFlag, JsonFlag),
    ) -> Self {
        let filter = AuditFilter { workspace_id, notable: true, ..AuditFilter::default() };
        Self { file: Some(file), filter, last: Some(number), follow: false, socket, output }
    }

    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file_of_daemon()?,
        };
        let mut found = FoundLines { most: self.last, ..FoundLines::default() };
        for rotated in rotated(&file) {
            // It may have been removed since it was listed.
            if let Ok(opened) = open_input(&rotated) {
                self.search(&mut BufReader::new(opened), &mut found, screen)?;
            }
        }
        let opened = open_input(&file).map_err(|error| unreadable(&file, &error))?;
        let mut reader = BufReader::new(opened);
        self.search(&mut reader, &mut found, screen)?;
        found.kept.iter().try_for_each(|line| screen.print(line))?;
        if self.follow {
            self.follow(&file, reader, screen)?;
        }
        if found.count == 0 {
            screen.note("no line matches");
            return Ok(Exit::Failed);
        }
        Ok(Exit::Done)
    }

    /// Where the daemon's audit is.
    fn file_of_daemon(&self) -> Result<PathBuf, CliError> {
        match AuditPlace::of(&self.socket.interactive_client())? {
            AuditPlace::File(file) => Ok(file),
            AuditPlace::Stdout => {
                let help = "name the file that its standard output is kept in";
                Err(CliError::with_help("the daemon writes its audit to standard output".to_owned(), help))
            }
            AuditPlace::Nowhere => {
                let help = "`hookyard log` shows what it has blocked lately; with `audit.to` in its settings, it keeps all \
                            decisions in a file; `hookyard audit FILE` searches one";
                Err(CliError::with_help("the daemon writes no audit".to_owned(), help))
            }
        }
    }

    /// Finds what matches up to the end of a file, and prints it unless only the last lines are wanted.
    fn search(
        &self,
        reader: &mut BufReader<File>,
        found: &mut FoundLines,
        screen: &Screen,
    ) -> Result<(), CliError> {
        let mut line = String::new();
        loop {
            let start = reader.stream_position()?;
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if !line.ends_with('\n') {
                // It is being written: it is read again when it is whole.
                reader.seek(SeekFrom::Start(start))?;
                return Ok(());
            }
            // A line of another kind is left out, as one that a full disk has cut.
            let Ok(value) = serde_json::from_str::<Value>(&line) else { continue };
            if !value["verdict"].is_string() || !self.filter.matches(&value) {
                continue;
            }
            let text = if self.output.json {
                escape::json(line.trim_end())
            } else {
                VerdictLine::of_audit(&value).render(screen)
            };
            if let Some(text) = found.take(text) {
                screen.print(&text)?;
            }
        }
    }

    /// Prints lines as they are written, also when the file is rotated.
    fn follow(&self, file: &Path, mut reader: BufReader<File>, screen: &Screen) -> Result<(), CliError> {
        let mut found = FoundLines::default();
        loop {
            thread::sleep(POLL);
            self.search(&mut reader, &mut found, screen)?;
            let Ok(now) = file.metadata() else { continue };
            let known = reader.get_ref().metadata()?;
            if (now.dev(), now.ino()) != (known.dev(), known.ino()) {
                self.search(&mut reader, &mut found, screen)?;
                reader = BufReader::new(open_input(file).map_err(|error| unreadable(file, &error))?);
            }
        }
    }
}

/// The lines that were found.
#[derive(Debug, Default)]
struct FoundLines {
    count: usize,
    /// Of which only so many are wanted, the last.
    most: Option<usize>,
    kept: VecDeque<String>,
}

impl FoundLines {
    /// Counts a line. Returns it if it is to be printed now.
    fn take(&mut self, line: String) -> Option<String> {
        self.count += 1;
        let Some(most) = self.most else { return Some(line) };
        self.kept.push_back(line);
        if self.kept.len() > most {
            self.kept.pop_front();
        }
        None
    }
}

/// The rotated files, the oldest first.
fn rotated(file: &Path) -> Vec<PathBuf> {
    let name = |number: u32| PathBuf::from(format!("{}.{number}", file.display()));
    let mut files: Vec<_> = (1..MOST_ROTATED).map(name).take_while(|file| file.is_file()).collect();
    files.reverse();
    files
}

fn unreadable(file: &Path, error: &std::io::Error) -> CliError {
    let why = crate::model::io_reason(error);
    let help = "name the file, and read it as the user of the daemon";
    CliError::with_help(format!("the audit `{}` cannot be read: {why}", escape::path(file)), help)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_match_by_all_conditions() {
        let line = json!({
            "at": "2026-01-31T09:30:00.125Z", "workspace_id": "shop", "run_id": "r", "decision_id": "d-1",
            "tool": "Bash", "verdict": "block", "hooks": [{ "hook": "guard" }, { "hook": "audit" }],
        });
        let text = |text: &str| Some(text.to_owned());
        let matching = [
            AuditFilter::default(),
            AuditFilter {
                decision: text("d-1"),
                run: text("r"),
                workspace_id: text("shop"),
                ..Default::default()
            },
            AuditFilter { hook: text("audit"), tool: text("Bash"), ..Default::default() },
            AuditFilter { verdict: vec![Verdict::Halt, Verdict::Block], ..Default::default() },
            AuditFilter { since: text("2026-01-31"), until: text("2026-01-31"), ..Default::default() },
            AuditFilter {
                since: text("2026-01-31T09:30:00.125Z"),
                until: text("2026-02"),
                ..Default::default()
            },
        ];
        for filter in matching {
            assert!(filter.matches(&line), "{filter:?}");
        }
        let others = [
            AuditFilter { decision: text("d-2"), ..Default::default() },
            AuditFilter { run: text("r"), tool: text("Read"), ..Default::default() },
            AuditFilter { hook: text("guar"), ..Default::default() },
            AuditFilter { verdict: vec![Verdict::Proceed], ..Default::default() },
            AuditFilter { since: text("2026-01-31T09:31"), ..Default::default() },
            AuditFilter { until: text("2026-01-31T09:29"), ..Default::default() },
        ];
        for filter in others {
            assert!(!filter.matches(&line), "{filter:?}");
        }
    }

    #[test]
    fn times_are_beginnings_of_those_in_lines() {
        for good in ["2026", "2026-01-31", "2026-01-31T09:30", "2026-01-31T09:30:00.125Z"] {
            assert_eq!(time(good).as_deref(), Ok(good));
        }
        for bad in ["", "26", "31.01.2026", "2026-01-31 09:30", "2026-01-31T09:30:00.125Zx", "yesterday"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
