//! The message to a model about a path that is not opened.

use crate::root_dir::OpenError;

/// Why a path is not opened, with what to name instead.
pub(super) fn refusal(error: &OpenError) -> String {
    match error {
        OpenError::NoPath => {
            "is not a path; name a file or directory relative to the workspace, or `.`".to_owned()
        }
        OpenError::Outside => {
            "is outside the workspace; paths are relative to the workspace's directory and stay below it"
                .to_owned()
        }
        OpenError::Upwards => {
            "has a `..`, which is not followed here; name it from the workspace's directory".to_owned()
        }
        OpenError::Special => "is neither a regular file nor a directory".to_owned(),
        OpenError::Failed(error) => format!("cannot be opened: {}", error.kind()),
        OpenError::Link | OpenError::Missing | OpenError::NoDirectory => error.to_string(),
    }
}
