//! Who has signed in to the page: one-time links, and sessions with the right of whoever asked for the link.
//!
//! A session has two secrets. The cookie is out of reach for scripts; but browsers send it to every port of a host, so each
//! request also has a token in a header, which only pages of this origin know.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use axum::http::{
    HeaderMap, HeaderName, Uri,
    header::{COOKIE, HOST, ORIGIN},
};
use parking_lot::Mutex;
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{
    daemon::access::{AccessRight, Denial, SEC_FETCH_SITE},
    model::hex_digits,
};

/// The header with the token of a session. Requests with it are authorized by their session only.
const PAGE_TOKEN: HeaderName = HeaderName::from_static("x-hookyard-page");

/// How long a link may be used: a person opens it at once.
pub(super) const LINK_LIFETIME: Duration = Duration::from_mins(2);

/// How long a session lasts at most: a working day.
const SESSION_LIFETIME: Duration = Duration::from_hours(12);

/// How long a session lasts without a request and without a stream. An open page has a stream, also in a tab behind others,
/// where browsers let no page send anything for long.
const SESSION_IDLE: Duration = Duration::from_hours(1);

/// How many links of a right may be open, and how many sessions of a right there may be; the oldest of the same right make
/// room, so that who may read ends no session that may control.
const MOST: usize = 64;

/// The bytes of a secret. They cannot be guessed.
const SECRET_BYTES: usize = 32;

/// The SHA-256 of a secret: who reads the memory learns no secret, and comparing hashes gives nothing away.
type SecretHash = [u8; 32];

/// The links and sessions of a daemon.
#[derive(Default)]
pub(in crate::daemon) struct PageSessions(Mutex<Known>);

#[derive(Default)]
struct Known {
    links: VecDeque<OpenLink>,
    sessions: VecDeque<PageSession>,
}

/// A link that nobody has used yet.
struct OpenLink {
    code: SecretHash,
    right: AccessRight,
    made: Instant,
}

struct PageSession {
    cookie: SecretHash,
    token: SecretHash,
    right: AccessRight,
    /// The host that the page was loaded from, with its port.
    host: String,
    began: Instant,
    used: Arc<Mutex<LastUse>>,
    ended: CancellationToken,
}

/// When a session was used last.
#[derive(Debug)]
struct LastUse {
    seen: Instant,
    /// The open streams, which use it all the time.
    streams: usize,
}

/// An open stream of a session, which is not idle while this is there.
#[derive(Debug)]
pub(in crate::daemon) struct SessionStream {
    used: Arc<Mutex<LastUse>>,
    latest: Instant,
    ended: CancellationToken,
}

/// A new link.
#[derive(Debug)]
pub(in crate::daemon) struct PageLink {
    /// The secret that signs in once.
    pub(in crate::daemon) code: String,
    pub(in crate::daemon) lifetime: Duration,
}

/// A new session: what its browser keeps.
pub(in crate::daemon) struct SignIn {
    /// The value of the header `Set-Cookie`.
    pub(in crate::daemon) set_cookie: String,
    pub(in crate::daemon) token: String,
    pub(in crate::daemon) right: AccessRight,
    pub(in crate::daemon) lifetime: Duration,
}

/// Why there is no link or no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::daemon) enum SignInError {
    #[error("the link was used before, or has expired")]
    BadLink,
    #[error("the request does not come from the page")]
    NoOrigin,
    #[error("the request comes from another web page")]
    OtherOrigin,
    #[error("this machine gives no random numbers")]
    NoRandom,
}

impl PageSessions {
    /// Whether a request is to be authorized by its session.
    pub(in crate::daemon) fn are_meant(headers: &HeaderMap) -> bool {
        headers.contains_key(PAGE_TOKEN)
    }

    /// Makes a link that signs in once, with this right.
    pub(in crate::daemon) fn link(&self, right: AccessRight) -> Result<PageLink, SignInError> {
        let code = secret()?;
        let mut known = self.0.lock();
        known.forget_expired();
        make_room(&mut known.links, right, |link| link.right);
        known.links.push_back(OpenLink { code: hash(&code), right, made: Instant::now() });
        Ok(PageLink { code, lifetime: LINK_LIFETIME })
    }

