/** A method for each kind of event. */

import type { Outcome } from "./outcome.js";
import type { CanonicalEvent, EventKind } from "./schema.js";

/** What a host may say with each event. */
export interface Place {
  /** The run that the event is part of. */
  run: string;
  /** The conversation that the run is part of; by default the run's id. */
  session?: string;
  /** The workspace whose hooks are asked; by default the one that contains `cwd`, or the only one. */
  workspace?: string;
  /** The host's working directory. */
  cwd?: string;
  /** An id of this event: if it is sent again, no hook runs twice. */
  id?: string;
  /** `false`: an event that only reports something is answered at once, and its hooks run on. */
  wait?: boolean;
}

/** One call of a tool. */
export interface ToolCall<I = unknown> {
  name: string;
  input: I;
  /** An id of the call: if its events are sent again, no hook runs twice. */
  id?: string;
}

/** What holds for one event. */
export interface CallOptions {
  /** What to answer if no hook could be asked, whatever the reason. */
  ifDown?: "block" | "allow";
  /** The longest that the event may take, in milliseconds. */
  timeoutMs?: number;
  /** How long to send the event again where that is safe, as while the daemon restarts, in milliseconds. */
  retryForMs?: number;
  /** Cancels the event, and its hooks. The promise is rejected with the reason of the signal. */
  signal?: AbortSignal;
  /** The W3C trace context of the event, or a function that says it. */
  traceparent?: string | (() => string | undefined);
}

type Fields = Partial<CanonicalEvent> & Record<string, unknown>;

/** The kinds of events. */
export abstract class Events {
  /** Sends an event with the fields of its JSON Schema, for what the other methods do not take. */
  abstract dispatch<T>(event: CanonicalEvent, options?: CallOptions): Promise<Outcome<T>>;

  /** A session began; `source` says from where, such as `startup` or `resume`. */
  sessionStarted(event: Place & { source?: string }, options?: CallOptions): Promise<Outcome> {
    return this.#send("session_started", event, { source: event.source }, options);
  }

  /** A session ended, and with it its run. */
  sessionEnded(event: Place & { reason?: string }, options?: CallOptions): Promise<Outcome> {
    return this.#send("session_ended", event, { reason: event.reason }, options);
  }

  /** A person or program sent a prompt. */
  promptSubmitted<P>(event: Place & { prompt: P }, options?: CallOptions): Promise<Outcome<P>> {
    return this.#send("prompt_submitted", event, { prompt: event.prompt }, options);
  }

  /** The context is about to be compacted; `trigger` is `manual` or `auto`. */
  beforeContextCompact<C>(event: Place & { context?: C; trigger?: string }, options?: CallOptions): Promise<Outcome<C>> {
    return this.#send("before_context_compact", event, { context: event.context, trigger: event.trigger }, options);
  }

  /** The context was compacted. */
  afterContextCompact<C>(event: Place & { context?: C; trigger?: string }, options?: CallOptions): Promise<Outcome<C>> {
    return this.#send("after_context_compact", event, { context: event.context, trigger: event.trigger }, options);
  }

  /** The context is about to be built from these parts. */
  beforeContextBuild<C>(event: Place & { context?: C }, options?: CallOptions): Promise<Outcome<C>> {
    return this.#send("before_context_build", event, { context: event.context }, options);
  }

  /** The context was built. */
  afterContextBuild<C>(event: Place & { context?: C }, options?: CallOptions): Promise<Outcome<C>> {
    return this.#send("after_context_build", event, { context: event.context }, options);
  }

  /** A model is about to be called. */
  beforeModelCall<R>(event: Place & { model: string; request?: R }, options?: CallOptions): Promise<Outcome<R>> {
    return this.#send("before_model_call", event, { model_ref: event.model, model_request: event.request }, options);
  }

