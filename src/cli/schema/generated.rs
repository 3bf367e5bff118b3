//! Checks that the schemas in `config/schema` are those of the types in this folder, or writes them.

use std::{fs, path::Path};

use schemars::Schema;

use super::{
    event, handler::AgentSchema, hook_file::HookFileSchema, outcome::OutcomeSchema, scenario::ScenarioSchema,
    shape,
};

#[test]
fn the_schema_files_are_up_to_date() {
    let schemas: [(&str, Schema); 5] = [
        ("canonical-event", event::schema()),
        ("canonical-outcome", shape::generate::<OutcomeSchema>()),
        ("hookyard-scenario", shape::generate::<ScenarioSchema>()),
        ("openharness-agent", shape::generate::<AgentSchema>()),
        ("openharness-hook", shape::generate::<HookFileSchema>()),
    ];
    for (name, schema) in schemas {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("config/schema/{name}.schema.json"));
        if std::env::var_os("UPDATE_CASES").is_some() {
            fs::write(&file, &text).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        let command = "UPDATE_CASES=1 cargo test --lib schema::generated";
        assert!(kept == text, "{name}.schema.json is not what the types say; `{command}` writes it");
    }
}
