//! The server of an http hook: it decides by the rule of the other guards, and is at times slow, wrong or gone.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    time::sleep,
};

use crate::{
    random::Random,
    workspace::{FINE, FORBIDDEN, SERVER_TIMEOUT_SECONDS},
};

/// The server; it ends with its runtime.
pub(crate) struct PolicyServer {
    url: String,
    _runtime: Runtime,
}

/// What it does with a request.
#[derive(Debug, Clone, Copy)]
enum ServerBehaviour {
    Answer,
    Fail,
    InvalidJson,
    Reset,
    Late,
}

impl PolicyServer {
    pub(crate) fn start(seed: u64) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/check", listener.local_addr().unwrap());
        runtime.spawn(async move {
            let mut random = Random::new(seed);
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, random.next()));
            }
        });
        Self { url, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }
}

async fn serve(mut stream: TcpStream, seed: u64) -> std::io::Result<()> {
    let mut random = Random::new(seed);
    loop {
        let Some(body) = request(&mut stream).await? else { return Ok(()) };
        let rare = [
            ServerBehaviour::Fail,
            ServerBehaviour::InvalidJson,
            ServerBehaviour::Reset,
            ServerBehaviour::Late,
        ];
        let behaviour = if random.one_in(5) { random.pick(&rare) } else { ServerBehaviour::Answer };
        match behaviour {
            ServerBehaviour::Answer => respond(&mut stream, "200 OK", verdict(&body)).await?,
            ServerBehaviour::Fail => respond(&mut stream, "500 Internal Server Error", "{}").await?,
            ServerBehaviour::InvalidJson => respond(&mut stream, "200 OK", "no JSON").await?,
            ServerBehaviour::Reset => return stream.set_zero_linger(),
            ServerBehaviour::Late => {
                sleep(Duration::from_secs(u64::from(SERVER_TIMEOUT_SECONDS)) * 2).await;
                respond(&mut stream, "200 OK", verdict(&body)).await?;
            }
        }
    }
}

/// The same rule as that of the other guards.
fn verdict(body: &str) -> &'static str {
    if body.contains(FORBIDDEN) {
        r#"{"decision":"block","reason":"this is forbidden"}"#
    } else if body.contains(FINE) {
        "{}"
    } else {
        "no JSON"
    }
}

async fn respond(stream: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).await
}

/// The body of the next request; none at the end of the connection.
async fn request(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap_or(0)) {
                return Ok(Some(body.to_owned()));
            }
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}
