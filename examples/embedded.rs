//! A host with hookyard inside: one hook file in `examples/workspace`, one native hook, a few events of a run.
//!
//! ```sh
//! cargo run --example embedded
//! ```

use std::error::Error;

use hookyard::{
    NativeHook, Orchestrator, ToolCall,
    config::TrustPolicy,
    model::{EventKind, NoteKind, Outcome, Reply},
};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let house_style = NativeHook::inline("house-style", [EventKind::PromptSubmitted], |_| {
        Ok(Reply::proceed().note(NoteKind::AdditionalContext, "Answer in one sentence."))
    });
    let orchestrator = Orchestrator::builder()
        .trust(TrustPolicy::Off) // The workspace comes with this program; others need the trust of a person.
        .workspace(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/workspace"))
        .native_hook(house_style)
        .strict() // A guard whose file is broken would not run: do not start then.
        .start()
        .await?;

    let run = orchestrator.run("run-1")?;
    show("a prompt", &run.prompt_submitted("Publish the branch.").await?);
    for command in ["git push origin main", "git push --force origin main"] {
        let input = json!({ "command": command });
        let call = ToolCall::new("Bash", &input);
        show(command, &run.before_tool_dispatch(&call).await?);
    }
    run.run_completed("user").await?;

    orchestrator.shutdown(std::time::Duration::from_secs(5)).await;
    Ok(())
}

/// Prints the verdict, the reason and the notes of an outcome.
fn show(what: &str, outcome: &Outcome) {
    println!("{what}: {}", outcome.verdict);
    if let Some(reason) = &outcome.reason {
        println!("  reason: {reason}");
    }
    for note in &outcome.notes {
        println!("  note by {}: {}", note.hook, note.text);
    }
}
