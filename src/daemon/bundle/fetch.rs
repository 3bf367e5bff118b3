//! Asks the server of a bundle: for the signed statement, which is small, and for an archive that a statement is about.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::{
    Response, StatusCode, Url,
    header::{
        ACCEPT_ENCODING, DATE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LAST_MODIFIED,
        LOCATION,
    },
};
use tokio::time::timeout;

use crate::{
    bundle::{BundleStatement, BundleTime, MAX_STATEMENT},
    handler::http_client::{HttpClients, bounded_body, with_causes},
    model::{Address, Approval},
};

/// Timeout of a poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of the download of an archive: 32 MiB at about 1 Mbit/s.
const ARCHIVE_TIMEOUT: Duration = Duration::from_mins(5);

/// The longest entity tag that is sent back, in bytes.
const LONGEST_ETAG: usize = 256;

/// How long ago a statement must have been changed for its entity tag to be its own.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The connection to the server of a bundle.
#[derive(Debug)]
pub(super) struct BundleServer {
    address: Address,
    clients: HttpClients,
}

/// What a server has answered to a poll.
#[derive(Debug)]
pub(super) struct PollAnswer {
    /// The statement; nothing if it is the one with the entity tag that was sent.
    pub(super) statement: Option<Vec<u8>>,
    pub(super) etag: Option<HeaderValue>,
    /// The time that the server says.
    pub(super) time: Option<SystemTime>,
}

impl BundleServer {
    pub(super) fn new(address: Address) -> Self {
        Self { address, clients: HttpClients::new(1) }
    }

    /// The name of the server, without what a URL may have of secrets.
    pub(super) fn name(&self) -> String {
        self.address.server()
    }

    /// Asks for the statement.
    ///
    /// Returns why there is no answer that can be used.
    pub(super) async fn poll(&self, etag: Option<&HeaderValue>) -> Result<PollAnswer, String> {
        let asked = async {
            let response = self.get(self.address.url().clone(), etag).await?;
            let headers = response.headers();
            let known = etag.is_some() && response.status() == StatusCode::NOT_MODIFIED;
            let etag = settled_tag(headers);
            let time = date_of(headers, DATE);
            if known {
                return Ok(PollAnswer { statement: None, etag, time });
            }
            expect_ok(&response)?;
            let statement = read_bounded(response, MAX_STATEMENT).await;
            let statement = statement
                .map_err(|why| format!("{why}; `bundle.url` is where `hookyard bundle push` put it"))?;
            Ok(PollAnswer { statement: Some(statement), etag, time })
        };
        timeout(POLL_TIMEOUT, asked)
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {POLL_TIMEOUT:?}")))
    }

    /// Downloads the archive that a statement is about, which has exactly the size that was signed.
    ///
    /// Returns why it could not be downloaded.
    pub(super) async fn archive(&self, statement: &BundleStatement) -> Result<Vec<u8>, String> {
        let asked = async {
            let url =
                self.address.url().join(&statement.archive_name()).map_err(|error| error.to_string())?;
            let response = self.get(url, None).await?;
            expect_ok(&response)?;
            let archive = read_bounded(response, statement.size).await?;
            // Not for good, as a damaged one is: an upload may be under way.
            if archive.len() < statement.size {
                return Err(format!(
                    "its archive has {} of {} bytes, as if it was not published as a whole yet",
                    archive.len(),
                    statement.size
                ));
            }
            Ok(archive)
        };
        let late = || format!("its archive did not arrive within {ARCHIVE_TIMEOUT:?}");
        timeout(ARCHIVE_TIMEOUT, asked).await.unwrap_or_else(|_| Err(late()))
    }

    async fn get(&self, url: Url, etag: Option<&HeaderValue>) -> Result<Response, String> {
        let client = self.clients.of_url(&Approval::of_settings(), &url).await;
        let client = client.map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(etag) = etag {
            headers.insert(IF_NONE_MATCH, etag.clone());
        }
        let sent = client.get(url).headers(headers).send().await;
        // A URL may have secrets.
        sent.map_err(|error| with_causes(&error.without_url()))
    }
}

/// Returns an error for anything else than 200. A redirect is not followed: it may lead to another scheme, or to anybody.
fn expect_ok(response: &Response) -> Result<(), String> {
    let status = response.status();
    if status == StatusCode::OK {
        return Ok(());
    }
    let is_redirect = response.headers().contains_key(LOCATION);
    let advice =
        if is_redirect { "; redirects are not followed: name the address that it leads to" } else { "" };
    Err(format!("it answered {status}{advice}"))
}

/// The body, unless it is larger than that.
async fn read_bounded(response: Response, most: usize) -> Result<Vec<u8>, String> {
    if response.content_length().is_some_and(|length| length > most as u64) {
        return Err(format!("its answer has more than {most} bytes"));
    }
    bounded_body(response, most).await.map(Vec::from)
}

/// The entity tag of a statement, unless the statement may still change without it: servers such as nginx make it of the
/// size and of the second of the last change.
fn settled_tag(headers: &HeaderMap) -> Option<HeaderValue> {
    let tag = headers.get(ETAG).filter(|tag| tag.len() <= LONGEST_ETAG)?;
    let changed = date_of(headers, LAST_MODIFIED).zip(date_of(headers, DATE));
    let is_settled = |(changed, now): (SystemTime, SystemTime)| {
        now.duration_since(changed).is_ok_and(|age| age >= SETTLED_AFTER)
    };
    changed.is_none_or(is_settled).then(|| tag.clone())
}

fn date_of(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    http_date(headers.get(name)?.to_str().ok()?)
}

/// The time of a header such as `Thu, 26 Nov 2026 18:15:33 GMT`, the one form in which servers write it.
fn http_date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let rest = text.split_once(", ")?.1.strip_suffix(" GMT")?;
    let [day, month, year, time] = rest.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let month = MONTHS.iter().position(|known| *known == month)? + 1;
    let moment = BundleTime::parse(&format!("{year}-{month:02}-{day}T{time}Z"))?;
    Some(UNIX_EPOCH + Duration::from_secs(moment.seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_two_statements_may_have_is_not_kept() {
        let tag = |changed: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(ETAG, HeaderValue::from_static("\"6747-198\""));
            headers.insert(DATE, HeaderValue::from_static("Thu, 26 Nov 2026 18:15:33 GMT"));
            if let Some(changed) = changed {
                headers.insert(LAST_MODIFIED, HeaderValue::from_static(changed));
            }
            settled_tag(&headers).is_some()
        };
        assert!(tag(None), "the server says no time: its tag is of the content");
        assert!(tag(Some("Thu, 26 Nov 2026 18:15:31 GMT")));
        assert!(!tag(Some("Thu, 26 Nov 2026 18:15:32 GMT")));
        assert!(!tag(Some("Thu, 26 Nov 2026 18:15:33 GMT")));
        assert!(!tag(Some("Thu, 26 Nov 2026 18:15:40 GMT")), "a clock that is ahead");
    }

    #[test]
    fn the_date_of_a_server_is_read() {
        let seconds = |text| Some(http_date(text)?.duration_since(UNIX_EPOCH).unwrap().as_secs());
        assert_eq!(seconds("Thu, 26 Nov 2026 18:15:33 GMT"), Some(1_795_716_933));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        for wrong in [
            "",
            "Thu, 26 Nov 2026 18:15:33",
            "Thursday, 26-Nov-26 18:15:33 GMT",
            "now",
            "Thu, 31 Feb 2026 00:00:00 GMT",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
