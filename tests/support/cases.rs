//! Reads the cases in `tests/cases`, compares them with what is, and rewrites them if `UPDATE_CASES` is set.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::support::yaml;

/// The files of a case by their paths.
pub(crate) type Files = BTreeMap<String, Content>;

/// What a file of a case contains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    /// Bytes that are no UTF-8, with the escapes `\xNN`, `\n` and `\\`.
    Escaped {
        escaped: String,
    },
}

impl Content {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Escaped { escaped } => unescape(escaped),
        }
    }
}

fn unescape(escaped: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = escaped;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        if first != '\\' {
            bytes.extend(first.to_string().bytes());
            continue;
        }
        let length = if rest.starts_with('x') { 3 } else { 1 };
        match &rest[..length] {
            "n" => bytes.push(b'\n'),
            "\\" => bytes.push(b'\\'),
            byte => bytes.push(u8::from_str_radix(&byte[1..], 16).expect("two hexadecimal digits")),
        }
        rest = &rest[length..];
    }
    bytes
}

/// Writes the files of a case below a folder. A file that begins with `#!` can be executed.
pub(crate) fn write_files(files: &Files, root: &Path) {
    for (path, content) in files {
        let path = root.join(path);
        let bytes = content.bytes();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &bytes).unwrap();
        if bytes.starts_with(b"#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

/// One file of cases.
pub(crate) struct CaseFile<C> {
    path: PathBuf,
    pub(crate) cases: Vec<C>,
}

/// The files of cases in a folder of `tests/cases`, in order of their names.
pub(crate) fn case_files<C: DeserializeOwned>(folder: &str) -> Vec<CaseFile<C>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut names = BTreeSet::new();
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            for case in documents::<Header>(&path, &text) {
                assert!(
                    case.about.ends_with('.'),
                    "{}: `about` of {} is no sentence",
                    path.display(),
                    case.name
                );
                assert!(names.insert(case.name.clone()), "{}: another case {}", path.display(), case.name);
            }
            let cases = documents(&path, &text);
            CaseFile { path, cases }
        })
        .collect()
}

/// What every case has.
#[derive(Deserialize)]
struct Header {
    name: String,
    about: String,
}

fn documents<C: DeserializeOwned>(path: &Path, text: &str) -> Vec<C> {
    let documents = serde_yaml::Deserializer::from_str(text);
    let read = |document| C::deserialize(document).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    documents.map(read).collect()
}

/// Collects the cases that do not hold.
#[derive(Default)]
pub(crate) struct Comparison {
    cases: usize,
    wrong: Vec<String>,
}

impl Comparison {
    /// Compares the cases of a file with the same cases as computed now, or writes the latter.
    pub(crate) fn compare<C: Serialize>(&mut self, file: &CaseFile<C>, computed: &[C]) {
        self.cases += file.cases.len();
        if std::env::var_os("UPDATE_CASES").is_some() {
            let text: String = computed.iter().map(yaml::document).collect();
            return fs::write(&file.path, text).unwrap();
        }
        for (expected, computed) in file.cases.iter().zip(computed) {
            let [expected, computed] = [expected, computed].map(|case| serde_json::to_value(case).unwrap());
            if expected != computed {
                self.wrong.push(difference(&file.path, &expected, &computed));
            }
        }
    }

    /// Fails if a case did not hold, or if there were fewer cases than expected.
    pub(crate) fn finish(self, at_least: usize) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        assert!(self.cases >= at_least, "only {} cases", self.cases);
    }
}

/// The keys in which a case differs.
fn difference(path: &Path, expected: &Value, computed: &Value) -> String {
    let keys: BTreeSet<&String> = [expected, computed]
        .iter()
        .filter_map(|case| case.as_object())
        .flat_map(|case| case.keys())
        .collect();
    let mut text = format!("{}: {}\n", path.display(), expected["name"]);
    for key in keys.into_iter().filter(|key| expected[*key] != computed[*key]) {
        let _ = writeln!(text, "expected {key}: {:#}\nbut it is: {:#}", expected[key], computed[key]);
    }
    text
}
