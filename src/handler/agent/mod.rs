//! Agent hooks: a model with a system prompt that may read files of the workspace before it answers. Its turns and its
//! tools share one deadline, a limit of turns and a budget of bytes.

mod tools;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use self::tools::WorkspaceReader;
use crate::{
    handler::{
        HandlerOutput, Invocation, Runner,
        models::{Conversation, ModelCall, ModelRouter, ModelToolCall, ToolResult, ToolUse, run_call},
    },
    model::{Agent, AgentTool, Ended, Failure, Handler, ModelAccess, RawReply},
};

/// The budget of an agent whose model is the embedding program's, in bytes.
const HOST_MODEL_BUDGET: usize = 128 << 10;

/// The most tool calls of one turn that are run. A model rarely makes more than a handful; hundreds are a mistake.
const MAX_CALLS: usize = 16;

/// Runs agent handlers.
#[derive(Debug)]
pub(crate) struct AgentRunner {
    router: ModelRouter,
}

impl AgentRunner {
    pub(crate) fn new(router: ModelRouter) -> Self {
        Self { router }
    }
}

impl Runner for AgentRunner {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, HandlerOutput> {
        Box::pin(run_call(&self.router, invocation, cancel, answer))
    }
}

async fn answer(call: ModelCall<'_>) -> Result<RawReply, Failure> {
    let Handler::Agent(handler) = &call.invocation.hook.hook.handler else {
        return Err(Failure::new(Ended::Failed, "this is not an agent hook"));
    };
    let agent = &*handler.agent;
    let tools = agent.tools.iter().map(|tool| tools::specification(*tool)).collect();
    let mut conversation = Conversation::open(call, &agent.model, &agent.system, &handler.task, tools)?;
    let mut budget = ContextBudget::of(agent);
    for turn in 1..=agent.max_turns.get() {
        let is_last = turn == agent.max_turns.get();
        let answer = conversation.ask(if is_last { ToolUse::Forbidden } else { ToolUse::Allowed }).await?;
        if answer.calls.is_empty() {
            return conversation.finish(answer).await;
        }
        if is_last {
            break;
        }
        let results = budget.run_tools(call.invocation.hook_root(), agent, &answer.calls).await?;
        conversation.add_results(answer, results);
    }
    let message = format!(
        "the agent `{}` came to no answer within {} turns (`max_turns`)",
        agent.name, agent.max_turns
    );
    Err(Failure::new(Ended::Failed, message))
}

/// How many bytes of tool output an agent may still get for its task.
struct ContextBudget {
    left: usize,
}

impl ContextBudget {
    /// Half of the model's input limit, so that the task, the event and the model's own turns fit as well.
    fn of(agent: &Agent) -> Self {
        let left = match &agent.model.access {
            ModelAccess::Api(api) => api.max_input / 2,
            ModelAccess::Host => HOST_MODEL_BUDGET,
        };
        Self { left }
    }

    /// Runs the tools that a model calls, in order.
    async fn run_tools(
        &mut self,
        root: &Path,
        agent: &Agent,
        calls: &[ModelToolCall],
    ) -> Result<Vec<ToolResult>, Failure> {
        let stop = StopWhenDropped::default();
        let mut results = Vec::with_capacity(calls.len());
        for (number, call) in calls.iter().enumerate() {
            let result = match tool(agent, call) {
                _ if number >= MAX_CALLS => Err(format!("at most {MAX_CALLS} calls at once; ask again")),
                _ if self.left == 0 => Err("you have seen as much as you may; give your answer".to_owned()),
                Err(why) => Err(why),
                Ok(tool) => run(root, tool, call, &stop.0).await?,
            };
            results.push(ToolResult { call_id: call.id.clone(), result: self.take(result) });
        }
        Ok(results)
    }

    fn take(&mut self, result: Result<String, String>) -> Result<String, String> {
        let text = result?;
        if text.len() <= self.left {
            self.left -= text.len();
            return Ok(text);
        }
        let end = text.floor_char_boundary(self.left);
        self.left = 0;
        Ok(format!("{}\n[cut off: you have seen as much as you may]", &text[..end]))
    }
}

/// Stops a running tool when the future that waits for it is dropped: a blocking thread cannot be aborted.
#[derive(Default)]
struct StopWhenDropped(Arc<AtomicBool>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn tool(agent: &Agent, call: &ModelToolCall) -> Result<AgentTool, String> {
    let known = AgentTool::from_name(&call.name).filter(|tool| agent.tools.contains(tool));
    known.ok_or_else(|| {
        let names: Vec<&str> = agent.tools.iter().map(|tool| tool.as_str()).collect();
        match names.as_slice() {
            [] => "no tools are available; give your answer".to_owned(),
            _ => format!("unknown tool; known are {}", names.join(", ")),
        }
    })
}

async fn run(
    root: &Path,
    tool: AgentTool,
    call: &ModelToolCall,
    stop: &Arc<AtomicBool>,
) -> Result<Result<String, String>, Failure> {
    let root = root.to_owned();
    let arguments = call.arguments.clone();
    let stop = Arc::clone(stop);
    let work = move || {
        let reader =
            WorkspaceReader::open(&root).map_err(|e| format!("the workspace cannot be read: {e}"))?;
        reader.call(tool, &arguments, &stop)
    };
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|_| Failure::new(Ended::Failed, format!("hookyard panicked in the tool {}", tool.as_str())))
}
