//! Why a daemon cannot start.

use std::{io, net::SocketAddr};

use super::{
    audit::AuditError, handed_over::HandedOverError, handover::ReplaceError, socket::SocketError,
    tokens::TokenError,
};
use crate::handler::command::LedgerError;

/// Why a daemon cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A Unix socket cannot be used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The record of process groups cannot be kept.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The audit cannot be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The TCP address cannot be bound.
    #[error("cannot listen on {address}: {}", crate::model::io_reason(source))]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// A listener cannot be kept.
    #[error("cannot keep a listener: {}", crate::model::io_reason(.0))]
    Descriptor(#[source] io::Error),
    /// A listener that was handed over cannot be used.
    #[error(transparent)]
    HandedOver(#[from] HandedOverError),
    /// The running daemon cannot be replaced.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    /// The orchestrator cannot start.
    #[error(transparent)]
    Orchestrator(#[from] crate::StartError),
}
