//! A hook orchestrator for AI-agent hosts.

pub mod config;
pub mod dialect;
pub mod model;
