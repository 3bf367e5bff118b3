//! Notices that hook files have changed, and has them read again. Refuses to read one itself.
//!
//! `config::WatchPlan` says what to watch for a workspace. `ears` hears of changes from the kernel, `concerns` says whose
//! they are, `settling` waits until they are over, `watching` has the workspaces read again and looks after the rest.

mod debounce;
mod fs_state;
mod inotify;
mod reload_loop;
mod state;
mod subscriptions;

pub(super) use reload_loop::watch;
pub(super) use state::WatchState;
