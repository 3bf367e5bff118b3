//! Reports a command, and those that it runs itself.

use std::rc::Rc;

use super::{
    command::{MOST_TEXTS_DEEP, MOST_WRAPPERS, ShellCommand},
    reader::{Feed, ListEnd, Reader, TextScope},
    session::{ShellVariables, Stop},
    word::Field,
    wrappers::{self, InnerRun},
};

/// What a command reads.
#[derive(Debug, Clone, Default)]
pub(super) enum Input {
    /// What the whole text reads.
    #[default]
    Inherited,
    Text(Rc<str>),
    /// A here-document, by its number in the text.
    Document(usize),
    File,
    Unknown,
}

/// A command that has been read.
#[derive(Debug, Clone, Default)]
pub(super) struct Call {
    pub(super) fields: Vec<Field>,
    pub(super) assignments: Vec<(String, String)>,
    pub(super) redirects: Vec<(String, String)>,
    /// Whether the files of its redirections are known.
    pub(super) are_files_known: bool,
    pub(super) input: Input,
    pub(super) piped_from: Option<String>,
}

impl Call {
    /// What is piped into the commands of a text that it runs.
    fn feed(&self) -> Option<Feed> {
        let text = match &self.input {
            Input::Inherited => return None,
            Input::Text(text) => Some(Rc::clone(text)),
            Input::Document(_) | Input::File | Input::Unknown => None,
        };
        Some(Feed { text, ..Feed::of(self.piped_from.as_deref().unwrap_or_default()) })
    }
}

impl Reader<'_, '_> {
    /// Reports a command and what it runs. `fields` are those of the call, or of the command that a wrapper in it runs.
    pub(super) fn run(
        &mut self,
        call: &Call,
        fields: &[Field],
        assignments: &[(String, String)],
        via: &Rc<[String]>,
        wrappers: usize,
        is_complete: bool,
    ) -> Result<(), Stop> {
        if wrappers > MOST_WRAPPERS {
            return Err(Stop);
        }
        let (path, args) = match fields.split_first() {
            Some((path, args)) => (path.clone(), args),
            // Redirections alone.
            None => (Field::known(""), fields),
        };
        let is_program = path.is_known && !path.is_pattern && !path.text.starts_with('=');
        let name = if is_program { path.text.rsplit('/').next().unwrap_or_default() } else { "" };
        let found = wrappers::found(name, args);
        let through: Rc<[String]> = if found.is_empty() {
            Rc::from([])
        } else {
            via.iter().cloned().chain([name.to_owned()]).collect()
        };
        let reads_shell = found.contains(&InnerRun::Input);
        let is_input_known = !reads_shell || self.is_input_known(&call.input);
        let understood = is_program
            && (!name.is_empty() || fields.is_empty())
            && args.iter().all(|arg| arg.is_known)
            && is_complete
            && call.are_files_known
            && is_input_known;
        let piped_from = call.piped_from.clone();
        let bytes = fields.iter().map(|field| field.text.len()).chain(piped_from.iter().map(String::len));
        self.session.charge(bytes.sum())?;
        self.session.report(ShellCommand {
            name: name.to_owned(),
            path: path.text,
            args: args.iter().map(|arg| arg.text.clone()).collect(),
            assignments: assignments.to_vec(),
            redirects: call.redirects.clone(),
            via: via.to_vec(),
            piped_from,
            understood,
        })?;
        for run in found {
            if let InnerRun::Command { start, end, assignments, is_complete: has_all } = run {
                let inner = args.get(start..end).unwrap_or_default();
                self.run(call, inner, &assignments, &through, wrappers + 1, is_complete && has_all)?;
            } else {
                self.follow(run, call, &through)?;
            }
        }
        Ok(())
    }

    /// Reads a text that a command runs.
    fn follow(&mut self, run: InnerRun, call: &Call, through: &Rc<[String]>) -> Result<(), Stop> {
        // The commands in a text read what the one reads that runs it.
        let feed = call.feed();
        match run {
            InnerRun::Command { .. } | InnerRun::Unclear => self.session.understood = false,
            InnerRun::Text(text) => self.script(Some(&text), through, feed)?,
            InnerRun::Evaluated(text) => self.read(&text, through, false, feed)?,
            InnerRun::Alias(alias, value) => {
                self.read(&value, through, false, None)?;
                self.session.aliases.insert(alias, value);
            }
            InnerRun::Input => self.read_input(&call.input, through)?,
        }
        Ok(())
    }

    fn is_input_known(&self, input: &Input) -> bool {
        match input {
            Input::Inherited | Input::File | Input::Text(_) => true,
            Input::Document(document) => *document >= self.passed,
            Input::Unknown => false,
        }
    }

    /// A shell runs what it reads.
    fn read_input(&mut self, input: &Input, via: &Rc<[String]>) -> Result<(), Stop> {
        match input {
            Input::Text(text) => self.script(Some(text), via, None),
            Input::Document(document) => {
                let document = document.checked_sub(self.passed).and_then(|at| self.documents.get_mut(at));
                // One that has been passed is not known, which the command says.
                if let Some(document) = document {
                    document.shells.push(Rc::clone(via));
                }
                Ok(())
            }
            Input::Inherited | Input::File | Input::Unknown => Ok(()),
        }
    }

    /// Another shell runs a text.
    pub(super) fn script(
        &mut self,
        text: Option<&str>,
        via: &Rc<[String]>,
        feed: Option<Feed>,
    ) -> Result<(), Stop> {
        let Some(text) = text else {
            self.session.understood = false;
            return Ok(());
        };
        let variables = std::mem::replace(&mut self.session.variables, ShellVariables::of(text));
        let aliases = std::mem::take(&mut self.session.aliases);
        let result = self.read(text, via, true, feed);
        self.session.variables = variables;
        self.session.aliases = aliases;
        result
    }

    fn read(
        &mut self,
        text: &str,
        via: &Rc<[String]>,
        may_assign: bool,
        feed: Option<Feed>,
    ) -> Result<(), Stop> {
        let texts = self.scope.texts + 1;
        if texts > MOST_TEXTS_DEEP || text.contains('\0') {
            return Err(Stop);
        }
        self.session.charge(text.len())?;
        let scope = TextScope { via: Rc::clone(via), texts, may_assign, feed };
        // An error in an inner text is none in this one.
        if Reader::new(text, scope, self.depth, self.session).list(ListEnd::Text).is_err() {
            self.session.understood = false;
        }
        Ok(())
    }
}
