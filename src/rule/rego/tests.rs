//! Tests of what hook files cannot show: the list of built-ins, and large policies.

use std::sync::Arc;

use regorus::Engine;

use super::{
    PolicyInput, PolicyMistake, PolicyRules, PolicySource,
    builtins::{BUILTINS, is_known, refusal},
    compile,
    compile::CompiledPolicies,
};
use crate::model::{Draft, Workspace};

fn compiled(text: &str) -> Result<CompiledPolicies, Vec<PolicyMistake>> {
    let policies = [PolicySource { name: Arc::from("guard.rego"), text: Arc::from(text) }];
    let input =
        Box::new(|_: &Draft, _: &Workspace| PolicyInput { document: bytes::Bytes::new(), more: Vec::new() });
    compile(PolicyRules { policies: &policies, data: &[], is_strict: true, input, unknown_event: |_| None })
}

#[test]
fn every_built_in_of_the_list_is_one_of_the_interpreter() {
    assert!(BUILTINS.is_sorted());
    for name in BUILTINS {
        let mut engine = Engine::new();
        let said = engine.eval_query(format!("x := {name}()"), false);
        let said = said.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!said.contains("could not find function"), "{name}: {said}");
    }
}

#[test]
fn what_reads_or_writes_is_not_even_in_the_interpreter() {
    for name in ["http.send", "opa.runtime", "rand.intn", "time.now_ns", "uuid.rfc4122", "net.lookup_ip_addr"]
    {
        assert!(!is_known(name), "{name}");
        assert!(refusal(name).0.contains("is not available"), "{name}");
        let said = Engine::new().eval_query(format!("x := {name}()"), false).unwrap_err().to_string();
        assert!(said.contains("could not find function"), "{name}: {said}");
    }
}

#[test]
fn a_policy_of_a_mebibyte_is_refused() {
    let text = format!("package guard\n{}deny if true\n", "# a long comment\n".repeat(62_000));
    assert!(text.len() > 1 << 20);
    let mistakes = compiled(&text).unwrap_err();
    assert!(mistakes[0].message.contains("at most 262144 are allowed"), "{mistakes:?}");
}

#[test]
fn more_rules_than_any_hook_needs_are_refused() {
    let rules: Vec<String> = (0..3_000).map(|number| format!("r{number} := {number}\n")).collect();
    let rules = rules.concat();
    let mistakes = compiled(&format!("package guard\n{rules}deny if r1\n")).unwrap_err();
    assert!(mistakes[0].message.contains("3001 rules"), "{mistakes:?}");
}

#[test]
fn deeply_nested_expressions_are_a_mistake_of_the_policy() {
    let text = format!("package guard\ndeny if {}1{}\n", "[".repeat(5_000), "]".repeat(5_000));
    let mistakes = compiled(&text).unwrap_err();
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
}
