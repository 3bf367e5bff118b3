//! What expressions are, as the specification of CEL says; and that none takes long, whatever it is.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    RuleDecision, RuleSet,
    functions::{FUNCTIONS, Form},
    types::Type,
    variables::VARIABLES,
};
use crate::model::{
    DirectoryName, Draft, Event, EventKind, HookDecision, Json, KeyCounts, Patch, Reply, RuleCache, RuleCall,
    RuleProgram, Target, Workspace,
};

/// Expressions of the conformance tests of the specification (cel-spec, `tests/simple/testdata`) that have no types that rules
/// lack: unsigned numbers, bytes, durations, messages.
const SPECIFICATION: &str = include_str!("../../tests/cases/expressions/cel.jsonl");

/// Expressions that have a value in CEL and are mistakes here, by what is said about them: the types are checked, and keys are
/// strings, as in JSON.
const MISTAKES_HERE: [&str; 6] = [
    "unknown name",
    "unknown function",
    "the key of a map is",
    "is never equal to",
    "is never in",
    "not a boolean",
];

#[derive(serde::Deserialize)]
struct Row {
    name: String,
    expression: String,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    error: bool,
}

fn event(tool_input: &str) -> Draft {
    let mut event = Event::new(
        EventKind::BeforeToolDispatch,
        crate::model::SessionId::new("s").unwrap(),
        crate::model::RunId::new("r").unwrap(),
    );
    event.attributes.tool_name = Some("Bash".into());
    event.targets.set(Target::ToolInput, Json::parse(tool_input).unwrap());
    Draft::new(event.into())
}

fn workspace() -> Workspace {
    let names = [("/home/dev", "/srv/homes/dev"), ("/srv/homes/dev/shop", "/srv/shop")]
        .map(|(name, directory)| DirectoryName { name: name.into(), directory: directory.into() });
    Workspace {
        names: names.into(),
        ..Workspace::new(crate::model::WorkspaceId::new("shop").unwrap(), "/srv/shop")
    }
}

pub(super) fn judge(set: &RuleSet, draft: &Draft) -> Result<Reply, String> {
    let (mut cache, mut counts) = (RuleCache::default(), KeyCounts::default());
    let call =
        RuleCall { draft, workspace: &workspace(), links: None, cache: &mut cache, counts: &mut counts };
    set.judge(call).map_err(|failure| format!("{}: {}", failure.ended.as_str(), failure.message))
}

/// The value of an expression as JSON, or why it has none.
fn value(expression: &str, draft: &Draft) -> Result<Value, String> {
    let mut set = RuleSet::new(vec![EventKind::BeforeToolDispatch]);
    set.begin(None).unwrap();
    set.patch(Target::ToolInput, expression).map_err(|mistake| format!("not loaded: {}", mistake.message))?;
    match judge(&set, draft)?.patches.as_slice() {
        [Patch::Target(_, json)] => Ok(serde_json::from_str(json.as_str()).unwrap()),
        _ => Ok(Value::Null),
    }
}

/// Whether two values are the same, numbers whatever their form.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

