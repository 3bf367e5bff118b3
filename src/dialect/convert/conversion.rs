//! The input and the result of a conversion.

use std::path::PathBuf;

use serde::Serialize;

/// A file with hooks, as it was found.
#[derive(Debug)]
pub struct HookConfigFile {
    /// Its path below the workspace, for remarks.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConvertedFile {
    /// Its path below the workspace.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

/// Something that was not carried over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversionRemark {
    /// The hook, by its name or its place.
    pub hook: String,
    /// What was lost, and what that means.
    pub message: String,
    /// Whether the whole hook is left out.
    pub left_out: bool,
}

/// The hooks of one dialect in the form of another.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conversion {
    /// The files, in order.
    pub files: Vec<ConvertedFile>,
    /// How many hooks are in them; one for several events may have become several.
    pub hooks: usize,
    /// What was not carried over, in order of the hooks.
    pub remarks: Vec<ConversionRemark>,
}
