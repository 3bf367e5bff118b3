// Written by clients/schema.py from config/schema: do not edit.
export const EVENT_KINDS = ["session_started", "session_ended", "prompt_submitted", "before_context_compact", "after_context_compact", "before_context_build", "after_context_build", "before_model_call", "after_model_call", "before_tool_selection", "before_tool_dispatch", "after_tool_dispatch", "tool_failed", "permission_requested", "notification", "agent_stopping", "subagent_started", "subagent_stopping", "run_completed", "run_failed", "host_event"];
export const VERDICTS = ["proceed", "allow", "ask", "block", "halt"];
export const TARGETS = ["prompt", "context", "model_request", "model_response", "tool_config", "tool_input", "tool_output"];