    /// Signs the page in that this request comes from.
    ///
    /// Returns an error if the code is of no open link, or the request of another page.
    pub(in crate::daemon) fn sign_in(
        &self,
        code: &str,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<SignIn, SignInError> {
        let host = request_host(uri, headers).ok_or(SignInError::NoOrigin)?;
        let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
        let origin = origin.ok_or(SignInError::NoOrigin)?;
        if !is_same_site(headers) || !is_origin_of(origin, host) {
            return Err(SignInError::OtherOrigin);
        }
        let (cookie, token) = (secret()?, secret()?);
        let code = hash(code);
        let mut known = self.0.lock();
        known.forget_expired();
        let place = known.links.iter().position(|link| link.code == code).ok_or(SignInError::BadLink)?;
        let link = known.links.remove(place).ok_or(SignInError::BadLink)?;
        if let Some(oldest) = make_room(&mut known.sessions, link.right, |session| session.right) {
            oldest.ended.cancel();
        }
        let now = Instant::now();
        known.sessions.push_back(PageSession {
            cookie: hash(&cookie),
            token: hash(&token),
            right: link.right,
            host: host.to_owned(),
            began: now,
            used: Arc::new(Mutex::new(LastUse { seen: now, streams: 0 })),
            ended: CancellationToken::new(),
        });
        // Over TLS, the browser keeps the cookie to this host and off plain connections.
        let secure = if origin.starts_with("https://") { "; Secure" } else { "" };
        let name = cookie_name(origin, host);
        let set_cookie = format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Strict{secure}");
        Ok(SignIn { set_cookie, token, right: link.right, lifetime: SESSION_LIFETIME })
    }

    /// Authorizes a request of the page.
    pub(in crate::daemon) fn authorize(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        right: AccessRight,
    ) -> Result<(), Denial> {
        let granted = self.with_session(uri, headers, |session| {
            session.used.lock().seen = Instant::now();
            session.right
        });
        match granted {
            None => Err(Denial::SignedOut),
            Some(granted) if right > granted => Err(Denial::ReadOnlySession),
            Some(_) => Ok(()),
        }
    }

    /// The right of the session of a request, and how long it lasts at most.
    pub(in crate::daemon) fn granted(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<(AccessRight, Duration)> {
        self.with_session(uri, headers, |session| {
            (session.right, SESSION_LIFETIME.saturating_sub(session.began.elapsed()))
        })
    }

    /// Opens a stream of the session of a request.
    pub(in crate::daemon) fn stream(&self, uri: &Uri, headers: &HeaderMap) -> Option<SessionStream> {
        self.with_session(uri, headers, |session| {
            session.used.lock().streams += 1;
            let latest = session.began + SESSION_LIFETIME;
            SessionStream { used: Arc::clone(&session.used), latest, ended: session.ended.clone() }
        })
    }

    /// Ends the session of a request. Returns whether it had one.
    pub(in crate::daemon) fn sign_out(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let ended = self.with_session(uri, headers, |session| session.ended.clone());
        if let Some(ended) = &ended {
            ended.cancel();
        }
        self.0.lock().forget_expired();
        ended.is_some()
    }

    /// Ends all sessions, and forgets all links.
    pub(in crate::daemon) fn end_all(&self) {
        let mut known = self.0.lock();
        known.sessions.iter().for_each(|session| session.ended.cancel());
        known.links.clear();
        known.forget_expired();
    }

    fn with_session<T>(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        read: impl FnOnce(&PageSession) -> T,
    ) -> Option<T> {
        let host = request_host(uri, headers)?;
        let token = hash(headers.get(PAGE_TOKEN)?.to_str().ok()?);
        let of_page = headers
            .get(ORIGIN)
            .is_none_or(|origin| origin.to_str().is_ok_and(|origin| is_origin_of(origin, host)));
        if !of_page || !is_same_site(headers) {
            return None;
        }
        let mut known = self.0.lock();
        known.forget_expired();
        let session = known.sessions.iter().find(|session| session.token == token)?;
        let has_cookie = cookies(headers).any(|value| hash(value) == session.cookie);
        (has_cookie && session.host == host).then(|| read(session))
    }
}

impl Known {
    fn forget_expired(&mut self) {
        self.links.retain(|link| link.made.elapsed() < LINK_LIFETIME);
        self.sessions.retain(|session| {
            let lasts = session.began.elapsed() < SESSION_LIFETIME && !session.used.lock().is_idle();
            if !lasts {
                session.ended.cancel();
            }
            !session.ended.is_cancelled()
        });
    }
}

impl LastUse {
    fn is_idle(&self) -> bool {
        self.streams == 0 && self.seen.elapsed() >= SESSION_IDLE
    }
}

impl SessionStream {
    /// Returns when its session has ended. Nobody has to ask for anything for that: a session with a stream is never idle,
    /// so all that ends it unasked is its lifetime.
    pub(in crate::daemon) async fn ended(&self) {
        tokio::select! {
            () = self.ended.cancelled() => {}
            () = sleep_until(self.latest) => {}
        }
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        let mut used = self.used.lock();
        used.streams -= 1;
        used.seen = Instant::now();
    }
}

impl fmt::Debug for PageSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock();
        write!(f, "PageSessions({} links, {} sessions)", known.links.len(), known.sessions.len())
    }
}