  /** A model answered. */
  afterModelCall<R>(
    event: Place & { model: string; request?: unknown; response?: R },
    options?: CallOptions,
  ): Promise<Outcome<R>> {
    const fields = { model_ref: event.model, model_request: event.request, model_response: event.response };
    return this.#send("after_model_call", event, fields, options);
  }

  /** The tools that a model may choose from are about to be settled. */
  beforeToolSelection<T>(event: Place & { tools?: T }, options?: CallOptions): Promise<Outcome<T>> {
    return this.#send("before_tool_selection", event, { tool_config: event.tools }, options);
  }

  /** A tool is about to run; run it with the `payload` of the outcome. */
  beforeToolDispatch<I>(event: Place & { tool: ToolCall<I> }, options?: CallOptions): Promise<Outcome<I>> {
    return this.#send("before_tool_dispatch", event, fieldsOf(event.tool), options);
  }

  /** A tool ran; give the model the `payload` of the outcome. */
  afterToolDispatch<O>(event: Place & { tool: ToolCall; output?: O }, options?: CallOptions): Promise<Outcome<O>> {
    return this.#send("after_tool_dispatch", event, { tool_output: event.output, ...fieldsOf(event.tool) }, options);
  }

  /** A tool failed; `error` is for people and models to read. */
  toolFailed(event: Place & { tool: ToolCall; error?: string }, options?: CallOptions): Promise<Outcome> {
    return this.#send("tool_failed", event, { error: event.error, ...fieldsOf(event.tool) }, options);
  }

  /** The host is about to ask a person whether a tool may run; hooks may answer in the person's place. */
  permissionRequested<I>(event: Place & { tool: ToolCall<I> }, options?: CallOptions): Promise<Outcome<I>> {
    return this.#send("permission_requested", event, fieldsOf(event.tool), options);
  }

  /** The host notifies a person. */
  notification(event: Place & { type?: string; message?: string }, options?: CallOptions): Promise<Outcome> {
    return this.#send("notification", event, { notification_type: event.type, message: event.message }, options);
  }

  /** The agent is about to stop. A block means: keep working. */
  agentStopping(event: Place, options?: CallOptions): Promise<Outcome> {
    return this.#send("agent_stopping", event, {}, options);
  }

  /** A subagent began; `agent` is its type. */
  subagentStarted(event: Place & { agent?: string }, options?: CallOptions): Promise<Outcome> {
    return this.#send("subagent_started", event, { agent_type: event.agent }, options);
  }

  /** A subagent is about to stop. A block means: keep working. */
  subagentStopping(event: Place & { agent?: string }, options?: CallOptions): Promise<Outcome> {
    return this.#send("subagent_stopping", event, { agent_type: event.agent }, options);
  }

  /** The run completed; `trigger` says what had started it, such as `user`. */
  runCompleted(event: Place & { trigger?: string }, options?: CallOptions): Promise<Outcome> {
    return this.#send("run_completed", event, { trigger_type: event.trigger, run_status: "completed" }, options);
  }

  /** The run failed. */
  runFailed(event: Place & { trigger?: string }, options?: CallOptions): Promise<Outcome> {
    return this.#send("run_failed", event, { trigger_type: event.trigger, run_status: "failed" }, options);
  }

  /** Something happened that only this host has a name for. */
  hostEvent(event: Place & { name: string }, options?: CallOptions): Promise<Outcome> {
    return this.#send("host_event", event, { host_event: event.name }, options);
  }

  #send<T>(kind: EventKind, place: Place, fields: Fields, options?: CallOptions): Promise<Outcome<T>> {
    const { run, session = run, workspace, cwd, id, wait } = place;
    const sent = { event: kind, session_id: session, run_id: run, workspace_id: workspace, event_id: id, cwd, wait };
    return this.dispatch<T>(Object.assign(sent, fields) as CanonicalEvent, options);
  }
}

function fieldsOf(tool: ToolCall): Fields {
  return { tool_name: tool.name, tool_input: tool.input, tool_call_id: tool.id };
}
