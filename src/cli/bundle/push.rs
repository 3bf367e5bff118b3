//! `bundle push`: publish a signed bundle, the archive first and what names it last.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use clap::Args;
use reqwest::{Url, header::AUTHORIZATION};
use tokio::time::timeout;

use super::{
    super::{
        escape,
        exit::{CliError, CliResult, Exit},
        paths::display_path,
        screen::Screen,
    },
    signed_file::{BundleOnDisk, bytes_of, replace_file},
};
use crate::{
    bundle::{BundleTime, MAX_STATEMENT, SignedStatement, check_time, check_version},
    config,
    handler::http_client::HttpClients,
    model::{Address, Approval},
};

/// The longest time that one upload may take.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(5);

const FOOTER: &str = "\
Examples:
  hookyard bundle push guards-412.tar.gz /srv/www/hooks/guards.bundle
  hookyard bundle push guards-412.tar.gz https://hooks.example.com/guards.bundle --token-file token

The archive is put beside TO, under its digest; then TO is replaced, which machines ask for at each poll. Archives of \
former versions stay.";

/// Publish a signed bundle
///
/// Puts it into a directory, or sends it to a server with HTTP PUT. Machines see the former version or this one.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct PushAction {
    /// Archive, with its signature beside it
    #[arg(value_name = "ARCHIVE")]
    archive: PathBuf,

    /// Where machines ask for it: the path of a file, or the URL that `bundle.url` has
    #[arg(value_name = "TO")]
    to: String,

    /// File with the bearer token for the server; its mode must be 0600
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl PushAction {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let found = BundleOnDisk::read(&self.archive)?;
        let signed = found.signed(&self.archive)?;
        let name = signed.statement.archive_name();
        let pointer = signed.write();
        if self.to.contains("://") {
            let token = self.token()?;
            let url = upload_url(&self.to)?;
            let archive = url.join(&name).map_err(|error| wrong_url(&self.to, &error.to_string()))?;
            let client = HttpClients::new(1).of_url(&Approval::of_settings(), &url).await;
            let client = client.map_err(|error| CliError::new(format!("there is no client: {error}")))?;
            put(&client, archive, found.archive.clone(), token.as_deref()).await?;
            put(&client, url, pointer.into_bytes(), token.as_deref()).await?;
        } else {
            let to = Path::new(&self.to);
            if to.is_dir() {
                return Err(CliError::with_help(
                    format!("{} is a directory", display_path(to)),
                    "name the file that machines ask for, such as `guards.bundle` in it",
                ));
            }
            replace_file(&to.with_file_name(name), &found.archive)?;
            let former = published(to);
            replace_file(to, pointer.as_bytes())?;
            if let Some(why) = former.and_then(|former| not_followed(&former, signed)) {
                screen.note(&format!("{why}; machines that have it do not take this one"));
            }
        }
        if let Err(refusal) = check_time(&signed.statement, BundleTime::of(SystemTime::now())) {
            screen.note(&format!("machines do not take it now: {}", refusal.message));
        }
        screen.print(&format!("{}: published at {}", found.title(), escape::line(&self.to)))?;
        Ok(Exit::Done)
    }

    fn token(&self) -> Result<Option<String>, CliError> {
        let Some(file) = &self.token_file else { return Ok(None) };
        let unusable = |why| CliError::new(format!("the token file {} {why}", escape::path(file)));
        config::read_sent_token(file).map(Some).map_err(unusable)
    }
}

/// What is published at a path, if that is a statement.
fn published(to: &Path) -> Option<SignedStatement> {
    SignedStatement::read(&bytes_of(to, MAX_STATEMENT).ok()?).ok()
}

/// Why machines that have the former bundle do not take this one, if they do not.
fn not_followed(former: &SignedStatement, signed: &SignedStatement) -> Option<String> {
    let former = &former.statement;
    if signed.statement == *former {
        return None;
    }
    check_version(&signed.statement, former.name.as_str(), former.version).err()?;
    Some(format!("{} {} was published there", former.name, former.version))
}

fn wrong_url(to: &str, why: &str) -> CliError {
    CliError::new(format!("`{}` cannot be used: {why}", escape::line(to)))
}

/// The URL to upload to.
///
/// Returns an error if the token and the bundle could be read on the way.
fn upload_url(to: &str) -> Result<Url, CliError> {
    let address = Address::parse(to).map_err(|error| wrong_url(to, &error.to_string()))?;
    if !address.is_safe_on_the_way() {
        return Err(wrong_url(to, "write an `https://` URL, or an `http://` one to this machine"));
    }
    Ok(address.url().clone())
}

async fn put(client: &reqwest::Client, url: Url, body: Vec<u8>, token: Option<&str>) -> Result<(), CliError> {
    let shown = escape::line(url.as_str()).into_owned();
    let request = client.put(url).body(body);
    let request = match token {
        Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
        None => request,
    };
    let failed = |why: String| CliError::new(format!("{shown} was not uploaded: {why}"));
    let sent = timeout(UPLOAD_TIMEOUT, request.send()).await;
    let sent = sent.map_err(|_| failed(format!("no answer within {UPLOAD_TIMEOUT:?}")))?;
    // Without its URL, which is said already.
    let response = sent.map_err(|error| failed(error.without_url().to_string()))?;
    if response.status().is_success() {
        return Ok(());
    }
    Err(failed(format!("the server answered {}", response.status())))
}
