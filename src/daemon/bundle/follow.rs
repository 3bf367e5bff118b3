//! The task that follows the bundle: it asks the server, takes what is new, and has the hooks loaded again when other ones are
//! to be in force.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    fetch::{BundleServer, PollAnswer},
    keeper::{BundleKeeper, BundleNeed, CheckedOffer, LastPoll, RejectedStatement, SECOND_TRY},
    schedule::{first_pause, pause, urgent_pause},
};
use crate::{
    bundle::{BundleRejection, RejectionKind, SignedStatement},
    config::TakenBundle,
    daemon::state::DaemonState,
    telemetry::{BundleRejected, PollResult},
};

/// The longest pause without a look at the clock: what is stale is to be seen soon also where polls are rare.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Follows the bundle until the daemon ends.
pub(in crate::daemon) async fn follow(state: Arc<DaemonState>) {
    let Some(keeper) = &state.bundle else { return };
    let poll = state.settings.bundle.poll;
    let is_urgent = Notify::new();
    let first = match keeper.need() {
        // A machine without a bundle has its events blocked until there is one.
        BundleNeed::Unusable => Duration::ZERO,
        BundleNeed::Stale => urgent_pause(poll, random()),
        BundleNeed::None => first_pause(poll, random()),
    };
    let polls = async {
        let Some(server) = &keeper.server else { return };
        let mut wait = first;
        loop {
            tokio::select! {
                () = sleep(wait) => {}
                () = is_urgent.notified() => sleep(urgent_pause(poll, random())).await,
            }
            poll_once(&state, keeper, server).await;
            wait = pause(poll, random());
            renew(&state, keeper).await;
        }
    };
    // A server that is slow does not stop the clock.
    let clock = async {
        let mut before = keeper.need();
        loop {
            renew(&state, keeper).await;
            keeper.mend_copy().await;
            keeper.note_time().await;
            let need = keeper.need();
            if need != BundleNeed::None && before == BundleNeed::None {
                is_urgent.notify_one();
            }
            before = need;
            sleep(poll.min(LONGEST_PAUSE)).await;
        }
    };
    tokio::join!(polls, clock);
}

/// Has the hooks loaded again where other ones are to be in force.
async fn renew(state: &DaemonState, keeper: &BundleKeeper) {
    if keeper.is_outdated().await
        && let Err(error) = state.reload().await
    {
        tracing::debug!(%error, "the hooks of the bundle were not loaded again");
    }
}

/// A number that another machine does not have.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

async fn poll_once(state: &DaemonState, keeper: &BundleKeeper, server: &BundleServer) {
    let etag = keeper.etag();
    let (result, why) = match server.poll(etag.as_ref()).await {
        Err(why) => (PollResult::Failed, Some(why)),
        Ok(answer) => match take_answer(state, keeper, server, answer).await {
            Ok(result) => (result, None),
            Err(PollFault::NoArchive(why)) => (PollResult::Failed, Some(why)),
            Err(PollFault::Rejected(rejection)) => (PollResult::Rejected, Some(rejection.message)),
        },
    };
    result.emit();
    note(keeper, server, LastPoll { result, at: SystemTime::now(), why });
}

/// Why an answer brought nothing.
enum PollFault {
    NoArchive(String),
    Rejected(BundleRejection),
}

async fn take_answer(
    state: &DaemonState,
    keeper: &BundleKeeper,
    server: &BundleServer,
    answer: PollAnswer,
) -> Result<PollResult, PollFault> {
    let PollAnswer { statement, etag, time } = answer;
    let trust = keeper.bear_out(time).await;
    let Some(bytes) = statement else {
        keeper.confirm(trust).await;
        return Ok(PollResult::Unchanged);
    };
    keeper.memory.lock().etag = None;
    let known = keeper.memory.lock().rejected.clone();
    if let Some(known) = known.filter(|known| known.bytes == bytes && known.again > Instant::now()) {
        return Err(PollFault::Rejected(known.rejection));
    }
    match take_statement(state, keeper, server, &bytes).await {
        Ok((result, archive)) => {
            keeper.confirm(trust).await;
            let mut memory = keeper.memory.lock();
            memory.etag = etag.map(|tag| (tag, archive));
            memory.rejected = None;
            Ok(result)
        }
        Err(PollFault::Rejected(rejection)) => {
            BundleRejected(rejection.kind.as_str()).emit();
            // Its time comes by itself, and costs no download until then.
            let wait = if rejection.kind == RejectionKind::NotYet { Duration::ZERO } else { SECOND_TRY };
            let again = Instant::now() + wait;
            keeper.memory.lock().rejected =
                Some(RejectedStatement { bytes, rejection: rejection.clone(), again });
            Err(PollFault::Rejected(rejection))
        }
        Err(no_archive) => Err(no_archive),
    }
}

/// Returns what came of it, with the archive that it is about.
async fn take_statement(
    state: &DaemonState,
    keeper: &BundleKeeper,
    server: &BundleServer,
    bytes: &[u8],
) -> Result<(PollResult, String), PollFault> {
    let signed = SignedStatement::read(bytes).map_err(PollFault::Rejected)?;
    let digest = signed.statement.archive.clone();
    let title = format!("{} {}", signed.statement.name, signed.statement.version);
    let taken = match keeper.check(signed.clone()).await.map_err(PollFault::Rejected)? {
        CheckedOffer::InForce => TakenBundle::Already,
        CheckedOffer::Signed => TakenBundle::Signed,
        CheckedOffer::Needed => {
            let archive = server.archive(&signed.statement).await.map_err(PollFault::NoArchive)?;
            keeper.take(&state.orchestrator, signed, archive).await.map_err(PollFault::Rejected)?
        }
    };
    match taken {
        TakenBundle::Already => return Ok((PollResult::Unchanged, digest)),
        TakenBundle::Signed => {
            tracing::info!(bundle = %title, "another signature of the bundle in force is kept");
            if keeper.is_usable() {
                return Ok((PollResult::Unchanged, digest));
            }
        }
        TakenBundle::Now => tracing::info!(bundle = %title, "a new bundle was taken"),
    }
    if let Err(error) = state.reload().await {
        tracing::debug!(%error, "the hooks of the bundle were not loaded");
    }
    let result = if taken == TakenBundle::Now { PollResult::Taken } else { PollResult::Unchanged };
    Ok((result, digest))
}

/// Remembers what came of a poll, and logs what is another than the time before.
fn note(keeper: &BundleKeeper, server: &BundleServer, last: LastPoll) {
    let before = keeper.memory.lock().last.replace(last.clone());
    let is_same =
        before.as_ref().is_some_and(|before| before.result == last.result && before.why == last.why);
    if is_same {
        return;
    }
    let server = server.name();
    let was_bad = before.is_some_and(|before| before.why.is_some());
    match (last.result, last.why) {
        (PollResult::Rejected, why) => {
            let why = why.unwrap_or_default();
            tracing::error!(%server, %why, "the published bundle is not taken; what is in force stays");
        }
        (PollResult::Failed, why) => {
            let why = why.unwrap_or_default();
            tracing::warn!(%server, %why, "the server of the bundle could not be asked; what is in force stays");
        }
        _ if was_bad => tracing::info!(%server, "the server of the bundle answers again"),
        _ => {}
    }
}
