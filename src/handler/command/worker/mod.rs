//! Mode `worker`: processes that stay and serve many events over JSON lines.
//!
//! | file | role |
//! | --- | --- |
//! | `fleet` | the workers of one hook: who serves an event, and when a worker is started |
//! | `fleet_state` | what the workers of a hook change as they come and go |
//! | `health` | how workers ended, and the pause before the next one |
//! | `handle` | the caller's end of one worker |
//! | `event_loop` | the task of one worker: its process and its open events |
//! | `open_events` | the events that a worker has, and when the first is late; pure |
//! | `pace` | how many events are sent ahead to a quick worker; pure |
//! | `alarm` | the one timer of the task |
//! | `timers` | when a worker is pinged, given up or retired; pure |
//! | `protocol` | the messages, one line each; pure |
//! | `pipes` | the pipes that carry the lines |

mod alarm;
mod event_loop;
mod fleet;
mod fleet_state;
mod handle;
mod health;
mod limits;
mod open_events;
mod pace;
mod pipes;
mod protocol;
mod timers;

pub(super) use fleet::{Fleet, ServeResult};
pub(super) use limits::{FleetMeters, StderrLogging, WorkerConfig, WorkerTimeouts};
pub(super) use protocol::is_protocol_output;
