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

use super::catalog::{DialectImpl, implementation};
use crate::model::DialectName;
pub use portable_hook::{Conversion, ConversionRemark, ConvertedFile, HookConfigFile};
use portable_hook::{ConversionLosses, PortableHook};

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
        portable_hook::rename_variables(hook, from, to, &mut losses);
    }
    let (files, hooks) = match implementation(to) {
        DialectImpl::Plain(_) => to_openharness::write(&hooks, &mut losses),
        DialectImpl::Native(native) => to_settings::write(native, &hooks, &mut losses),
    };
    Conversion { files, hooks, remarks: losses.remarks }
}
