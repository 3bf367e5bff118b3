//! Agent hooks: turns, tools and their limits.

use super::*;

#[tokio::test]
async fn an_agent_uses_tools_for_three_turns_and_answers() {
    for protocol in Protocol::ALL {
        let says = [
            Says::Calls(vec![
                ("glob", json!({ "pattern": "scripts/*.sh" })),
                ("grep", json!({ "pattern": "rm -[a-z]+" })),
            ]),
            Says::Calls(vec![("read_file", json!({ "path": "scripts/clean.sh" }))]),
            words(BLOCK),
        ];
        let workspace = agent("[read_file, grep, glob]", 5);
        let (outcome, asked) = ask(&workspace, protocol, "", says).await;
        assert_eq!(outcome.verdict, Verdict::Block, "{protocol:?} {outcome:?}");
        assert_eq!(asked.len(), 3);
        let (system, _) = roles(protocol, &asked[0]);
        assert!(system.contains("You are a careful reviewer."), "{system}");
        assert!(!system.contains("clean.sh"), "{system}");
        let (_, second) = roles(protocol, &asked[1]);
        assert!(second.contains("scripts/clean.sh:2"), "{second}");
        assert!(last_message(&asked[2]).contains("rm -rf /srv/shop"), "{}", last_message(&asked[2]));
    }
}

#[tokio::test]
async fn an_agent_that_never_answers_ends_after_its_turns() {
    for protocol in Protocol::ALL {
        let says = [Says::Calls(vec![("glob", json!({ "pattern": "**" }))])];
        let (outcome, asked) = ask(&agent("[glob]", 3), protocol, "", says).await;
        assert_eq!((outcome.hooks[0].ended, asked.len()), (Ended::Failed, 3), "{protocol:?} {outcome:?}");
        let error = outcome.hooks[0].error.as_deref().unwrap();
        assert!(error.contains("`reviewer`") && error.contains("within 3 turns"), "{error}");
    }
}

#[tokio::test]
async fn the_last_turn_is_for_the_answer() {
    let says = || [Says::Calls(vec![("glob", json!({ "pattern": "**" }))]), words("{}")];
    let (outcome, asked) = ask(&agent("[glob]", 2), Protocol::OpenAi, "", says()).await;
    assert_eq!(outcome.hooks[0].ended, Ended::Completed, "{outcome:?}");
    assert_eq!((asked[0].get("tool_choice"), &asked[1]["tool_choice"]), (None, &json!("none")));
    let (_, asked) = ask(&agent("[glob]", 2), Protocol::Anthropic, "", says()).await;
    assert_eq!(asked[0]["tool_choice"]["type"], "auto");
    assert_eq!(asked[1]["tool_choice"]["name"], "answer");
}

#[tokio::test]
async fn an_agent_cannot_leave_the_workspace() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("key"), "k3y-of-another\n").unwrap();
    let key = outside.path().join("key").display().to_string();
    for protocol in Protocol::ALL {
        let workspace = agent("[read_file, grep, glob]", 4);
        std::os::unix::fs::symlink(outside.path(), workspace.path().join("link")).unwrap();
        let says = [
            Says::Calls(vec![
                ("read_file", json!({ "path": key })),
                ("read_file", json!({ "path": "../../../../etc/passwd" })),
                ("read_file", json!({ "path": "link/key" })),
                ("grep", json!({ "pattern": "k3y", "path": "link" })),
                ("grep", json!({ "pattern": "k3y" })),
                ("glob", json!({ "pattern": "**/key" })),
            ]),
            words("{}"),
        ];
        let (outcome, asked) = ask(&workspace, protocol, "", says).await;
        assert_eq!(outcome.hooks[0].ended, Ended::Completed, "{outcome:?}");
        let seen = asked[1].to_string();
        assert!(!seen.contains("k3y-of-another") && !seen.contains("root:"), "{seen}");
    }
}

#[tokio::test]
async fn mistakes_of_an_agent_are_reported_to_it() {
    let says = || {
        [
            Says::Calls(vec![
                ("bash", json!({ "command": "id" })),
                ("grep", json!({ "pattern": "x" })),
                ("read_file", json!({ "file": "scripts/clean.sh" })),
                ("read_file", json!({ "path": "no.txt" })),
            ]),
            words("{}"),
        ]
    };
    for protocol in Protocol::ALL {
        let (outcome, asked) = ask(&agent("[read_file]", 4), protocol, "", says()).await;
        assert_eq!(outcome.hooks[0].ended, Ended::Completed, "{outcome:?}");
        let seen = asked[1].to_string();
        assert_eq!(seen.matches("unknown tool; known are read_file").count(), 2, "{seen}");
        assert!(seen.contains("no.txt"), "{seen}");
    }
}

#[tokio::test]
async fn what_an_agent_may_see_is_bounded() {
    let workspace = agent("[read_file]", 8);
    fs::write(workspace.path().join("large.txt"), "all work and no play\n".repeat(20_000)).unwrap();
    let read = |line: u64| ("read_file", json!({ "path": "large.txt", "first_line": line }));
    let says = [
        Says::Calls((0..20).map(|number| read(1 + number * 1000)).collect()),
        Says::Calls(vec![read(1)]),
        words("{}"),
    ];
    let (outcome, asked) = ask(&workspace, Protocol::OpenAi, ", max_input: 128KiB", says).await;
    assert_eq!(outcome.hooks[0].ended, Ended::Completed, "{outcome:?}");
    let last = asked[2].to_string();
    assert!(last.len() < 128 << 10, "{}", last.len());
    assert!(last.contains("at most 16 calls at once"));
    assert!(last.contains("you have seen as much as you may"));
}

#[tokio::test]
async fn prose_of_an_agent_is_repaired_without_tools() {
    let says = [words("I will look."), words(BLOCK)];
    let (outcome, asked) = ask(&agent("[glob]", 2), Protocol::OpenAi, "", says).await;
    assert_eq!((outcome.verdict, asked.len()), (Verdict::Block, 2), "{outcome:?}");
    assert_eq!(asked[1]["tool_choice"], "none");
}

#[tokio::test]
async fn tokens_are_counted_over_all_turns() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let says = [Says::Calls(vec![("glob", json!({ "pattern": "**" }))]), words("{}")];
    let server = ModelServer::start(Protocol::OpenAi, says).await;
    let settings = settings(&server, Protocol::OpenAi, "");
    // The handles are made where the workspace is loaded, which is on this thread.
    let guard = metrics::set_default_local_recorder(&recorder);
    let orchestrator = start(&agent("[glob]", 4), settings).await;
    drop(guard);
    let outcome = orchestrator.dispatch(event(1)).await.unwrap();
    let report = serde_json::to_value(&outcome).unwrap()["hooks"][0].take();
    assert_eq!(report["tokens"], json!({ "input": 200, "output": 14 }));
    let mut counted = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let name = key.key().name();
        let labels: Vec<_> = key.key().labels().map(|label| label.value().to_owned()).collect();
        match value {
            DebugValue::Counter(count) if name == "hookyard_model_tokens_total" => {
                counted.push((labels.join(" "), count));
            }
            DebugValue::Histogram(asked) if name == "hookyard_model_request_duration_seconds" => {
                counted.push((labels.join(" "), asked.len() as u64));
            }
            _ => {}
        }
    }
    counted.sort();
    let expected = [("small agent", 2), ("small input", 200), ("small output", 14)];
    assert_eq!(counted, expected.map(|(labels, count)| (labels.to_owned(), count)));
}
