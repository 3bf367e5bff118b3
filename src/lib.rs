//! A hook orchestrator for AI-agent hosts.

pub mod model;
