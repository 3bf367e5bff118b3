//! The arguments of tools and their JSON Schemas. Errors are written so that a model can correct itself.

use std::num::NonZeroUsize;

use serde::{Deserialize, de::DeserializeOwned};

use super::output;
use crate::model::AgentTool;

/// The longest arguments, in bytes.
const MAX_BYTES: usize = 16 << 10;

/// The longest description of what is wrong with them, in characters.
const MAX_REMARK: usize = 300;

const READ_FILE: &str = r#"{"type":"object","properties":{"path":{"type":"string","description":"The file, relative to the workspace's directory."},"first_line":{"type":"integer","minimum":1,"description":"The line to begin with; 1 if left out."},"lines":{"type":"integer","minimum":1,"description":"The most lines to return; as many as there is room for if left out."}},"required":["path"],"additionalProperties":false}"#;

const GREP: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","description":"A regular expression in the syntax of Rust's regex crate, searched anywhere in each line; no look-around, no backreferences; (?i) ignores case."},"path":{"type":"string","description":"The directory or file to search, relative to the workspace's directory; all of it if left out."},"glob":{"type":"string","description":"Only files whose path, relative to the workspace's directory, matches this glob; without a slash, only files of such a name, wherever they are."}},"required":["pattern"],"additionalProperties":false}"#;

const GLOB: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","description":"A glob for the whole path relative to the workspace's directory: * stays within one directory, **/ spans any number of them, {a,b} is either. **/*.rs finds the Rust files everywhere, *.rs those at the top."}},"required":["pattern"],"additionalProperties":false}"#;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFileArguments {
    pub(super) path: String,
    pub(super) first_line: Option<NonZeroUsize>,
    pub(super) lines: Option<NonZeroUsize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GrepArguments {
    pub(super) pattern: String,
    pub(super) path: Option<String>,
    pub(super) glob: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GlobArguments {
    pub(super) pattern: String,
}

/// The JSON Schema of a tool's arguments.
pub(super) const fn schema(tool: AgentTool) -> &'static str {
    match tool {
        AgentTool::ReadFile => READ_FILE,
        AgentTool::Grep => GREP,
        AgentTool::Glob => GLOB,
    }
}

/// Reads a tool's arguments.
///
/// Returns an error message with what is wrong and the schema.
pub(super) fn parse<T: DeserializeOwned>(tool: AgentTool, text: &str) -> Result<T, String> {
    read(text).map_err(|wrong| {
        let wrong = output::short(&wrong, MAX_REMARK);
        format!("the arguments of {} are wrong: {wrong}; their schema is {}", tool.as_str(), schema(tool))
    })
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("they are {} bytes long; at most {MAX_BYTES} are allowed", text.len()));
    }
    // Left to itself, serde takes an array for an object's values.
    if !text.trim_start().starts_with('{') {
        return Err("they are not a JSON object".to_owned());
    }
    serde_json::from_str(text).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        parse::<ReadFileArguments>(AgentTool::ReadFile, text).expect_err(text)
    }

    #[test]
    fn a_model_is_told_what_is_wrong_and_what_would_be_right() {
        for text in ["", "null", "[\"a\"]", "\"a\""] {
            assert!(wrong(text).contains("not a JSON object"), "{}", wrong(text));
        }
        assert!(wrong("{").contains("EOF"));
        assert!(wrong("{}").contains("missing field `path`"));
        assert!(wrong(r#"{"path":1}"#).contains("expected a string"));
        assert!(wrong(r#"{"path":"a","first_line":0}"#).contains("nonzero"));
        assert!(wrong(r#"{"path":"a","lines":"3"}"#).contains("invalid type: string"));
        assert!(wrong(r#"{"path":"a","lines":-1}"#).contains("-1"));
        assert!(wrong(r#"{"path":"a","file":"b"}"#).contains("unknown field `file`, expected one of `path`"));
        assert!(wrong(r#"{"path":"a"} {}"#).contains("trailing"));
        assert!(wrong("{}").ends_with(READ_FILE));
    }

    #[test]
    fn what_is_wrong_is_said_briefly_and_on_one_line() {
        let field = format!(r#"{{"path":"a","x\n{}":1}}"#, "y".repeat(5000));
        assert!(wrong(&field).len() < 2000 && !wrong(&field).contains('\n'));
        assert!(wrong(&" ".repeat(1 << 20)).contains("1048576 bytes"));
    }

    #[test]
    fn the_schemas_are_objects_that_allow_nothing_else() {
        for tool in AgentTool::ALL {
            let schema: serde_json::Value = serde_json::from_str(schema(tool)).unwrap();
            assert_eq!(schema["additionalProperties"], serde_json::Value::Bool(false));
            assert_eq!(AgentTool::from_name(tool.as_str()), Some(tool));
        }
        assert_eq!(AgentTool::from_name("Grep"), None);
    }
}
