//! Laws of loads, and how reports look.

mod load;
mod page;
mod scripted;

pub(super) use scripted::ScriptedTarget;
