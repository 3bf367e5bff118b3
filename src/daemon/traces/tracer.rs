//! Decides which events are traced, and queues their spans for the exporter.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::mpsc::{self, Sender},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    exporter::SpanExporter,
    span::{self, IdGenerator, SpanScope, TraceSpan},
};
use crate::{
    FinishedEvent, OutcomeObserver,
    config::TraceSettings,
    model::{Address, Event, EventSpan, Sampling, TraceParent},
    telemetry::RecordsLost,
};

/// The queue size in spans: a few MiB, which bridges a minute without a collector at a hundred spans a second.
const QUEUE_SPANS: usize = 8192;

/// The longest time that a shutdown waits for exports.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The standard variable with the endpoint for traces.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

/// The standard variable with the endpoint for all signals.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The standard variables by which a protocol is chosen, the more specific one first.
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];

/// The protocol that hookyard does not speak. For the others, collectors take JSON where they take Protocol Buffers.
const GRPC: &str = "grpc";

/// The standard variable that turns OpenTelemetry off if it is `true`.
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// The standard variable with the names of exporters for traces.
const EXPORTERS: &str = "OTEL_TRACES_EXPORTER";

/// Creates the spans of events and queues them when the events end.
#[derive(Debug)]
pub(in crate::daemon) struct Tracer {
    ids: IdGenerator,
    /// The share of events without a traceparent that are sampled.
    sample_ratio: f64,
    queue: Sender<TraceSpan>,
    /// The number of spans in the queue or in a request.
    waiting: Arc<AtomicUsize>,
    closing: CancellationToken,
    export: Mutex<Option<JoinHandle<()>>>,
}

impl Tracer {
    /// Starts the exporter if an endpoint is configured: in the settings, or else in the standard variables, which
    /// `environment` looks up. The endpoint is not contacted before the first spans are sent.
    pub(in crate::daemon) fn start(
        settings: &TraceSettings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Arc<Self>> {
        let endpoint = settings.endpoint.clone().or_else(|| endpoint_of_variables(environment))?;
        let (queue, spans) = mpsc::channel(QUEUE_SPANS);
        let (waiting, closing) = (Arc::<AtomicUsize>::default(), CancellationToken::new());
        let export = SpanExporter::new(endpoint, spans, Arc::clone(&waiting), closing.clone());
        Some(Arc::new(Self {
            ids: IdGenerator::default(),
            sample_ratio: settings.sample,
            queue,
            waiting,
            closing,
            export: Mutex::new(Some(tokio::spawn(export.run()))),
        }))
    }

    /// Gives a new event its span, whose id hooks receive from here on. If its host sent a traceparent that is not
    /// sampled, hooks receive that one.
    pub(in crate::daemon) fn begin(&self, event: &mut Event) {
        let started = Instant::now().into_std();
        let (trace, parent) = match event.trace {
            Some(host) if host.sampling() == Sampling::Dropped => return,
            Some(host) => (host.with_span(self.ids.span()), Some(host.span())),
            None => {
                let trace = self.ids.trace();
                (TraceParent::new(trace, self.ids.span(), span::sampling(trace, self.sample_ratio)), None)
            }
        };
        event.trace = Some(trace);
        event.span = (trace.sampling() == Sampling::Kept).then_some(EventSpan { parent, started });
    }

    /// Accepts no more spans, and exports the queued ones within a short deadline.
    pub(in crate::daemon) async fn close(&self) {
        self.closing.cancel();
        let Some(mut export) = self.export.lock().take() else {
            return;
        };
        if timeout(CLOSE_TIMEOUT, &mut export).await.is_err() {
            export.abort();
            let spans = self.waiting.load(Ordering::Relaxed);
            RecordsLost::SpanExport.emit(spans as u64);
            tracing::warn!(spans, "spans are lost: they could not be exported before the end");
        }
    }

    /// Queues the spans of an event, all or none: an incomplete trace misleads.
    fn keep(&self, finished: FinishedEvent, scope: SpanScope) {
        if finished.event.span.is_none() {
            return;
        }
        let spans = span::of(finished, scope, &self.ids, Instant::now().into_std());
        let count = spans.len();
        // Counted before they are in the queue: the exporter subtracts them.
        self.waiting.fetch_add(count, Ordering::Relaxed);
        if let Ok(places) = self.queue.try_reserve_many(count) {
            places.zip(spans).for_each(|(place, span)| place.send(span));
        } else {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            RecordsLost::SpanQueue.emit(count as u64);
        }
    }
}

impl OutcomeObserver for Tracer {
    fn event_finished(&self, finished: FinishedEvent) {
        self.keep(finished, SpanScope::Answered);
    }

