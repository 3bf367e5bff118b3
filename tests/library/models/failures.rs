//! Limits and failures of models and their servers.

use super::*;

#[tokio::test]
async fn limits_of_the_settings_are_sent() {
    let more = ", max_output_tokens: 99, temperature: 0";
    let (_, asked) = ask(&workspace(&prompt()), Protocol::OpenAi, more, [words("{}")]).await;
    assert_eq!((&asked[0]["max_completion_tokens"], &asked[0]["temperature"]), (&json!(99), &json!(0.0)));
    let (_, asked) = ask(&workspace(&prompt()), Protocol::Anthropic, more, [words("{}")]).await;
    assert_eq!((&asked[0]["max_tokens"], &asked[0]["temperature"]), (&json!(99), &json!(0.0)));
}

#[tokio::test]
async fn more_than_a_model_may_be_asked_with_is_not_sent() {
    for protocol in Protocol::ALL {
        let (outcome, asked) = ask(&workspace(&prompt()), protocol, ", max_input: 1KiB", [words("{}")]).await;
        assert_eq!((outcome.hooks[0].ended, asked.len()), (Ended::Failed, 0));
        let error = outcome.hooks[0].error.as_deref().unwrap();
        assert!(error.contains("`small`") && error.contains("`max_input`"), "{error}");
    }
}

#[tokio::test]
async fn refusals_of_servers_are_failures_with_a_message() {
    let body =
        json!({ "error": { "type": "t", "message": format!("not so, {KEY}\u{1b}[31m!") } }).to_string();
    let cases = [
        (401, "the server refused the key of the model `small` (status 401)"),
        (403, "the server refused the key of the model `small` (status 403)"),
        (429, "too many requests for the model `small` (status 429; retry after 7 s)"),
        (500, "the server refused to ask the model `small` (status 500): not so, *** [31m!"),
        (529, "(status 529)"),
        (302, "(status 302)"),
    ];
    for protocol in Protocol::ALL {
        for (status, expected) in cases {
            let says = [Says::Status(status, body.clone())];
            let (outcome, asked) = ask(&workspace(&prompt()), protocol, "", says).await;
            let report = &outcome.hooks[0];
            let error = report.error.as_deref().unwrap();
            assert!(error.contains(expected), "{protocol:?} {status}: {error}");
            assert_eq!((report.ended, asked.len()), (Ended::Failed, 1));
            assert!(!format!("{outcome:?}").contains(KEY), "the key is shown");
        }
    }
}

#[tokio::test]
async fn a_refusal_of_the_model_is_a_failure() {
    for protocol in Protocol::ALL {
        let (outcome, _) = ask(&workspace(&prompt()), protocol, "", [Says::Refusal]).await;
        assert_eq!(outcome.hooks[0].ended, Ended::Failed, "{protocol:?} {outcome:?}");
        assert!(outcome.hooks[0].error.as_deref().unwrap().contains("refused to answer"));
    }
}

#[tokio::test]
async fn an_answer_that_is_none_of_the_protocol_is_a_failure() {
    for protocol in Protocol::ALL {
        for body in ["", "nonsense", "[]", "{}", r#"{"choices":[]}"#, r#"{"content":3}"#] {
            let says = [Says::Status(200, body.to_owned())];
            let (outcome, _) = ask(&workspace(&prompt()), protocol, "", says).await;
            assert_eq!(outcome.hooks[0].ended, Ended::Failed, "{protocol:?} {body} {outcome:?}");
        }
    }
}

#[tokio::test]
async fn the_deadline_covers_the_whole_answer() {
    let mut handler = prompt();
    handler["timeout_seconds"] = json!(0.2);
    for protocol in Protocol::ALL {
        for says in [Says::Silence, Says::Stall] {
            let since = Instant::now();
            let (outcome, _) = ask(&workspace(&handler), protocol, "", [says.clone()]).await;
            assert_eq!(outcome.hooks[0].ended, Ended::TimedOut, "{protocol:?} {says:?}");
            assert!(since.elapsed() < SOON);
        }
    }
}

#[tokio::test]
async fn a_repair_gets_no_deadline_of_its_own() {
    let mut handler = prompt();
    handler["timeout_seconds"] = json!(0.5);
    let says = [words("Well."), Says::Silence];
    let (outcome, asked) = ask(&workspace(&handler), Protocol::OpenAi, "", says).await;
    assert_eq!((outcome.hooks[0].ended, asked.len()), (Ended::TimedOut, 2));
    assert_eq!(outcome.hooks[0].tokens, Some(TokenUsage { input: 100, output: 7 }), "what it cost is lost");
}

#[tokio::test]
async fn an_endless_answer_is_too_large() {
    for protocol in Protocol::ALL {
        let (outcome, _) = ask(&workspace(&prompt()), protocol, "", [Says::Flood]).await;
        assert_eq!(outcome.hooks[0].ended, Ended::OutputTooLarge, "{protocol:?} {outcome:?}");
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_once_for_each_event() {
    let server = ModelServer::start(Protocol::OpenAi, [Says::Status(429, String::new())]).await;
    let orchestrator = start(&workspace(&prompt()), settings(&server, Protocol::OpenAi, "")).await;
    let events = (0..24).map(|call| orchestrator.dispatch(event(call)));
    let outcomes = tokio::time::timeout(SOON, futures_util::future::join_all(events)).await.unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().unwrap().hooks[0].ended == Ended::Failed));
    assert_eq!(server.asked().len(), 24);
}

#[tokio::test]
async fn connections_are_kept() {
    let server = ModelServer::start(Protocol::Anthropic, [words("{}")]).await;
    let orchestrator = start(&workspace(&prompt()), settings(&server, Protocol::Anthropic, "")).await;
    for call in 0..10 {
        orchestrator.dispatch(event(call)).await.unwrap();
    }
    assert_eq!((server.asked().len(), server.server.connections()), (10, 1));
}
