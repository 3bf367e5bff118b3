//! Http hooks and certificates that are valid, invalid and untrusted.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::*;

/// Why a certificate does not count, if it does not.
#[derive(Debug, Clone, Copy)]
enum Certificate {
    Good,
    Expired,
    OfAnotherHost,
    SelfSigned,
}

/// An authority of nobody's but ours.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// What a server shows.
    fn show(&self, certificate: Certificate) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let host = if let Certificate::OfAnotherHost = certificate { "example.com" } else { "localhost" };
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        if let Certificate::Expired = certificate {
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let signed = match certificate {
            Certificate::SelfSigned => params.self_signed(&key),
            _ => params.signed_by(&key, &self.issuer),
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![signed.unwrap().into()], key)
            .unwrap()
    }
}

/// A server that blocks whatever it is asked: its address, and how often it was asked.
async fn server(config: ServerConfig) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            if stream.read(&mut [0; 4096]).await.is_ok_and(|length| length > 0) {
                count.fetch_add(1, Ordering::Relaxed);
                stream.write_all(&answer(BLOCK.len(), BLOCK)).await.ok();
                stream.shutdown().await.ok();
            }
        }
    });
    (format!("https://localhost:{port}/"), asked)
}

#[tokio::test]
async fn a_certificate_of_an_untrusted_authority_is_refused() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let authority = Authority::new();
    let certificates =
        [Certificate::Good, Certificate::Expired, Certificate::OfAnotherHost, Certificate::SelfSigned];
    for certificate in certificates {
        let (url, asked) = server(authority.show(certificate)).await;
        let outcome = tool_call(&url).await;
        let (end, error) = ended(&outcome);
        assert_eq!(end, Ended::Failed, "{certificate:?}");
        assert!(error.starts_with("no trusted connection to localhost:"), "{certificate:?}: {error}");
        assert!(error.contains("certificate"), "{certificate:?}: {error}");
        assert_eq!(asked.load(Ordering::Relaxed), 0, "{certificate:?}");
    }
    assert_eq!(counted(&snapshotter), [("tls".to_owned(), 4)]);
}

#[tokio::test]
async fn a_certificate_of_a_trusted_authority_is_accepted_while_it_is_valid() {
    let authority = Authority::new();
    let trust = tempfile::NamedTempFile::new().unwrap();
    fs::write(&trust, &authority.pem).unwrap();
    let cases = [
        (Certificate::Good, "block", ""),
        (Certificate::Expired, "proceed", "expired"),
        (Certificate::OfAnotherHost, "proceed", "not valid for name"),
        (Certificate::SelfSigned, "proceed", "UnknownIssuer"),
    ];
    for (certificate, verdict, error) in cases {
        let (url, asked) = server(authority.show(certificate)).await;
        let workspace = workspace(&url, &json!({}));
        let outcome = fire(&workspace, &[("SSL_CERT_FILE", trust.path().to_str().unwrap())]).await;
        assert_eq!(outcome["verdict"], verdict, "{certificate:?}: {outcome}");
        let found = outcome["hooks"][0]["error"].as_str().unwrap_or_default();
        assert!(found.contains(error), "{certificate:?}: {outcome}");
        assert_eq!(error.is_empty(), found.is_empty(), "{certificate:?}: {outcome}");
        assert_eq!(asked.load(Ordering::Relaxed), usize::from(error.is_empty()), "{certificate:?}");
    }
}
