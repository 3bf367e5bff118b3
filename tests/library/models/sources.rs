//! Where prompts, models and hooks of other dialects come from.

use super::*;

/// A client of an embedding program.
#[derive(Debug, Default)]
struct Own {
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl ModelClient for Own {
    fn has(&self, model_ref: &str) -> bool {
        model_ref == "small"
    }

    fn ask<'a>(
        &'a self,
        model: &'a Model,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            assert_eq!(&*model.reference, "small");
            self.asked.lock().unwrap().push(request.clone());
            Ok(ModelAnswer { text: BLOCK.to_owned(), ..ModelAnswer::default() })
        })
    }
}

#[tokio::test]
async fn an_embedding_program_may_bring_its_own_client() {
    let client = Own::default();
    let asked = Arc::clone(&client.asked);
    let workspace = workspace(&prompt());
    let builder = Orchestrator::builder()
        .trust(hookyard::config::TrustPolicy::Off)
        .workspace(workspace.path())
        .model_client(client);
    let orchestrator = builder.start().await.unwrap();
    let outcome = orchestrator.dispatch(event(1)).await.unwrap();
    assert_eq!(outcome.verdict, Verdict::Block, "{outcome:?}");
    let asked = asked.lock().unwrap();
    let [Turn::User(text)] = asked[0].turns.as_slice() else { panic!("{:?}", asked[0].turns) };
    assert!(text.starts_with("Is this safe?") && text.contains("<event_data>"), "{text}");
}

#[tokio::test]
async fn prompts_from_files_are_read_when_they_are_loaded() {
    let mut handler = prompt();
    handler["prompt"] = json!({ "file": "judge.md" });
    let workspace = workspace(&handler);
    fs::write(workspace.path().join("judge.md"), "First question?\n").unwrap();
    let server = ModelServer::start(Protocol::OpenAi, [words("{}")]).await;
    let orchestrator = start(&workspace, settings(&server, Protocol::OpenAi, "")).await;
    let report = orchestrator.load_reports().into_values().next().unwrap();
    assert!(report.files.iter().any(|file| file.ends_with("judge.md")), "{:?}", report.files);
    fs::write(workspace.path().join("judge.md"), "Second question?\n").unwrap();
    orchestrator.dispatch(event(1)).await.unwrap();
    orchestrator.reload().await.unwrap();
    orchestrator.dispatch(event(2)).await.unwrap();
    let asked = server.asked();
    assert!(last_message(&asked[0]).contains("First question?"));
    assert!(last_message(&asked[1]).contains("Second question?"));
}

#[tokio::test]
async fn prompt_files_that_are_no_small_text_are_refused() {
    let workspace = workspace(&json!({
        "type": "prompt", "prompt": { "file": "judge.md" }, "model_ref": "small",
    }));
    let path = workspace.path().join("judge.md");
    let settings =
        Settings::from_yaml("trust: off\nmodels: { small: { api: openai, model: m } }", Path::new("h.yaml"))
            .0
            .unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "k3y-of-another").unwrap();
    let pipe = || {
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    let cases: [(&str, &dyn Fn()); 4] = [
        ("leads outside the workspace", &|| {
            std::os::unix::fs::symlink(outside.path().join("secret"), &path).unwrap();
        }),
        ("is a symbolic link", &|| {
            fs::write(workspace.path().join("other.md"), "x").unwrap();
            std::os::unix::fs::symlink("other.md", &path).unwrap();
        }),
        ("is not a regular file", &pipe),
        ("is larger than the 262144 bytes", &|| fs::File::create(&path).unwrap().set_len(100 << 20).unwrap()),
    ];
    for (expected, make) in cases {
        make();
        let loaded = hookyard::config::load_workspace(workspace.path(), None, &settings, &|_| None);
        let told = loaded.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(told.contains(expected) && told.contains("judge.yaml:1:"), "{expected}: {told}");
        assert!(!told.contains("k3y"), "{told}");
        assert!(loaded.hooks.is_empty());
        fs::remove_file(&path).unwrap();
    }
}

/// A workspace with one hook of Claude Code before tool calls.
fn claude_workspace(hook: &Value) -> TempDir {
    let workspace = tempfile::tempdir().unwrap();
    fs::create_dir_all(workspace.path().join(".claude")).unwrap();
    let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } });
    fs::write(workspace.path().join(".claude/settings.json"), settings.to_string()).unwrap();
    workspace
}

#[tokio::test]
async fn prompt_hooks_of_claude_answer_in_its_dialect() {
    let refused = words(r#"{"ok":false,"reason":"it deletes everything"}"#);
    for protocol in Protocol::ALL {
        let hook = json!({ "type": "prompt", "prompt": "Is $ARGUMENTS safe?", "model": "small" });
        let (outcome, asked) = ask(&claude_workspace(&hook), protocol, "", [refused.clone()]).await;
        assert_eq!(outcome.verdict, Verdict::Block, "{protocol:?} {outcome:?}");
        assert_eq!(outcome.reason.as_deref(), Some("it deletes everything"));
        let (system, rest) = roles(protocol, &asked[0]);
        assert!(system.contains("ok") && !system.contains("clean.sh"), "{system}");
        assert!(rest.contains("Is <event_data>") && rest.contains("</event_data> safe?"), "{rest}");
        let (outcome, _) = ask(&claude_workspace(&hook), protocol, "", [words(r#"{"ok":true}"#)]).await;
        assert_eq!((outcome.verdict, outcome.hooks[0].ended), (Verdict::Proceed, Ended::Completed));
    }
}

#[tokio::test]
async fn agent_hooks_of_claude_use_tools_before_they_decide() {
    let hook = json!({ "type": "agent", "prompt": "Does the script do harm?", "model": "small" });
    let workspace = claude_workspace(&hook);
    fs::write(workspace.path().join("clean.sh"), "rm -rf /srv/shop\n").unwrap();
    for protocol in Protocol::ALL {
        let says = [
            Says::Calls(vec![("read_file", json!({ "path": "clean.sh" }))]),
            words(r#"{"ok":false,"reason":"it removes the shop"}"#),
        ];
        let (outcome, asked) = ask(&workspace, protocol, "", says).await;
        assert_eq!((outcome.verdict, asked.len()), (Verdict::Block, 2), "{protocol:?} {outcome:?}");
        assert!(last_message(&asked[1]).contains("/srv/shop"));
    }
}

#[test]
fn hooks_of_claude_without_a_model_ask_the_default() {
    let workspace = claude_workspace(&json!({ "type": "prompt", "prompt": "Is it safe?" }));
    let load = |settings: &str| {
        let mut settings = Settings::from_yaml(settings, Path::new("h.yaml")).0.unwrap();
        settings.trust = hookyard::config::TrustPolicy::Off;
        hookyard::config::load_workspace(workspace.path(), None, &settings, &|_| None)
    };
    assert_eq!(load("models: { default: { api: openai, model: m } }").hooks.len(), 1);
    let loaded = load("{}");
    assert!(loaded.hooks.is_empty());
    let told = loaded.diagnostics[0].to_string();
    assert!(told.contains("settings.json:1:") && told.contains("unknown model `default`"), "{told}");
}
