//! The names of all metrics. Refuses to be written twice.

pub(super) const EVENT_DURATION: &str = "hookyard_event_duration_seconds";
pub(super) const HOOK_DURATION: &str = "hookyard_hook_duration_seconds";
pub(super) const HOOK_RUNS: &str = "hookyard_hook_runs_total";
pub(super) const HOOK_VERDICTS: &str = "hookyard_hook_verdicts_total";
pub(super) const HOOK_FAIL_OPEN: &str = "hookyard_hook_fail_open_total";
pub(super) const HOOK_FAIL_CLOSED: &str = "hookyard_hook_fail_closed_total";
pub(super) const PATCHES: &str = "hookyard_patches_total";
pub(super) const HTTP_REQUESTS: &str = "hookyard_http_requests_total";
pub(super) const MODEL_REQUEST_DURATION: &str = "hookyard_model_request_duration_seconds";
pub(super) const MODEL_TOKENS: &str = "hookyard_model_tokens_total";
pub(super) const SHED: &str = "hookyard_shed_total";
pub(super) const LATE_REPLIES: &str = "hookyard_late_replies_total";
pub(super) const ACTOR_RESTARTS: &str = "hookyard_actor_restarts_total";
pub(super) const PANICS: &str = "hookyard_panics_total";
pub(super) const SPAWN_DURATION: &str = "hookyard_spawn_duration_seconds";
pub(super) const PROCESSES: &str = "hookyard_processes";
pub(super) const PROCESS_EXITS: &str = "hookyard_process_exits_total";
pub(super) const PROCESS_LEAKS: &str = "hookyard_process_leaks_total";
pub(super) const CONFIG_LAST_RELOAD_SUCCESSFUL: &str = "hookyard_config_last_reload_successful";
pub(super) const CONFIG_LAST_RELOAD_SUCCESS: &str = "hookyard_config_last_reload_success_timestamp_seconds";
pub(super) const CONFIG_ERRORS: &str = "hookyard_config_errors_total";
#[cfg(feature = "daemon")]
pub(super) const STREAM_DROPPED: &str = "hookyard_stream_dropped_total";
#[cfg(feature = "daemon")]
pub(super) const API_REQUESTS: &str = "hookyard_api_requests_total";
