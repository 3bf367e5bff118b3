export declare const EVENT_KINDS: readonly ["session_started", "session_ended", "prompt_submitted", "before_context_compact", "after_context_compact", "before_context_build", "after_context_build", "before_model_call", "after_model_call", "before_tool_selection", "before_tool_dispatch", "after_tool_dispatch", "tool_failed", "permission_requested", "notification", "agent_stopping", "subagent_started", "subagent_stopping", "run_completed", "run_failed", "host_event"];
export type EventKind = (typeof EVENT_KINDS)[number];
export declare const VERDICTS: readonly ["proceed", "allow", "ask", "block", "halt"];
export type Verdict = (typeof VERDICTS)[number];
export declare const TARGETS: readonly ["prompt", "context", "model_request", "model_response", "tool_config", "tool_input", "tool_output"];
export type Target = (typeof TARGETS)[number];
/** An event of a run, as a host sends it to hookyard. Unknown fields are kept as they are. */
export interface CanonicalEvent {
    /** The agent of the run. */
    agent_name?: string | null;
    /** The kind of subagent. */
    agent_type?: string | null;
    /** The context, with its `messages`. */
    context?: unknown;
    /** The host's working directory. */
    cwd?: string | null;
    /** The acting agent, if it is another one (a subagent). */
    effective_agent_name?: string | null;
    /** What happened. */
    event: EventKind;
    /** The host's id of this event. A second event with the same id gets the first answer; no hook runs twice. */
    event_id?: string | null;
    /** The name of an event that has no canonical kind, with `event: host_event`. */
    host_event?: string | null;
    /** The text of the notification. */
    message?: string | null;
    /** The model that is called. */
    model_ref?: string | null;
    /** The request to a model. */
    model_request?: unknown;
    /** The answer of a model. */
    model_response?: unknown;
    /** The kind of notification. */
    notification_type?: string | null;
    /** The prompt. */
    prompt?: unknown;
    /** Why the session ended. */
    reason?: string | null;
    /** Id of the run within it. Hosts without run ids send the session's id. */
    run_id: string;
    /** How the run ended. */
    run_status?: string | null;
    /** Id of the conversation: 1 to 256 bytes without control characters. */
    session_id: string;
    /** Where the session came from. */
    source?: string | null;
    /** Id of the tool call. Two events of one kind with the same call are the same event sent twice. */
    tool_call_id?: string | null;
    /** The tools that the model may choose from. */
    tool_config?: unknown;
    /** The input of a tool call. */
    tool_input?: unknown;
    /** The tool's name. */
    tool_name?: string | null;
    /** The output of a tool call. */
    tool_output?: unknown;
    /** What triggered the compaction. */
    trigger?: string | null;
    /** What triggered the run. */
    trigger_type?: string | null;
    /** Whether the host waits for the outcome. With `false`, a lifecycle event is answered `proceed` at once. Default: true. */
    wait?: boolean;
    /** Id of the workspace. */
    workspace_id?: string | null;
}
/** A note of a hook. */
export interface Note {
    /** The hook. */
    hook: string;
    /** For whom: `system_message` and `loop_broken` are for the person at the host, `additional_context` is for the model. */
    kind: "system_message" | "additional_context" | "loop_broken";
    /** The text. */
    text: string;
}
/** How one hook ended. */
export interface Report {
    /** How long it ran, in milliseconds. */
    duration_ms: number;
    /** How the invocation ended. */
    ended: "completed" | "failed" | "timed_out" | "spawn_failed" | "invalid_output" | "output_too_large" | "cancelled" | "shed" | "untrusted";
    /** Why it failed. */
    error?: string;
    /** The type of its handler. */
    handler: "command" | "http" | "prompt" | "agent" | "rule" | "rego" | "native";
    /** The hook. */
    hook: string;
    /** What it changed. */
    patched?: Target[];
    /** How long it waited before it ran, in milliseconds: for a place in its pool, at the hook's own limit, or for its workers. Left out below 10 ms. */
    queued_ms?: number;
    /** The tokens that a model used, if it reported them. */
    tokens?: Tokens;
    /** Its verdict, after its policies; left out for `proceed`. */
    verdict?: Verdict;
    /** Warnings about the invocation and its answer. */
    warnings?: string[];
}
/** The tokens of model calls. */
export interface Tokens {
    /** Tokens read. */
    input: number;
    /** Tokens written. */
    output: number;
}
/** The answer of hookyard to one event. */
export interface CanonicalOutcome {
    /** The hook that decided. */
    by?: string;
    /** Id of this answer, also used in logs. */
    decision_id: string;
    /** The kind of the event. */
    event: EventKind;
    /** How each hook ended, in the order of the plan. */
    hooks: Report[];
    /** Fields without a canonical meaning, from hooks of the host's own dialect. */
    native?: Record<string, unknown>;
    /** Notes of hooks, in the order of the plan. */
    notes?: Note[];
    /** The parts of the payload that hooks changed, with their final values. Use these. */
    patched?: Partial<Record<Target, unknown>>;
    /** The reason, for a person or a model. */
    reason?: string;
    /** The version of the hook registry; it grows with each reload. */
    snapshot_version: number;
    /** Whether to hide the tool's output. */
    suppress_output: boolean;
    /** What the host should do. `proceed`: no hook has an opinion; `allow`: proceed without asking a person; `ask`: ask a person; `block`: do not proceed; `halt`: end the run. */
    verdict: Verdict;
}
