//! The files of the page, as `scripts/page build` writes them from `clients/page`.

use std::sync::LazyLock;

use axum::http::HeaderValue;
use bytes::Bytes;
use ring::digest::{SHA256, digest};

use crate::{daemon::gzip::gzip, model::hex_digits};

/// What the page may load: its own files, and nothing that a text of an event could bring in.
pub(in crate::daemon) const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);

/// A file of the page.
#[derive(Debug)]
pub(in crate::daemon) struct PageFile {
    name: &'static str,
    pub(in crate::daemon) media_type: &'static str,
    pub(in crate::daemon) bytes: &'static [u8],
    pub(in crate::daemon) packed: Bytes,
    /// The hash of the bytes, in quotes.
    pub(in crate::daemon) tag: String,
}

impl PageFile {
    fn new(name: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        let tag = format!("\"{}\"", hex_digits(digest(&SHA256, bytes).as_ref()));
        Self { name, media_type, bytes, packed: gzip(bytes).into(), tag }
    }
}

/// The file of this name; `index.html` is the page itself.
pub(in crate::daemon) fn page_file(name: &str) -> Option<&'static PageFile> {
    static FILES: LazyLock<[PageFile; 4]> = LazyLock::new(|| {
        [
            PageFile::new("index.html", "text/html; charset=utf-8", include_bytes!("assets/index.html")),
            PageFile::new("app.js", "text/javascript; charset=utf-8", include_bytes!("assets/app.js")),
            PageFile::new("app.css", "text/css; charset=utf-8", include_bytes!("assets/app.css")),
            PageFile::new("icon.svg", "image/svg+xml", include_bytes!("assets/icon.svg")),
        ]
    });
    FILES.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the page may weigh on its way to a browser, in bytes.
    const MAX_PACKED: usize = 150 << 10;

    #[test]
    fn the_page_is_light_and_has_no_script_of_its_own() {
        let names = ["index.html", "app.js", "app.css", "icon.svg"];
        let files: Vec<_> = names.iter().filter_map(|name| page_file(name)).collect();
        let packed: usize = files.iter().map(|file| file.packed.len()).sum();
        assert!(packed < MAX_PACKED && files.len() == names.len(), "{packed} bytes");
        let page = str::from_utf8(files[0].bytes).unwrap();
        assert_eq!(page.matches("<script").count(), page.matches("<script src=\"/page/").count(), "{page}");
        assert!(!page.contains("style=") && !page.contains("onload"), "{page}");
    }
}
