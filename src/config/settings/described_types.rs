//! Descriptions of the types of values that settings have. Compiled for tests only.

use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use serde_json::{Value as Json, json};

use super::{
    super::workspace_options::{
        BrokenFilePolicy, DialectSelection, RequiredHook, TrustPolicy, WorkspaceKind, required_event_names,
    },
    audit::{AuditDestination, AuditPatches, AuditSync},
    bundle::{BundleUrl, StalePolicy},
    cluster::{HaltSharing, LifecyclePlace, MonitoringUrl, UnsurePolicy},
    data::{DataDirectory, NodeName},
    described::{DescribedEntry, DescribedValue, ValueForm},
    entries::{HandlerMode, LONGEST_COMMAND, LONGEST_MODEL_NAME, MOST_PROCESSES, ProcessCount},
    ship::{ShipFormat, ShipUrl},
    table::{HandlerSettings, ModelSettings, WorkspaceSettings},
    urls::{ModelUrl, TraceUrl},
    value_types::{
        Fraction, HookNameText, LARGEST_COUNT, LONGEST_SOCKET, Size, SocketPath, Temperature,
        VariablePattern, VariablePrefix,
    },
};
use crate::model::{
    Address, DialectName, FailurePolicy, FilesystemAccess, HookName, HttpTarget, JsonOutput, ModelApi,
    NetworkAccess, SecretText,
};
use crate::registry::RequiredEvents;

/// A pattern of JSON Schema for a duration with its unit.
const DURATION: &str = r"(?=.*[1-9])\d+(\.\d*)?\s*(ms|s|m|h)";

/// A pattern for an IP address with its port.
const SOCKET_ADDRESS: &str = r"^(((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)|\[[0-9A-Fa-f:.]+(%\d+)?\]):\d{1,5}$";

/// A pattern for the URL of a server, without user and password.
const URL: &str = r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s\x00-\x1f\\@$/?#]+([/?#][^\s\x00-\x1f\\$]*)?$";

impl DescribedEntry for WorkspaceSettings {
    fn names() -> Json {
        json!({ "pattern": r"^[^\x00-\x1f\x7f-\x9f]{1,256}$" })
    }
}

impl DescribedEntry for HandlerSettings {
    fn names() -> Json {
        json!({ "maxLength": LONGEST_COMMAND, "pattern": r"^[^\x00]*[^\s\x00][^\x00]*$" })
    }
}

impl DescribedValue for HandlerMode {
    fn form() -> ValueForm {
        ValueForm::new("mode", [("enum", json!(Self::ALL.map(Self::as_str)))])
    }

    fn show(field: &Self) -> Json {
        json!(field.as_str())
    }
}

impl DescribedValue for FailurePolicy {
    fn form() -> ValueForm {
        ValueForm::new("`ask` or `deny`", [("enum", json!(["ask", "deny"]))])
    }

    fn show(field: &Self) -> Json {
        json!(field.as_str())
    }
}

impl DescribedValue for ProcessCount {
    fn form() -> ValueForm {
        let range = [("type", json!("integer")), ("minimum", json!(1)), ("maximum", json!(MOST_PROCESSES))];
        ValueForm::new("number", range)
    }

    fn show(field: &NonZeroUsize) -> Json {
        json!(field)
    }
}

impl DescribedEntry for ModelSettings {
    fn names() -> Json {
        let pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";
        json!({ "maxLength": LONGEST_MODEL_NAME, "pattern": pattern })
    }
}

impl DescribedValue for bool {
    fn form() -> ValueForm {
        ValueForm::new("boolean", [("type", json!("boolean"))])
    }

    fn show(field: &Self) -> Json {
        json!(field)
    }
}

impl DescribedValue for String {
    fn form() -> ValueForm {
        ValueForm::new("string", [("type", json!("string"))])
    }

    fn show(field: &Self) -> Json {
        json!(field)
    }
}

impl DescribedValue for SecretText {
    fn form() -> ValueForm {
        String::form()
    }

    fn show(field: &Self) -> Json {
        json!(field.expose())
    }
}

impl DescribedValue for Duration {
    fn form() -> ValueForm {
        let hint = Some("A number with a unit: `ms`, `s`, `m` or `h`.");
        ValueForm { hint, ..ValueForm::text("duration", &format!("^{DURATION}$")) }
    }