#[test]
fn expressions_are_what_the_specification_says() {
    let draft = event("{}");
    let rows = SPECIFICATION.lines().map(|line| serde_json::from_str::<Row>(line).unwrap());
    let mut wrong = Vec::new();
    let mut held = 0;
    for row in rows {
        let found = value(&row.expression, &draft);
        let is_right = match &found {
            Ok(found) => !row.error && same(found, &row.value),
            Err(_) => row.error,
        };
        let is_refused = !row.error
            && found.as_ref().is_err_and(|why| {
                why.starts_with("not loaded") && MISTAKES_HERE.iter().any(|known| why.contains(known))
            });
        held += usize::from(is_right);
        if !is_right && !is_refused {
            let wanted = if row.error { "an error".to_owned() } else { row.value.to_string() };
            wrong.push(format!("{}: {} is {found:?}, not {wanted}", row.name, row.expression));
        }
    }
    assert!(wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
    assert!(held >= 500, "{held}");
}

fn denies(condition: &str, draft: &Draft) -> Result<bool, String> {
    let mut set = RuleSet::new(vec![EventKind::BeforeToolDispatch]);
    set.begin(None).unwrap();
    set.decide(RuleDecision::Deny, condition)
        .map_err(|mistake| format!("not loaded: {}", mistake.message))?;
    judge(&set, draft).map(|reply| matches!(reply.decision, HookDecision::Block(_)))
}

#[test]
fn parts_of_the_event_are_read() {
    let input = json!({ "command": "git push", "list": [1, 2.5, "a\n"], "deep": { "ä": null }, "n": 9_007_199_254_740_993_i64 });
    let draft = event(&input.to_string());
    for (expression, wanted) in [
        ("tool.name", json!("Bash")),
        ("tool.input.command", json!("git push")),
        ("tool.input", input.clone()),
        ("tool.input.list[2]", json!("a\n")),
        ("tool.input['deep']", json!({ "ä": null })),
        ("tool.input.n + 1", json!(9_007_199_254_740_994_i64)),
        ("tool.input.list.map(x, string(x))", json!(["1", "2.5", "a\n"])),
        ("tool.input.map(k, k)", json!(["command", "deep", "list", "n"])),
        ("has(tool.input.missing)", json!(false)),
        ("has(tool.input.deep)", json!(true)),
        ("'command' in tool.input", json!(true)),
        ("size(tool.input.list)", json!(3)),
        ("event.kind", json!("before_tool_dispatch")),
        ("workspace.root", json!("/srv/shop")),
        ("session.id + run.id", json!("sr")),
        (
            "tool.input == {'command': 'git push', 'list': [1, 2.5, 'a\\n'], 'deep': tool.input.deep, 'n': tool.input.n}",
            json!(true),
        ),
    ] {
        assert_eq!(value(expression, &draft).as_ref(), Ok(&wanted), "{expression}");
    }
}

#[test]
fn tokens_are_found_by_the_shapes_of_their_issuers() {
    let hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let tokens = [
        ("sendgrid-key", format!("SG.{}.{}", &hex[..22], &hex[..43])),
        ("digitalocean-token", format!("dop_v1_{hex}")),
        ("shopify-token", format!("shpat_{}", &hex[..32])),
        ("azure-storage-key", format!("AccountKey={hex}{}==", &hex[..22])),
    ];
    for (kind, token) in tokens {
        let draft = event(&format!(r#"{{"text": "see {token} there"}}"#));
        let found = format!(r#"secrets.find(tool.input.text).map(s, s.kind) == ["{kind}"]"#);
        assert_eq!(denies(&found, &draft), Ok(true), "{kind}");
        let whole = format!(r#"secrets.find("see {}").size() == 0"#, &token[..token.len() / 3]);
        assert_eq!(denies(&whole, &draft), Ok(true), "a part of a {kind}");
    }
}

#[test]
fn what_has_no_value_is_a_failure() {
    let draft = event(r#"{"command":"ls","n":0,"list":[]}"#);
    for (condition, why) in [
        ("tool.input.missing == 1", "failed: `deny`: there is no field `missing` (`tool.input.missing`)"),
        (
            "tool.input.command.missing",
            "failed: `deny`: a string stands where the rule needs a map (`tool.input.command.missing`)",
        ),
        ("tool.input.list[0]", "failed: `deny`: the list has no element 0 (`tool.input.list[0]`)"),
        ("1 / tool.input.n == 1", "failed: `deny`: a division by zero (`1 / tool.input.n`)"),
        (
            "tool.input.command",
            "failed: `deny`: a string stands where the rule needs a boolean (`tool.input.command`)",
        ),
        ("int(tool.input.command) > 1", "failed: `deny`: the text is no number (`int(tool.input.command)`)"),
        ("now() > 1", "failed: `deny`: the event has no `now()` (`now()`)"),
        ("event.cwd == ''", "failed: `deny`: the event has no `event.cwd` (`event.cwd`)"),
        (
            "9223372036854775807 + tool.input.n + 1 > 0",
            "failed: `deny`: a number is too large (`9223372036854775807 + tool.input.n + 1`)",
        ),
    ] {
        assert_eq!(denies(condition, &draft), Err(why.to_owned()), "{condition}");
    }
    // Where one side decides, the other does not count.
    assert_eq!(denies("tool.input.missing == 1 || tool.name == 'Bash'", &draft), Ok(true));
    assert_eq!(denies("tool.input.missing == 1 && tool.name == 'Read'", &draft), Ok(false));
}

#[test]
fn comparisons_of_large_values_cost_steps() {
    let large = event(&format!(r#"{{"command":"ls","content":"{}"}}"#, "x".repeat(15 << 20)));
    for condition in [r#"tool.input == {"a": 1}"#, "tool.input in [{}]", "tool.input != tool.input"] {
        let failed = denies(condition, &large).unwrap_err();
        assert!(failed.contains("takes too many steps"), "{condition}: {failed}");
    }
    assert_eq!(denies(r#"tool.input.command == "ls""#, &large), Ok(true));
}

/// Values that are large, deep or wide, as JSON.
fn large_inputs() -> Vec<(&'static str, String)> {
    let wide = |count: usize| {
        let fields: Vec<String> = (0..count).map(|at| format!("\"k{at}\":{at}")).collect();
        format!("{{\"command\":\"rm\",\"o\":{{{}}}}}", fields.join(","))
    };
    let list = |count: usize| format!("{{\"command\":\"rm\",\"l\":[{}]}}", vec!["1"; count].join(","));
    let lists = format!(
        "{{\"command\":\"rm\",\"l\":[{}]}}",
        vec![format!("[{}]", vec!["1"; 60_000].join(",")); 100].join(",")
    );
    let text = format!("{{\"command\":\"rm\",\"t\":\"{}\"}}", "aA0=\\n".repeat(2 << 20));
    let deep = format!("{{\"command\":\"rm\",\"d\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    vec![
        ("wide", wide(60_000)),
        ("too wide", wide(70_000)),
        ("list", list(60_000)),
        ("too long a list", list(500_000)),
        ("lists", lists),
        ("text", text),
        ("deep", deep),
    ]
}

#[test]
fn no_expression_takes_long() {
    // A build for tests is slower than one for use.
    let longest = std::time::Duration::from_secs(20);
    let expressions = [
        "tool.input.o == tool.input.o",
        "tool.input.l == tool.input.l",
        "tool.input.o.exists(k, tool.input.o[k] == -1)",
        "tool.input.l.exists(x, tool.input.l.exists(y, x + y == 3))",
        "tool.input.l.map(x, tool.input.l).size() == 0",
        "tool.input.l.exists(x, x in tool.input.l && false)",
        "tool.input.l.all(x, size(x) > 0)",
        "tool.input.t.contains('zzz')",
        "tool.input.t.matches('(a+)+$')",
        "tool.input.t.split('a').size() == 0",
        "tool.input.t.replace('a', 'aaaaaaaaaaaaaaaa').size() == 0",
        "secrets.find(tool.input.t).size() > 0",
        "shell.commands(tool.input.t).size() > 100",
        "tool.input.t == tool.input.t + 'x'",
        "size(tool.input.t) == 3",
        "tool.input.t.lines().exists(l, l.lowerAscii().matches('zz'))",
        "tool.input.d == tool.input.d",
        "[1,2,3,4,5,6,7,8].map(a, [1,2,3,4,5,6,7,8].map(b, tool.input.t)).size() == 0",
    ];
    for (name, input) in large_inputs() {
        let draft = event(&input);
        let is_about = |part: &str| input.contains(&format!("\"{part}\":"));
        let parts = ["o", "l", "t", "d"];
        for expression in expressions {
            let named = parts.iter().find(|part| expression.contains(&format!("tool.input.{part}")));
            if !named.is_some_and(|part| is_about(part)) {
                continue;
            }
            let started = Instant::now();
            let result = denies(expression, &draft);
            let took = started.elapsed();
            assert!(took < longest, "{expression} of {name}: {took:?}, {result:?}");
        }
    }
}

#[test]
fn what_is_too_large_to_look_at_is_no_consent() {
    for (name, input) in large_inputs() {
        let draft = event(&input);
        // Each is true, or cannot be told: never false.
        for condition in
            ["has(tool.input.command) && tool.input.command == 'rm'", "tool.input.exists(k, k == 'command')"]
        {
            assert_ne!(denies(condition, &draft), Ok(false), "{condition} of {name}");
        }
    }
    let fields: Vec<String> = (0..70_000).map(|at| format!("\"k{at}\":{at}")).collect();
    let draft = event(&format!("{{\"command\":\"rm\",{}}}", fields.join(",")));
    for condition in ["has(tool.input.command)", "'command' in tool.input", "tool.input.command == 'rm'"] {
        let failure = denies(condition, &draft).unwrap_err();
        assert!(failure.starts_with("failed: "), "{condition}: {failure}");
    }
    assert!(denies("tool.input == tool.input", &draft).is_err());
}

#[test]
fn expressions_that_are_too_large_are_refused_with_a_small_stack() {
    let texts = [
        "(".repeat(10_000),
        format!("{}1{}", "(".repeat(4_000), ")".repeat(4_000)),
        format!("{}true", "!".repeat(5_000)),
        format!("{}1", "-".repeat(5_000)),
        format!("{}1", "1+".repeat(3_000)),
        format!("{}[1]", "[".repeat(3_000)),
        format!("tool.input{}", ".a".repeat(3_000)),
        format!("tool.input{}", "[0]".repeat(2_000)),
        format!("{}true", "true ? true : ".repeat(500)),
        format!("{}[1]{}", "[1].exists(a, ".repeat(300), ")".repeat(300)),
        "a".repeat(20_000),
        "[1].all(a, [1].all(b, [1].all(c, [1].all(d, [1].all(e, true)))))".to_owned(),
        "tool.input.l.all(a, tool.input.l.all(b, tool.input.l.all(c, a == b)))".to_owned(),
    ];
    for text in texts {
        let shown: String = text.chars().take(60).collect();
        let checked = std::thread::Builder::new().stack_size(1 << 20);
        let checked = checked.spawn(move || denies(&text, &event("{}"))).unwrap().join().unwrap();
        let mistake = checked.unwrap_err();
        assert!(mistake.starts_with("not loaded: "), "{shown}: {mistake}");
    }
    // Parts side by side may be many.
    let many = vec!["tool.name == 'x'"; 200].join(" || ");
    assert_eq!(denies(&many, &event("{}")), Ok(false));
}

/// The rows of a table of docs/rules.md, by the header of the table.
fn documented(header: &str) -> Vec<&'static str> {
    let text = include_str!("../../docs/rules.md");
    let table = text.split(header).nth(1).unwrap_or_default();
    table.lines().skip(2).take_while(|line| line.starts_with('|')).collect()
}

#[test]
fn the_variables_are_documented() {
    let rows = VARIABLES.iter().map(|variable| {
        let kinds: Vec<String> = variable.kinds.iter().map(|kind| format!("`{kind}`")).collect();
        let kinds = if kinds.is_empty() { "all".to_owned() } else { kinds.join(", ") };
        format!("| `{}` | {} | {kinds} |", variable.path, variable.about)
    });
    let shown = documented("| name | is | events |");
    assert_eq!(shown[..shown.len() - 1], rows.collect::<Vec<_>>());
}

#[test]
fn the_functions_are_documented() {
    let rows = FUNCTIONS.iter().map(|function| {
        let shown = |make: &fn() -> Type| match make() {
            Type::Any => "any",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Double => "double",
            Type::List(_) => "list",
            Type::Command => "command",
            _ => "string",
        };
        let arguments: Vec<&str> = function.arguments.iter().map(shown).collect();
        let more = if function.repeats { ", …" } else { "" };
        let call = match function.form {
            Form::Method => {
                format!("{}.{}({}{more})", arguments[0], function.name, arguments[1..].join(", "))
            }
            Form::Call | Form::Either => format!("{}({}{more})", function.name, arguments.join(", ")),
        };
        format!("| `{call}` → {} | {} |", shown(&function.result), function.about)
    });
    let described = documented("| function | is |");
    // Those whose patterns are compiled when the rule is loaded follow.
    assert_eq!(described[..described.len() - 2], rows.collect::<Vec<_>>());
}

#[test]
fn a_path_is_within_a_directory_by_each_of_its_names() {
    let draft = event("{}");
    for (path, directory, expected) in [
        ("/srv/shop/a", "/srv/shop", true),
        ("/home/dev/shop/a", "/srv/shop", true),
        ("/home/dev/shop", "/srv/shop", true),
        ("/srv/shop/a", "/home/dev/shop", true),
        ("/home/dev/./shop//a", "/srv/shop", true),
        ("/srv/homes/dev/x", "/home/dev", true),
        ("/home/dev/x", "/srv/homes/dev", true),
        ("/home/dev/shopping/a", "/srv/shop", false),
        ("/home/dev/shop/../other", "/srv/shop", false),
        ("/home/dev/shop/../shop/a", "/srv/shop", true),
        ("/home/dev/shop/../x", "/home/dev", false),
        ("/home/other/shop", "/srv/shop", false),
        ("/home/dev", "/srv/shop", false),
    ] {
        let condition = format!("path.within('{path}', '{directory}')");
        assert_eq!(value(&condition, &draft), Ok(json!(expected)), "{condition}");
    }
    let normal = |path: &str| value(&format!("path.normalize('{path}', workspace.root)"), &draft);
    assert_eq!(normal("/home/dev/shop/../a"), Ok(json!("/srv/a")));
    assert_eq!(normal("b/../a"), Ok(json!("/srv/shop/a")));
}