/// Takes the oldest of a right away if there are as many as there may be.
fn make_room<T>(
    known: &mut VecDeque<T>,
    right: AccessRight,
    right_of: impl Fn(&T) -> AccessRight,
) -> Option<T> {
    let places = known.iter().enumerate().filter(|(_, one)| right_of(one) == right);
    let mut places = places.map(|(place, _)| place);
    let oldest = places.next()?;
    // With the oldest itself.
    if places.count() + 1 >= MOST { known.remove(oldest) } else { None }
}

/// The host that a request was sent to, with its port. HTTP/2 sends it in `:authority`.
fn request_host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let of_uri = uri.authority().map(axum::http::uri::Authority::as_str);
    of_uri.or_else(|| headers.get(HOST)?.to_str().ok())
}

/// Whether the browser says that the request comes from a page of the same origin. Old ones say nothing.
fn is_same_site(headers: &HeaderMap) -> bool {
    headers.get(SEC_FETCH_SITE).is_none_or(|site| site == "same-origin")
}

fn is_origin_of(origin: &str, host: &str) -> bool {
    let of_origin = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    of_origin.is_some_and(|of_origin| of_origin.eq_ignore_ascii_case(host))
}

/// Has the port in it, because a browser has the cookies of a host for all its ports.
fn cookie_name(origin: &str, host: &str) -> String {
    if origin.starts_with("https://") {
        return "__Host-hookyard".to_owned();
    }
    let port = host.rsplit_once(':').map_or("80", |(_, port)| port);
    let digits: String = port.chars().filter(char::is_ascii_digit).collect();
    format!("hookyard_{digits}")
}

/// The values of the cookies that may be of a session.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let own = pairs.filter(|(name, _)| name.starts_with("hookyard_") || *name == "__Host-hookyard");
    own.map(|(_, value)| value).take(MOST)
}

fn secret() -> Result<String, SignInError> {
    let mut bytes = [0; SECRET_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SignInError::NoRandom)?;
    Ok(hex_digits(&bytes))
}