    fn show(field: &Self) -> Json {
        let seconds = field.as_secs();
        match seconds {
            _ if field.subsec_millis() > 0 => json!(format!("{}ms", field.as_millis())),
            _ if seconds.is_multiple_of(3600) => json!(format!("{}h", seconds / 3600)),
            _ if seconds.is_multiple_of(60) => json!(format!("{}m", seconds / 60)),
            _ => json!(format!("{seconds}s")),
        }
    }
}

impl DescribedValue for Size {
    fn form() -> ValueForm {
        let hint = Some("A number with a unit: `B`, `KiB`, `MiB` or `GiB`.");
        ValueForm { hint, ..ValueForm::text("size", r"^(?=.*[1-9])\d+(\.\d*)?\s*(KiB|MiB|GiB|B)$") }
    }

    fn show(field: &usize) -> Json {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
        let unit = units.iter().find(|(bytes, _)| field.is_multiple_of(*bytes));
        json!(unit.map(|(bytes, name)| format!("{}{name}", field / bytes)))
    }
}

impl DescribedValue for NonZeroUsize {
    fn form() -> ValueForm {
        let schema = [("type", json!("integer")), ("minimum", json!(1)), ("maximum", json!(LARGEST_COUNT))];
        ValueForm::new("integer from 1", schema)
    }

    fn show(field: &Self) -> Json {
        json!(field.get())
    }
}

impl DescribedValue for Fraction {
    fn form() -> ValueForm {
        ValueForm::new(
            "number from 0 to 1",
            [("type", json!("number")), ("minimum", json!(0)), ("maximum", json!(1))],
        )
    }

    fn show(field: &f64) -> Json {
        json!(field)
    }
}

impl DescribedValue for Temperature {
    fn form() -> ValueForm {
        ValueForm::new(
            "number from 0 to 2",
            [("type", json!("number")), ("minimum", json!(0)), ("maximum", json!(2))],
        )
    }

    fn show(field: &f64) -> Json {
        json!(field)
    }
}

impl DescribedValue for PathBuf {
    fn form() -> ValueForm {
        ValueForm::text("absolute path", r"^/[^\x00]*$")
    }

    fn show(field: &Self) -> Json {
        json!(field)
    }
}

impl DescribedValue for SocketPath {
    fn form() -> ValueForm {
        let rest = LONGEST_SOCKET - 1;
        let label = format!("absolute path, at most {LONGEST_SOCKET} bytes");
        ValueForm::text(&label, &format!(r"^/[^\x00]{{0,{rest}}}$"))
    }

    fn show(field: &PathBuf) -> Json {
        json!(field)
    }
}

impl DescribedValue for SocketAddr {
    fn form() -> ValueForm {
        ValueForm::text("IP address with port", SOCKET_ADDRESS)
    }

    fn show(field: &Self) -> Json {
        json!(field.to_string())
    }
}

/// Describes types whose values are URLs.
macro_rules! describe_urls {
    ($($url:ty)+) => {$(
        impl DescribedValue for $url {
            fn form() -> ValueForm {
                ValueForm::text("URL", URL)
            }

            fn show(field: &Address) -> Json {
                json!(field.to_string())
            }
        }
    )+};
}

describe_urls! { BundleUrl ModelUrl MonitoringUrl ShipUrl TraceUrl }

/// Describes types whose values are a few words.
macro_rules! describe_words {
    ($($words:ty)+) => {$(
        impl DescribedValue for $words {
            fn form() -> ValueForm {
                ValueForm::words(&Self::ALL.map(Self::as_str))
            }

            fn show(field: &Self) -> Json {
                json!(field.as_str())
            }
        }
    )+};
}

describe_words! {
    AuditPatches BrokenFilePolicy FilesystemAccess HaltSharing JsonOutput LifecyclePlace ModelApi NetworkAccess ShipFormat StalePolicy TrustPolicy UnsurePolicy
    WorkspaceKind
}

impl DescribedValue for HttpTarget {
    fn form() -> ValueForm {
        ValueForm::text("host, host and port, or network", r"^[^\s@?#\\%*]+$")
    }

    fn show(field: &Self) -> Json {
        json!(field.to_string())
    }
}

