//! A static web server over a directory: entity tags, uploads with a token, and a count of every byte.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash, Hasher},
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::SystemTime,
};

use httpdate_like::http_date;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::{
    ServerConfig, ServerConnection, StreamOwned, crypto::ring, pki_types::PrivateKeyDer,
};

/// A request and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: u16,
    /// The bytes of both, heads included.
    pub(crate) bytes: usize,
}

/// What it answers instead of files.
pub(crate) type Misbehaviour = Vec<u8>;

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    token: Option<String>,
    served: Mutex<Vec<Served>>,
    instead: Mutex<Option<Misbehaviour>>,
    is_down: AtomicBool,
}

/// The server. It ends with the process; `set_down` has it close every connection without a word.
#[derive(Debug)]
pub(crate) struct StaticFiles {
    /// What its URLs begin with.
    origin: String,
    shared: Arc<Shared>,
}

/// An authority that vouches for servers, and that nobody knows.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// What a server on this machine shows.
    fn server(&self) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        config.with_single_cert(vec![signed.into()], key).unwrap()
    }
}

impl StaticFiles {
    pub(crate) fn start(directory: &Path, token: Option<&str>) -> Self {
        Self::start_with(directory, token, None)
    }

    /// The same with HTTPS.
    pub(crate) fn start_encrypted(directory: &Path, authority: &Authority) -> Self {
        Self::start_with(directory, None, Some(Arc::new(authority.server())))
    }

    fn start_with(directory: &Path, token: Option<&str>, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        fs::create_dir_all(directory).unwrap();
        let shared = Arc::new(Shared {
            directory: directory.to_owned(),
            token: token.map(str::to_owned),
            served: Mutex::default(),
            instead: Mutex::default(),
            is_down: AtomicBool::new(false),
        });
        let origin = match &tls {
            None => format!("http://{address}"),
            Some(_) => format!("https://localhost:{}", address.port()),
        };
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (shared, tls) = (Arc::clone(&of_thread), tls.clone());
                thread::spawn(move || match tls {
                    None => shared.serve(connection),
                    Some(tls) => {
                        let session = ServerConnection::new(tls).unwrap();
                        shared.serve(StreamOwned::new(session, connection));
                    }
                });
            }
        });
        Self { origin, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.origin)
    }

    pub(crate) fn served(&self) -> Vec<Served> {
        self.shared.served.lock().unwrap().clone()
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Answers every request with these bytes; `None` means with files again.
    pub(crate) fn answer_instead(&self, bytes: Option<Misbehaviour>) {
        *self.shared.instead.lock().unwrap() = bytes;
    }
}

impl Shared {
    fn serve(&self, connection: impl Read + Write) {
        let mut reader = BufReader::new(connection);
        while let Some((request, size)) = Request::read(&mut reader) {
            if self.is_down.load(Ordering::SeqCst) {
                return;
            }
            let instead = self.instead.lock().unwrap().clone();
            let (status, answer) = match &instead {
                Some(bytes) => (0, bytes.clone()),
                None => self.answer(&request),
            };
            let served =
                Served { method: request.method, path: request.path, status, bytes: size + answer.len() };
            self.served.lock().unwrap().push(served);
            if reader.get_mut().write_all(&answer).and_then(|()| reader.get_mut().flush()).is_err()
                || instead.is_some()
            {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> (u16, Vec<u8>) {
        let file = self.directory.join(request.path.trim_start_matches('/'));
        let (status, tag, body) = match (request.method.as_str(), fs::read(&file)) {
            ("GET", Ok(body)) => {
                let mut hasher = DefaultHasher::new();
                body.hash(&mut hasher);
                let tag = format!("\"{:x}\"", hasher.finish());
                if request.header("if-none-match").is_some_and(|known| known == tag) {
                    (304, tag, Vec::new())
                } else {
                    (200, tag, body)
                }
            }
            ("PUT", _) if self.token.as_ref().is_some_and(|token| !request.has_token(token)) => {
                (401, String::new(), Vec::new())
            }
            ("PUT", _) => {
                fs::write(&file, &request.body).unwrap();
                (201, String::new(), Vec::new())
            }
            _ => (404, String::new(), Vec::new()),
        };
        let tag = if tag.is_empty() { tag } else { format!("etag: {tag}\r\n") };
        let date = http_date(SystemTime::now());
        let head = format!(
            "HTTP/1.1 {status} said\r\nserver: nginx/1.28.0\r\ndate: {date}\r\n{tag}cache-control: no-cache\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        (status, [head.into_bytes(), body].concat())
    }
}

struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// The next request and its size; nothing at the end of the connection.
    fn read(reader: &mut impl BufRead) -> Option<(Self, usize)> {
        let mut lines = Vec::new();
        let mut size = 0;
        loop {
            let mut line = String::new();
            let read = reader.read_line(&mut line).ok()?;
            size += read;
            match line.trim_end() {
                _ if read == 0 => return None,
                "" => break,
                text => lines.push(text.to_owned()),
            }
        }
        let mut words = lines.first()?.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let headers = lines[1..].iter().filter_map(|line| line.split_once(": "));
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        let mut request = Self { method, path, headers, body: Vec::new() };
        let length = request.header("content-length").map_or(0, |text| text.parse().unwrap());
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
        Some((request, size + length))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn has_token(&self, token: &str) -> bool {
        self.header("authorization") == Some(&format!("Bearer {token}"))
    }
}

/// Dates as servers write them.
mod httpdate_like {
    use std::time::{SystemTime, UNIX_EPOCH};

    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

    pub(super) fn http_date(time: SystemTime) -> String {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap().as_secs();
        let text = hookyard::model::Timestamp::of(time).to_string();
        let month = MONTHS[text[5..7].parse::<usize>().unwrap() - 1];
        let day = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(seconds / 86_400 % 7) as usize];
        format!("{day}, {} {month} {} {} GMT", &text[8..10], &text[..4], &text[11..19])
    }
}
