/** A method for each kind of event. */
/** The kinds of events. */
export class Events {
    /** A session began; `source` says from where, such as `startup` or `resume`. */
    sessionStarted(event, options) {
        return this.#send("session_started", event, { source: event.source }, options);
    }
    /** A session ended, and with it its run. */
    sessionEnded(event, options) {
        return this.#send("session_ended", event, { reason: event.reason }, options);
    }
    /** A person or program sent a prompt. */
    promptSubmitted(event, options) {
        return this.#send("prompt_submitted", event, { prompt: event.prompt }, options);
    }
    /** The context is about to be compacted; `trigger` is `manual` or `auto`. */
    beforeContextCompact(event, options) {
        return this.#send("before_context_compact", event, { context: event.context, trigger: event.trigger }, options);
    }
    /** The context was compacted. */
    afterContextCompact(event, options) {
        return this.#send("after_context_compact", event, { context: event.context, trigger: event.trigger }, options);
    }
    /** The context is about to be built from these parts. */
    beforeContextBuild(event, options) {
        return this.#send("before_context_build", event, { context: event.context }, options);
    }
    /** The context was built. */
    afterContextBuild(event, options) {
        return this.#send("after_context_build", event, { context: event.context }, options);
    }
    /** A model is about to be called. */
    beforeModelCall(event, options) {
        return this.#send("before_model_call", event, { model_ref: event.model, model_request: event.request }, options);
    }
    /** A model answered. */
    afterModelCall(event, options) {
        const fields = { model_ref: event.model, model_request: event.request, model_response: event.response };
        return this.#send("after_model_call", event, fields, options);
    }
    /** The tools that a model may choose from are about to be settled. */
    beforeToolSelection(event, options) {
        return this.#send("before_tool_selection", event, { tool_config: event.tools }, options);
    }
    /** A tool is about to run; run it with the `payload` of the outcome. */
    beforeToolDispatch(event, options) {
        return this.#send("before_tool_dispatch", event, fieldsOf(event.tool), options);
    }
    /** A tool ran; give the model the `payload` of the outcome. */
    afterToolDispatch(event, options) {
        return this.#send("after_tool_dispatch", event, { tool_output: event.output, ...fieldsOf(event.tool) }, options);
    }
    /** A tool failed; `error` is for people and models to read. */
    toolFailed(event, options) {
        return this.#send("tool_failed", event, { error: event.error, ...fieldsOf(event.tool) }, options);
    }
    /** The host is about to ask a person whether a tool may run; hooks may answer in the person's place. */
    permissionRequested(event, options) {
        return this.#send("permission_requested", event, fieldsOf(event.tool), options);
    }
    /** The host notifies a person. */
    notification(event, options) {
        return this.#send("notification", event, { notification_type: event.type, message: event.message }, options);
    }
    /** The agent is about to stop. A block means: keep working. */
    agentStopping(event, options) {
        return this.#send("agent_stopping", event, {}, options);
    }
    /** A subagent began; `agent` is its type. */
    subagentStarted(event, options) {
        return this.#send("subagent_started", event, { agent_type: event.agent }, options);
    }
    /** A subagent is about to stop. A block means: keep working. */
    subagentStopping(event, options) {
        return this.#send("subagent_stopping", event, { agent_type: event.agent }, options);
    }
    /** The run completed; `trigger` says what had started it, such as `user`. */
    runCompleted(event, options) {
        return this.#send("run_completed", event, { trigger_type: event.trigger, run_status: "completed" }, options);
    }
    /** The run failed. */
    runFailed(event, options) {
        return this.#send("run_failed", event, { trigger_type: event.trigger, run_status: "failed" }, options);
    }
    /** Something happened that only this host has a name for. */
    hostEvent(event, options) {
        return this.#send("host_event", event, { host_event: event.name }, options);
    }
    #send(kind, place, fields, options) {
        const { run, session = run, workspace, cwd, id, wait } = place;
        const sent = { event: kind, session_id: session, run_id: run, workspace_id: workspace, event_id: id, cwd, wait };
        return this.dispatch(Object.assign(sent, fields), options);
    }
}
function fieldsOf(tool) {
    return { tool_name: tool.name, tool_input: tool.input, tool_call_id: tool.id };
}
