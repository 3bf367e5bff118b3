//! The hooks and policies that docs/rego.md shows are run: each is a file of a case.

use std::fs;

use crate::{
    rules::DocumentedCase,
    support::cases::{Content, case_files},
};

#[test]
fn every_policy_of_the_document_is_run() {
    let document = fs::read_to_string("docs/rego.md").unwrap();
    let blocks = ["```yaml\n", "```rego\n"].map(|begin| document.split(begin).skip(1));
    let shown: Vec<&str> =
        blocks.into_iter().flatten().map(|rest| rest.split("```").next().unwrap()).collect();
    let files = case_files::<DocumentedCase>("rego");
    let run: Vec<&DocumentedCase> = files.iter().flat_map(|file| &file.cases).collect();
    assert!(shown.len() >= 4, "{}", shown.len());
    for text in shown {
        let has_it = |content: &Content| matches!(content, Content::Text(known) if known == text);
        let case = run.iter().find(|case| case.files.values().any(has_it));
        let case = case.unwrap_or_else(|| panic!("no case of tests/cases/rego has this file:\n{text}"));
        let verdicts = case.events.iter().filter_map(|event| event["outcome"]["verdict"].as_str());
        let (silent, decided): (Vec<&str>, Vec<&str>) = verdicts.partition(|verdict| *verdict == "proceed");
        assert!(!silent.is_empty() && !decided.is_empty(), "{silent:?}, {decided:?} of\n{text}");
    }
}
