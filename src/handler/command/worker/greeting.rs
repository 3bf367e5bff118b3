//! A worker that is started only to hear its hello, for those who check hooks. Refuses to give it an event.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{
    life,
    link::{Link, Seats},
    terms::{Ending, Terms},
};

/// Starts a worker, waits for its hello as long as a fleet would at most, and stops it. It is gone when the future
/// ends; it also ends, a little later, when the future is dropped.
///
/// Returns why it is no worker if there is no hello.
pub(super) async fn hear(terms: Terms) -> Result<(), String> {
    let (tell, ending) = oneshot::channel();
    let note = move |ending: &Ending, _| drop(tell.send(ending.clone()));
    let link = life::start(terms, Arc::new(Seats::of(1)), note).map_err(|error| error.to_string())?;
    let greeted = link.is_ready().await;
    let Link { messages, mut phase, .. } = link;
    // Nobody can tell it anything any more, so it retires.
    drop(messages);
    while phase.changed().await.is_ok() {}
    match ending.await {
        _ if greeted => Ok(()),
        Ok(Ending::NoHello(why) | Ending::Died(why) | Ending::Protocol(why)) => Err(why),
        Ok(Ending::Late | Ending::Retired) | Err(_) => Err("it was stopped".to_owned()),
    }
}