impl DescribedValue for VariablePattern {
    fn form() -> ValueForm {
        ValueForm::text("name of a variable, perhaps with a final `*`", r"^[A-Za-z_][A-Za-z0-9_]*\*?$")
    }

    fn show(field: &String) -> Json {
        json!(field)
    }
}

impl DescribedValue for RequiredHook {
    fn form() -> ValueForm {
        let about = "Name of the hook; without it, any hook with the definition.";
        let name = json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$", "description": about });
        let about = "SHA-256 of its definition, as `hookyard list --json` shows it; `null` means any.";
        let sha256 = json!({ "type": ["string", "null"], "pattern": "^[0-9a-f]{64}$", "description": about });
        let kinds = required_event_names();
        let about = "Events for which it is required; `null` means its own.";
        let events = json!({ "type": ["array", "null"], "items": { "enum": kinds }, "description": about });
        let about = "Ids of the workspaces in which it is required; `null` means all.";
        let workspaces =
            json!({ "type": ["array", "null"], "items": { "type": "string" }, "description": about });
        let requirement = json!({
            "type": "object",
            "anyOf": [{ "required": ["hook"] }, { "required": ["sha256"] }],
            "additionalProperties": false,
            "properties": { "hook": name, "sha256": sha256, "events": events, "workspaces": workspaces },
        });
        ValueForm::new("name of a hook, or a mapping", [("anyOf", json!([name, requirement]))])
    }

    fn show(field: &Self) -> Json {
        let RequiredHook { hook, sha256, events, workspaces } = field;
        let events = events.as_ref().map(RequiredEvents::named);
        json!({ "hook": hook.as_ref().map(HookName::as_str), "sha256": sha256, "events": events, "workspaces": workspaces })
    }
}

impl DescribedValue for NodeName {
    fn form() -> ValueForm {
        ValueForm::text("name of a daemon", "^[A-Za-z0-9._-]{1,63}$")
    }

    fn show(field: &String) -> Json {
        json!(field)
    }
}

impl DescribedValue for HookNameText {
    fn form() -> ValueForm {
        ValueForm::text("name of a hook", "^[A-Za-z0-9._-]{1,64}$")
    }

    fn show(field: &String) -> Json {
        json!(field)
    }
}

impl DescribedValue for VariablePrefix {
    fn form() -> ValueForm {
        ValueForm::text("prefix of variables", "^[A-Za-z_][A-Za-z0-9_]*$")
    }

    fn show(field: &String) -> Json {
        json!(field)
    }
}

impl DescribedValue for AuditDestination {
    fn form() -> ValueForm {
        ValueForm::text("absolute path or `stdout`", r"^(stdout|/[^\x00]*)$")
    }

    fn show(field: &Self) -> Json {
        match field {
            Self::File(path) => json!(path),
            Self::Stdout => json!("stdout"),
        }
    }
}

impl DescribedValue for DataDirectory {
    fn form() -> ValueForm {
        ValueForm::text("absolute path or `auto`", r"^(auto|/[^\x00]*)$").or_null()
    }

    fn show(field: &Self) -> Json {
        match field {
            Self::Auto => json!("auto"),
            Self::At(path) => json!(path),
            Self::Memory => Json::Null,
        }
    }
}

impl DescribedValue for AuditSync {
    fn form() -> ValueForm {
        ValueForm::text("`always`, `never` or duration", &format!("^(never|always|{DURATION})$"))
    }

    fn show(field: &Self) -> Json {
        match field {
            Self::Never => json!("never"),
            Self::Always => json!("always"),
            Self::Every(interval) => Duration::show(interval),
        }
    }
}

impl DescribedValue for DialectSelection {
    fn form() -> ValueForm {
        let dialects = DialectName::ALL.iter().filter(|name| **name != DialectName::Canonical);
        let list = json!({ "type": "array", "items": { "enum": dialects.map(|name| name.as_str()).collect::<Vec<_>>() } });
        ValueForm::new("`auto` or list of dialects", [("anyOf", json!([{ "enum": ["auto"] }, list]))])
    }

    fn show(field: &Self) -> Json {
        match field {
            Self::Auto => json!("auto"),
            Self::Only(names) => names.iter().map(|name| json!(name.as_str())).collect(),
        }
    }
}
