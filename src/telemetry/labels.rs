//! The closed sets that label values are from.

/// Declares an enum whose members are the values of a label.
macro_rules! terms {
    ($($(#[$doc:meta])* $name:ident { $($(#[$member_doc:meta])* $member:ident $text:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(crate) enum $name {
            $($(#[$member_doc])* $member,)*
        }

        impl $name {
            pub(super) const ALL: [Self; [$($text),*].len()] = [$(Self::$member),*];

            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$member => $text,)*
                }
            }
        }
    )*};
}

terms! {
    /// How a request of an http hook ended.
    HttpClass {
        /// Status 1xx, and whatever else is no status.
        Other "other",
        /// Status 2xx.
        Success "2xx",
        /// Status 3xx; it is not followed.
        Redirect "3xx",
        /// Status 4xx.
        ClientError "4xx",
        /// Status 5xx.
        ServerError "5xx",
        /// No connection, for no reason below.
        Connect "connect",
        /// The server turned the connection down.
        Refused "refused",
        /// The server's name could not be resolved.
        Dns "dns",
        /// Hooks of this level may not connect to the server.
        NotAllowed "not_allowed",
        /// The server could not prove who it is.
        Tls "tls",
        /// It took too long.
        Timeout "timeout",
        /// The connection ended before the answer did.
        Broken "broken",
    }

    /// Where work was shed.
    ShedStage {
        /// Before its run saw it.
        Admission "admission",
        /// In its run's pending queue.
        Run "run",
        /// In a pool's queue.
        Pool "pool",
    }

    /// Why work was shed.
    ShedReason {
        /// The queue was full.
        Full "full",
        /// It waited too long.
        Deadline "deadline",
        /// hookyard is shutting down.
        Shutdown "shutdown",
    }

    /// How a process ended.
    ProcessExit {
        /// With exit code 0.
        Ok "ok",
        /// With exit code 2.
        Block "block",
        /// With another exit code.
        Nonzero "nonzero",
        /// By a signal of its own.
        Signal "signal",
        /// At its deadline, on being asked.
        TimeoutTerm "timeout_term",
        /// At its deadline, by force.
        TimeoutKill "timeout_kill",
    }

    /// What a process left behind.
    ProcessLeak {
        /// A descendant held a pipe open.
        PipeHeld "pipe_held",
        /// A descendant in its group was still alive and was killed.
        SurvivorKilled "survivor_killed",
        /// A descendant left its group and was still alive.
        Escaped "escaped",
    }

    /// Where a process writes.
    OutputStream {
        /// Its answer.
        Stdout "stdout",
        /// Its log.
        Stderr "stderr",
    }

    /// What a worker does.
    WorkerState {
        /// It has not said hello yet.
        Starting "starting",
        /// It waits for an event.
        Idle "idle",
        /// It has an event.
        Busy "busy",
    }

    /// Why the workers of a hook do not serve its events.
    Degradation {
        /// None said hello, so each event gets a process.
        NoHello "no_hello",
        /// They end again and again, so events wait for the next one.
        Failing "failing",
    }

    /// Whether a process waited for an event.
    SpareResult {
        /// One did.
        Hit "hit",
        /// None did, or not one that could be used.
        Miss "miss",
    }

    /// Whether a hook runs.
    HookState {
        /// It does.
        Enabled "enabled",
        /// It is switched off.
        Disabled "disabled",
        /// Its files are not trusted.
        Untrusted "untrusted",
        /// Its file has errors.
        Invalid "invalid",
    }

    /// Whether a run has an actor.
    RunGaugeState {
        /// It has.
        Active "active",
        /// It has none.
        Passivated "passivated",
    }
}

impl HttpClass {
    /// The class of an answer with this status.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "no http hook sends a request"))]
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Success,
            300..=399 => Self::Redirect,
            400..=499 => Self::ClientError,
            500..=599 => Self::ServerError,
            _ => Self::Other,
        }
    }
}
