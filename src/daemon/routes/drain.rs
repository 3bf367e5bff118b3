//! Stops the daemon on request.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};

use crate::daemon::state::DaemonState;

/// Asks the program that runs the daemon to stop it, and returns at once. From then on the daemon is not ready.
pub(super) async fn drain(State(state): State<Arc<DaemonState>>) -> StatusCode {
    tracing::info!("a client of the API asks the daemon to stop");
    state.begin_draining();
    state.stop_requested.cancel();
    StatusCode::ACCEPTED
}
