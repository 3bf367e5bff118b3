//! Where traces of events go, and of how many. Refuses to look at the environment, which may name the place as well.

use super::super::section::Section;
use crate::{dialect::Value, model::Address};

/// Where traces of events go, and of how many.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSettings {
    /// Where they are sent, as OTLP over HTTP; none leaves it to the standard variables.
    pub endpoint: Option<Address>,
    /// The share of events without a trace of their host's that get one, 0 to 1.
    pub sample: f64,
}

impl Default for TraceSettings {
    fn default() -> Self {
        Self { endpoint: None, sample: 1.0 }
    }
}

impl TraceSettings {
    pub(super) fn take(&mut self, traces: &mut Section<'_>) {
        traces.optional("endpoint", &mut self.endpoint, endpoint);
        traces.choice("sample", &mut self.sample, share);
    }
}

fn endpoint(value: &Value<'_>) -> Option<Address> {
    let (message, help) = match Address::parse(value.text()?) {
        Ok(address) if address.socket().is_none() => return Some(address),
        Ok(_) => ("traces are sent over `http://` and `https://` only".to_owned(), "write the whole address"),
        Err(error) => (error.to_string(), "write it such as `http://127.0.0.1:4318/v1/traces`"),
    };
    value.error("url", format!("`{}`: {message}", value.name()), help);
    None
}

fn share(value: &Value<'_>) -> Option<f64> {
    let share = value.number()?;
    if (0.0..=1.0).contains(&share) {
        return Some(share);
    }
    value.error("share", format!("`{}` is out of range", value.name()), "use 0.0 for none to 1.0 for all");
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Settings;

    #[test]
    fn all_of_it_is_read() {
        let text = "traces: { endpoint: 'http://127.0.0.1:4318/v1/traces', sample: 0.25 }";
        let traces = Settings::from_yaml(text, Path::new("x")).0.unwrap().traces;
        assert_eq!(traces.endpoint.unwrap().to_string(), "http://127.0.0.1:4318/v1/traces");
        assert!((traces.sample - 0.25).abs() < f64::EPSILON);
        let none = Settings::from_yaml("traces: { endpoint: null, sample: 1 }", Path::new("x")).0.unwrap();
        assert_eq!(none.traces, TraceSettings::default());
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (text, expected) in [
            ("traces: { endpoint: 127.0.0.1 }", "`endpoint`: only `http://` and `https://` can be asked"),
            ("traces: { endpoint: 'unix:/run/o.sock:/v1/traces' }", "`endpoint`: traces are sent over"),
            ("traces: { endpoint: 'http://me:pass@there/' }", "would be logged"),
            ("traces: { sample: 1.5 }", "`sample` is out of range"),
            ("traces: { sample: -0.1 }", "`sample` is out of range"),
            ("traces: { sample: half }", "`sample` must be a number"),
            ("traces: { smple: 1 }", "unknown key `smple`"),
        ] {
            let (settings, diagnostics) = Settings::from_yaml(text, Path::new("x"));
            let told: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
            assert!(settings.is_none() && told.len() == 1 && told[0].contains(expected), "{text}: {told:?}");
        }
    }
}
