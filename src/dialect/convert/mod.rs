//! Converts hook configuration between dialects. Everything that cannot be converted gets a remark.
//!
//! Scripts are not converted: they read events and answer in the format of their hook's dialect.

mod file_defaults;
mod from_openharness;
mod from_settings;
mod matcher;
mod portable_hook;
mod to_openharness;
mod to_settings;
mod variables;

use std::path::PathBuf;

use serde::Serialize;

use super::catalog::{DialectImpl, implementation};
use crate::model::DialectName;
use portable_hook::{ConversionLosses, PortableHook};

/// A file with hooks, as it was found.
#[derive(Debug)]
pub struct HookConfigFile {
    /// Its path below the workspace, for remarks.
    pub path: PathBuf,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConvertedFile {
    /// Its path below the workspace.
    pub path: PathBuf,
    /// What belongs in it.
    pub text: String,
}

/// Something that was not carried over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversionRemark {
    /// The hook, by its name or its place.
    pub hook: String,
    /// What was lost, and what that means.
    pub message: String,
    /// Whether the hook is not there at all.
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

/// Writes the hooks of some files in another dialect's form. `text_file` reads a file of the workspace that a hook
/// names, such as a prompt.
///
/// Files that cannot be read, and hooks with mistakes, are left out with a remark; check them first.
pub fn convert(
    from: DialectName,
    files: &[HookConfigFile],
    to: DialectName,
    text_file: &dyn Fn(&str) -> Option<String>,
) -> Conversion {
    let mut losses = ConversionLosses::default();
    let mut hooks: Vec<PortableHook> = match implementation(from) {
        DialectImpl::Plain(_) => from_openharness::read(files, text_file, &mut losses),
        DialectImpl::Native(native) => from_settings::read(native, files, &mut losses),
    };
    portable_hook::make_names_unique(&mut hooks);
    for hook in &mut hooks {
        variables::rename(hook, from, to, &mut losses);
    }
    let (files, hooks) = match implementation(to) {
        DialectImpl::Plain(_) => to_openharness::write(&hooks, &mut losses),
        DialectImpl::Native(native) => to_settings::write(native, &hooks, &mut losses),
    };
    Conversion { files, hooks, remarks: losses.remarks }
}
