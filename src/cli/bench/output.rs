//! The files that a report is written to. They are opened before anything is measured: a report that cannot be written is
//! found out then.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{
    super::{escape, exit::CliError, screen::Screen},
    markdown,
    page::{self, PageLayout},
    report::BenchReport,
};
use crate::model::io_reason;

/// The file name that means standard output.
const STANDARD_OUTPUT: &str = "-";

/// Where a report goes.
#[derive(Debug)]
pub(super) struct ReportOutput {
    json: Option<OpenedFile>,
    markdown: Option<OpenedFile>,
}

/// A file that is written at the end; nothing in the place of standard output.
#[derive(Debug)]
struct OpenedFile {
    path: PathBuf,
    file: Option<File>,
}

impl ReportOutput {
    /// Opens the files, and leaves what is in them.
    ///
    /// Returns an error if one cannot be written.
    pub(super) fn open(json: Option<&Path>, markdown: Option<&Path>) -> Result<Self, CliError> {
        let open = |path: Option<&Path>| path.map(OpenedFile::open).transpose();
        Ok(Self { json: open(json)?, markdown: open(markdown)? })
    }

    /// Writes a report everywhere; to standard output as a page, unless one of the files is standard output.
    pub(super) fn write(self, report: &BenchReport, screen: &Screen) -> Result<(), CliError> {
        let is_standard = |file: &Option<OpenedFile>| file.as_ref().is_some_and(|file| file.file.is_none());
        if !is_standard(&self.json) && !is_standard(&self.markdown) {
            let layout = PageLayout { paint: screen.out.paint, width: screen.table_width() };
            screen.print(&page::render(report, layout))?;
        }
        if let Some(file) = self.json {
            let text = serde_json::to_string_pretty(report)
                .map_err(|error| CliError::new(format!("the report could not be written: {error}")))?;
            file.write(&text, screen)?;
        }
        self.markdown.map_or(Ok(()), |file| file.write(&markdown::render(report), screen))
    }
}

impl OpenedFile {
    fn open(path: &Path) -> Result<Self, CliError> {
        if path == Path::new(STANDARD_OUTPUT) {
            return Ok(Self { path: path.to_owned(), file: None });
        }
        let opened = File::options().write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|error| unwritten(path, &error))?;
        Ok(Self { path: path.to_owned(), file: Some(file) })
    }

    fn write(self, text: &str, screen: &Screen) -> Result<(), CliError> {
        let Some(mut file) = self.file else { return screen.print(text) };
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        let written =
            written.and_then(|()| if text.ends_with('\n') { Ok(()) } else { file.write_all(b"\n") });
        written.map_err(|error| unwritten(&self.path, &error))
    }
}

fn unwritten(path: &Path, error: &io::Error) -> CliError {
    CliError::new(format!("the report cannot be written to {}: {}", escape::path(path), io_reason(error)))
}
