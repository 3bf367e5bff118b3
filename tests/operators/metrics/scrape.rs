//! Reads the text format of Prometheus, as far as the tests need it.

use std::collections::{BTreeMap, BTreeSet};

use hookyard::daemon::ClientResponse;

/// The labels of a series, in their order.
type Labels = Vec<(String, String)>;

/// One scrape.
pub(crate) struct Scrape {
    pub(crate) help: BTreeMap<String, String>,
    pub(crate) types: BTreeMap<String, String>,
    samples: Vec<(String, Labels, f64)>,
}

impl Scrape {
    pub(crate) fn read(answer: &ClientResponse) -> Self {
        assert_eq!(answer.status, 200);
        let text = std::str::from_utf8(&answer.body).expect("text");
        let mut scrape = Self { help: BTreeMap::new(), types: BTreeMap::new(), samples: Vec::new() };
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some((name, rest)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
                assert!(scrape.help.insert(name.to_owned(), rest.to_owned()).is_none(), "{line}");
            } else if let Some((name, rest)) =
                line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
            {
                assert!(scrape.types.insert(name.to_owned(), rest.to_owned()).is_none(), "{line}");
            } else {
                scrape.samples.push(sample(line));
            }
        }
        let distinct: BTreeSet<_> =
            scrape.samples.iter().map(|(name, labels, _)| (name.clone(), labels.clone())).collect();
        assert_eq!(distinct.len(), scrape.samples.len(), "a series is there twice");
        scrape
    }

    /// How many series there are.
    pub(crate) fn series(&self) -> usize {
        self.samples.len()
    }

    /// The value of the one series of a name with these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let found: Vec<_> = self.matching(name, labels).collect();
        assert_eq!(found.len(), 1, "{name} {labels:?}");
        found[0]
    }

    /// The sum of all series of a name with these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(name, labels).sum()
    }

    fn matching(&self, name: &str, labels: &[(&str, &str)]) -> impl Iterator<Item = f64> {
        let has =
            |own: &Labels| labels.iter().all(|(key, value)| own.iter().any(|(k, v)| k == key && v == value));
        let matching = self.samples.iter().filter(move |(own, own_labels, _)| own == name && has(own_labels));
        matching.map(|(.., value)| *value).collect::<Vec<_>>().into_iter()
    }

    /// Whether a metric has a sample.
    pub(crate) fn has(&self, metric: &str) -> bool {
        self.of(metric).next().is_some()
    }

    /// The sets of labels' names that a metric's series have.
    pub(crate) fn labels(&self, metric: &str) -> BTreeSet<Vec<String>> {
        self.of(metric).map(|labels| labels.iter().map(|(key, _)| key.clone()).collect()).collect()
    }

    /// The values of a label, over all series.
    pub(crate) fn values(&self, label: &str) -> BTreeSet<&str> {
        let labels = self.samples.iter().flat_map(|(_, labels, _)| labels);
        labels.filter(|(key, _)| key == label).map(|(_, value)| value.as_str()).collect()
    }

    fn of(&self, metric: &str) -> impl Iterator<Item = &Labels> {
        let is_of = move |name: &str| match name.strip_prefix(metric) {
            Some("") => true,
            Some("_bucket" | "_sum" | "_count") => {
                self.types.get(metric).is_some_and(|kind| kind == "histogram")
            }
            _ => false,
        };
        self.samples.iter().filter(move |(name, ..)| is_of(name)).map(|(_, labels, _)| labels)
    }

    /// What was counted and is not zero, as sorted lines: counters, and how many observations histograms have. How
    /// often the daemon was asked is left out, and how many writes its state took: that depends on their moments.
    pub(crate) fn counts(&self) -> Vec<String> {
        let counts = |name: &str| {
            name.starts_with("hookyard_")
                && !name.contains("_api_requests_")
                && !name.contains("_store_write_")
                && (name.ends_with("_total") || name.ends_with("_count"))
        };
        let line = |(name, labels, value): &(String, Labels, f64)| {
            let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("{} {} {value}", name.trim_start_matches("hookyard_"), labels.join(","))
        };
        let counted = self.samples.iter().filter(|(name, _, value)| counts(name) && *value != 0.0);
        let mut lines: Vec<_> = counted.map(line).collect();
        lines.sort();
        lines
    }
}

fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').expect("the end of the labels");
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    assert!(is_name(name), "{line}");
    let labels = labels.split("\",").filter(|label| !label.is_empty()).map(|label| {
        let (key, value) = label.split_once("=\"").expect("a label");
        assert!(is_name(key), "{line}");
        (key.to_owned(), value.trim_end_matches('"').to_owned())
    });
    (name.to_owned(), labels.collect(), value.parse().expect("a number"))
}