fn hash(secret: &str) -> SecretHash {
    digest(&SHA256, secret.as_bytes()).as_ref().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        pairs.collect()
    }

    const PAGE: [(&str, &str); 2] = [("host", "127.0.0.1:8787"), ("origin", "http://127.0.0.1:8787")];

    /// The headers of a request of a page that has signed in.
    fn signed_in(sessions: &PageSessions, right: AccessRight) -> HeaderMap {
        let code = sessions.link(right).unwrap().code;
        let sign_in = sessions.sign_in(&code, &Uri::default(), &headers(&PAGE)).unwrap();
        let cookie = sign_in.set_cookie.split(';').next().unwrap().to_owned();
        headers(&[PAGE[0], PAGE[1], ("cookie", &cookie), ("x-hookyard-page", &sign_in.token)])
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_signs_in_once_and_for_a_short_time() {
        let sessions = PageSessions::default();
        let code = sessions.link(AccessRight::Read).unwrap().code;
        let sign_in = |code: &str| sessions.sign_in(code, &Uri::default(), &headers(&PAGE)).map(|_| ());
        assert_eq!(sign_in("guessed"), Err(SignInError::BadLink));
        assert_eq!(sign_in(&code), Ok(()));
        assert_eq!(sign_in(&code), Err(SignInError::BadLink));
        let late = sessions.link(AccessRight::Read).unwrap().code;
        tokio::time::advance(LINK_LIFETIME).await;
        assert_eq!(sign_in(&late), Err(SignInError::BadLink));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_has_the_right_of_its_link_until_it_ends() {
        let sessions = PageSessions::default();
        let reader = signed_in(&sessions, AccessRight::Read);
        let may = |headers: &HeaderMap, right| sessions.authorize(&Uri::default(), headers, right);
        assert_eq!(may(&reader, AccessRight::Read), Ok(()));
        assert_eq!(may(&reader, AccessRight::Control), Err(Denial::ReadOnlySession));
        let controller = signed_in(&sessions, AccessRight::Control);
        assert_eq!(may(&controller, AccessRight::Control), Ok(()));
        let stream = sessions.stream(&Uri::default(), &reader).unwrap();
        assert!(sessions.sign_out(&Uri::default(), &reader));
        stream.ended().await;
        assert_eq!(may(&reader, AccessRight::Read), Err(Denial::SignedOut));
        tokio::time::advance(SESSION_IDLE).await;
        assert_eq!(may(&controller, AccessRight::Read), Err(Denial::SignedOut));
        let replaced = signed_in(&sessions, AccessRight::Read);
        sessions.end_all();
        assert_eq!(may(&replaced, AccessRight::Read), Err(Denial::SignedOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_session_ends_after_a_working_day() {
        let sessions = PageSessions::default();
        let reader = signed_in(&sessions, AccessRight::Read);
        let may = || sessions.authorize(&Uri::default(), &reader, AccessRight::Read);
        for _ in 0..23 {
            tokio::time::advance(SESSION_IDLE / 2).await;
            assert_eq!(may(), Ok(()));
        }
        tokio::time::advance(SESSION_IDLE / 2).await;
        assert_eq!(may(), Err(Denial::SignedOut));
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_stream_uses_its_session_and_ends_after_a_working_day() {
        let sessions = PageSessions::default();
        let reader = signed_in(&sessions, AccessRight::Read);
        let began = Instant::now();
        let lasts = || sessions.granted(&Uri::default(), &reader).is_some();
        let stream = sessions.stream(&Uri::default(), &reader).unwrap();
        tokio::time::advance(SESSION_IDLE * 3).await;
        assert!(lasts(), "a page in a tab behind others");
        drop(stream);
        tokio::time::advance(SESSION_IDLE / 2).await;
        assert!(lasts(), "idle since the stream was closed");
        let stream = sessions.stream(&Uri::default(), &reader).unwrap();
        stream.ended().await;
        assert_eq!(began.elapsed(), SESSION_LIFETIME);
        assert!(!lasts());
        let reader = signed_in(&sessions, AccessRight::Read);
        drop(sessions.stream(&Uri::default(), &reader));
        tokio::time::advance(SESSION_IDLE).await;
        assert!(sessions.granted(&Uri::default(), &reader).is_none(), "a page that was closed");
    }

    #[test]
    fn many_that_may_read_end_nothing_that_may_control() {
        let sessions = PageSessions::default();
        let controller = signed_in(&sessions, AccessRight::Control);
        let first_reader = signed_in(&sessions, AccessRight::Read);
        let control_link = sessions.link(AccessRight::Control).unwrap().code;
        let lasts = |headers: &HeaderMap| sessions.granted(&Uri::default(), headers).is_some();
        for _ in 1..MOST {
            signed_in(&sessions, AccessRight::Read);
        }
        assert!(lasts(&controller) && lasts(&first_reader));
        signed_in(&sessions, AccessRight::Read);
        assert!(lasts(&controller) && !lasts(&first_reader), "the oldest reader makes room");
        for _ in 0..=MOST {
            sessions.link(AccessRight::Read).unwrap();
        }
        assert!(sessions.sign_in(&control_link, &Uri::default(), &headers(&PAGE)).is_ok());
        assert!(lasts(&controller));
        for _ in 0..MOST {
            signed_in(&sessions, AccessRight::Control);
        }
        assert!(!lasts(&controller), "controllers make room for controllers");
    }

    #[test]
    fn a_request_needs_the_cookie_the_token_and_the_page() {
        let sessions = PageSessions::default();
        let good = signed_in(&sessions, AccessRight::Control);
        let may = |headers: &HeaderMap| sessions.authorize(&Uri::default(), headers, AccessRight::Read);
        assert_eq!(may(&good), Ok(()));
        let other = signed_in(&sessions, AccessRight::Control);
        let differences: [(&str, Option<&str>); 8] = [
            ("cookie", None),
            ("cookie", Some("hookyard_8787=0")),
            ("cookie", other["cookie"].to_str().ok()),
            ("x-hookyard-page", Some("0")),
            ("host", Some("127.0.0.1:8788")),
            ("origin", Some("http://evil.example")),
            ("origin", Some("null")),
            ("sec-fetch-site", Some("cross-site")),
        ];
        for (name, value) in differences {
            let mut changed = good.clone();
            match value {
                Some(value) => {
                    changed.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
                }
                None => {
                    changed.remove(name);
                }
            }
            assert_eq!(may(&changed), Err(Denial::SignedOut), "{name}: {value:?}");
        }
    }

    #[test]
    fn over_tls_the_cookie_stays_with_its_host() {
        let sessions = PageSessions::default();
        let code = sessions.link(AccessRight::Read).unwrap().code;
        let page = headers(&[("host", "hooks.example.com"), ("origin", "https://hooks.example.com")]);
        let sign_in = sessions.sign_in(&code, &Uri::default(), &page).unwrap();
        assert!(sign_in.set_cookie.starts_with("__Host-hookyard="), "{}", sign_in.set_cookie);
        assert!(sign_in.set_cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"));
    }
}
