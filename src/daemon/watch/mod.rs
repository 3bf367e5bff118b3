//! Notices changed hook files and reloads their workspaces.
//!
//! `config::WatchPlan` lists what to watch for a workspace. The platform reports changes, `subscriptions` maps them to
//! workspaces, `debounce` waits until the changes pause, `reload_loop` reloads the workspaces and updates their watches.

mod debounce;
mod fs_state;
mod reload_loop;
mod state;
mod subscriptions;

pub(super) use reload_loop::{WatchContext, watch};
pub(super) use state::WatchState;
