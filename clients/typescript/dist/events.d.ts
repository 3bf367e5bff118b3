/** A method for each kind of event. */
import type { Outcome } from "./outcome.js";
import type { CanonicalEvent } from "./schema.js";
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
/** The kinds of events. */
export declare abstract class Events {
    #private;
    /** Sends an event with the fields of its JSON Schema, for what the other methods do not take. */
    abstract dispatch<T>(event: CanonicalEvent, options?: CallOptions): Promise<Outcome<T>>;
    /** A session began; `source` says from where, such as `startup` or `resume`. */
    sessionStarted(event: Place & {
        source?: string;
    }, options?: CallOptions): Promise<Outcome>;
    /** A session ended, and with it its run. */
    sessionEnded(event: Place & {
        reason?: string;
    }, options?: CallOptions): Promise<Outcome>;
    /** A person or program sent a prompt. */
    promptSubmitted<P>(event: Place & {
        prompt: P;
    }, options?: CallOptions): Promise<Outcome<P>>;
    /** The context is about to be compacted; `trigger` is `manual` or `auto`. */
    beforeContextCompact<C>(event: Place & {
        context?: C;
        trigger?: string;
    }, options?: CallOptions): Promise<Outcome<C>>;
    /** The context was compacted. */
    afterContextCompact<C>(event: Place & {
        context?: C;
        trigger?: string;
    }, options?: CallOptions): Promise<Outcome<C>>;
    /** The context is about to be built from these parts. */
    beforeContextBuild<C>(event: Place & {
        context?: C;
    }, options?: CallOptions): Promise<Outcome<C>>;
    /** The context was built. */
    afterContextBuild<C>(event: Place & {
        context?: C;
    }, options?: CallOptions): Promise<Outcome<C>>;
    /** A model is about to be called. */
    beforeModelCall<R>(event: Place & {
        model: string;
        request?: R;
    }, options?: CallOptions): Promise<Outcome<R>>;
    /** A model answered. */
    afterModelCall<R>(event: Place & {
        model: string;
        request?: unknown;
        response?: R;
    }, options?: CallOptions): Promise<Outcome<R>>;
    /** The tools that a model may choose from are about to be settled. */
    beforeToolSelection<T>(event: Place & {
        tools?: T;
    }, options?: CallOptions): Promise<Outcome<T>>;
    /** A tool is about to run; run it with the `payload` of the outcome. */
    beforeToolDispatch<I>(event: Place & {
        tool: ToolCall<I>;
    }, options?: CallOptions): Promise<Outcome<I>>;
    /** A tool ran; give the model the `payload` of the outcome. */
    afterToolDispatch<O>(event: Place & {
        tool: ToolCall;
        output?: O;
    }, options?: CallOptions): Promise<Outcome<O>>;
    /** A tool failed; `error` is for people and models to read. */
    toolFailed(event: Place & {
        tool: ToolCall;
        error?: string;
    }, options?: CallOptions): Promise<Outcome>;
    /** The host is about to ask a person whether a tool may run; hooks may answer in the person's place. */
    permissionRequested<I>(event: Place & {
        tool: ToolCall<I>;
    }, options?: CallOptions): Promise<Outcome<I>>;
    /** The host notifies a person. */
    notification(event: Place & {
        type?: string;
        message?: string;
    }, options?: CallOptions): Promise<Outcome>;
    /** The agent is about to stop. A block means: keep working. */
    agentStopping(event: Place, options?: CallOptions): Promise<Outcome>;
    /** A subagent began; `agent` is its type. */
    subagentStarted(event: Place & {
        agent?: string;
    }, options?: CallOptions): Promise<Outcome>;
    /** A subagent is about to stop. A block means: keep working. */
    subagentStopping(event: Place & {
        agent?: string;
    }, options?: CallOptions): Promise<Outcome>;
    /** The run completed; `trigger` says what had started it, such as `user`. */
    runCompleted(event: Place & {
        trigger?: string;
    }, options?: CallOptions): Promise<Outcome>;
    /** The run failed. */
    runFailed(event: Place & {
        trigger?: string;
    }, options?: CallOptions): Promise<Outcome>;
    /** Something happened that only this host has a name for. */
    hostEvent(event: Place & {
        name: string;
    }, options?: CallOptions): Promise<Outcome>;
}
