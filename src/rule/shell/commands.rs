//! Finds the commands of a text.

use std::rc::Rc;

use super::{
    command::{LONGEST_TEXT, ShellCommands},
    reader::{ListEnd, Reader, TextScope},
    session::Session,
};

/// The commands that a shell runs for a text.
///
/// A text with an error in it is not understood; the commands before the error are reported all the same, as a shell
/// may run them. A text that is longer than [`LONGEST_TEXT`] or has a NUL in it is not read at all.
pub(in crate::rule) fn commands(text: &str) -> ShellCommands {
    if text.len() > LONGEST_TEXT || text.contains('\0') {
        return ShellCommands::default();
    }
    let mut session = Session::new(text);
    let scope = TextScope { via: Rc::from([]), texts: 0, may_assign: true, feed: None };
    let read = Reader::new(text, scope, 0, &mut session).list(ListEnd::Text);
    ShellCommands { understood: read.is_ok() && session.understood, commands: session.commands }
}