    fn background_hooks_finished(&self, finished: FinishedEvent) {
        self.keep(finished, SpanScope::Background);
    }

    fn event_abandoned(&self, finished: FinishedEvent) {
        self.keep(finished, SpanScope::GivenUp);
    }
}

/// The endpoint in the standard variables. An empty variable counts as unset, as in the standard. What cannot be used is
/// ignored with a warning: the variables may be meant for other programs, and hooks are more than their traces.
fn endpoint_of_variables(environment: &dyn Fn(&str) -> Option<String>) -> Option<Address> {
    let variable = |name| environment(name).filter(|value| !value.is_empty());
    let is_disabled = variable(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let is_elsewhere =
        variable(EXPORTERS).is_some_and(|names| !names.split(',').any(|name| name.trim() == "otlp"));
    if is_disabled || is_elsewhere {
        return None;
    }
    let (name, address) = match (variable(TRACES_ENDPOINT), variable(ENDPOINT)) {
        (Some(whole), _) => (TRACES_ENDPOINT, whole),
        (None, Some(base)) => (ENDPOINT, format!("{}/v1/traces", base.trim_end_matches('/'))),
        (None, None) => return None,
    };
    if PROTOCOLS.into_iter().find_map(variable).is_some_and(|protocol| protocol == GRPC) {
        tracing::warn!(
            variable = name,
            "no traces: the variables ask for gRPC, and hookyard sends OTLP over HTTP"
        );
        return None;
    }
    match Address::parse(&address) {
        Ok(address) => Some(address),
        Err(error) => {
            tracing::warn!(variable = name, %error, "no traces: the environment variable is not an address for them");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::SystemTime};

    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;
    use crate::{
        RunRef,
        model::{EventKind, Outcome, RunId, SessionId, WorkspaceId},
    };

    fn place(variables: &[(&str, &str)]) -> Option<String> {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        endpoint_of_variables(&environment).map(|address| address.to_string())
    }

    fn finished(tracer: &Tracer) -> FinishedEvent {
        let (session, run) = (SessionId::new("s").unwrap(), RunId::new("r").unwrap());
        let mut event = Event::new(EventKind::BeforeToolDispatch, session.clone(), run.clone());
        tracer.begin(&mut event);
        let workspace_id = WorkspaceId::new("shop").unwrap();
        FinishedEvent {
            run: Arc::new(RunRef { workspace_id, session_id: session, run_id: run }),
            outcome: Arc::new(Outcome::proceed(crate::run::next_decision_id(), event.kind, 1)),
            event: Arc::new(event),
            at: SystemTime::now(),
            redactor: crate::model::Redactor::default(),
            former_changes: None,
        }
    }

    fn settings(endpoint: &str, sample: f64) -> TraceSettings {
        TraceSettings { endpoint: Some(Address::parse(endpoint).unwrap()), sample }
    }

    fn dropped(reasons: &DebuggingRecorder) -> BTreeMap<String, u64> {
        let snapshot = reasons.snapshotter().snapshot().into_vec();
        let counted = snapshot.into_iter().map(|(key, _, _, value)| {
            let reason = key.key().labels().next().unwrap().value().to_owned();
            (reason, if let DebugValue::Counter(count) = value { count } else { 0 })
        });
        counted.collect()
    }

    #[tokio::test]
    async fn what_finds_no_place_is_dropped_and_counted_at_once() {
        let recorder = DebuggingRecorder::new();
        metrics::with_local_recorder(&recorder, || {
            // The exporter is a task of this thread, so it takes nothing in the meantime.
            let tracer = Tracer::start(&settings("http://127.0.0.1:9", 1.0), &|_| None).unwrap();
            for _ in 0..QUEUE_SPANS + 100 {
                tracer.event_finished(finished(&tracer));
            }
            assert_eq!(tracer.waiting.load(Ordering::Relaxed), QUEUE_SPANS);
        });
        assert_eq!(dropped(&recorder), [("queue".to_owned(), 100)].into());
    }

    #[tokio::test(start_paused = true)]
    async fn a_collector_that_takes_nothing_does_not_keep_the_end() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", silent.local_addr().unwrap());
        let tracer = Tracer::start(&settings(&endpoint, 1.0), &|_| None).unwrap();
        tracer.event_finished(finished(&tracer));
        let begun = Instant::now();
        tracer.close().await;
        assert!(begun.elapsed() <= CLOSE_TIMEOUT + Duration::from_millis(10), "{:?}", begun.elapsed());
        tracer.event_finished(finished(&tracer));
        tracer.close().await;
    }

    #[tokio::test]
    async fn hosts_decide_for_their_traces_and_the_share_for_the_rest() {
        let tracer = |share| Tracer::start(&settings("http://127.0.0.1:9", share), &|_| None).unwrap();
        let begin = |sample_ratio, trace: Option<&str>| {
            let (session, run) = (SessionId::new("s").unwrap(), RunId::new("r").unwrap());
            let mut event = Event::new(EventKind::Notification, session, run);
            event.trace = trace.map(|trace| trace.parse().unwrap());
            tracer(sample_ratio).begin(&mut event);
            (event.trace.unwrap(), event.span)
        };
        let host = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
        let (trace, span) = begin(0.0, Some(&format!("{host}-01")));
        assert_eq!(span.unwrap().parent.unwrap().get(), 0x00f0_67aa_0ba9_02b7);
        assert!(trace.to_string().starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
        assert!(trace.to_string() != format!("{host}-01") && trace.sampling() == Sampling::Kept);
        let (trace, span) = begin(1.0, Some(&format!("{host}-00")));
        assert_eq!((trace.to_string(), span), (format!("{host}-00"), None));
        let (trace, span) = begin(0.0, None);
        assert_eq!((trace.sampling(), span), (Sampling::Dropped, None));
        let (trace, span) = begin(1.0, None);
        assert_eq!((trace.sampling(), span.unwrap().parent), (Sampling::Kept, None));
    }

    #[test]
    fn the_standard_variables_name_the_place() {
        let traces = (TRACES_ENDPOINT, "http://a:4318/here");
        assert_eq!(place(&[]), None);
        assert_eq!(place(&[(ENDPOINT, ""), (TRACES_ENDPOINT, "")]), None);
        assert_eq!(place(&[traces, (ENDPOINT, "http://b")]), Some("http://a:4318/here".to_owned()));
        for base in ["http://b:4318", "http://b:4318/"] {
            assert_eq!(place(&[(ENDPOINT, base)]), Some("http://b:4318/v1/traces".to_owned()));
        }
        assert_eq!(place(&[(ENDPOINT, "b:4318")]), None);
    }

    #[test]
    fn the_standard_variables_turn_traces_off() {
        let endpoint = (ENDPOINT, "http://b:4318");
        for variable in [
            (DISABLED, "true"),
            (DISABLED, "TRUE"),
            (EXPORTERS, "none"),
            (EXPORTERS, "console,zipkin"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
        ] {
            assert_eq!(place(&[endpoint, variable]), None, "{variable:?}");
        }
        for variable in [
            (DISABLED, "false"),
            (DISABLED, ""),
            (EXPORTERS, "otlp"),
            (EXPORTERS, "console, otlp"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ] {
            assert!(place(&[endpoint, variable]).is_some(), "{variable:?}");
        }
        let specific =
            [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json")];
        assert!(place(&[endpoint, specific[0], specific[1]]).is_some());
    }
}
