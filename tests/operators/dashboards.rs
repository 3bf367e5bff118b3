//! Dashboards and alert rules as far as they can be checked without Prometheus.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use crate::support::grafana::{
    Asked, DASHBOARDS, asked, cases, dashboard, expressions, folder, panels, rules,
};
use hookyard::model::{Ended, EventKind, Verdict};
use hookyard::telemetry::{METRICS, PROCESS_METRICS};
use serde_json::Value;

/// Metrics on no panel.
const NOT_SHOWN: [(&str, &str); 1] =
    [("process_virtual_memory_bytes", "address space says nothing of what a program needs")];

/// Counters that are asked for as they stand.
const AS_THEY_STAND: [(&str, &str); 4] = [
    (
        "hookyard_label_overflow_total",
        "each name counts once, and stays without a label until the program ends",
    ),
    ("hookyard_hook_verdicts_total", "whether it was there a day ago"),
    ("hookyard_store_errors_total", "the reason `gone` counts once, at the start"),
    (
        "hookyard_cluster_queue_replaced_total",
        "a loss that is found at the start counts before the first scrape",
    ),
];

/// The alerts that operators are promised.
const ALERTS: [&str; 45] = [
    "AnswerBudgetBurn1h",
    "AnswerBudgetBurn6h",
    "AnswerBudgetBurn1d",
    "AnswerBudgetBurn3d",
    "OverheadBudgetBurn1h",
    "OverheadBudgetBurn6h",
    "OverheadBudgetBurn1d",
    "OverheadBudgetBurn3d",
    "HookyardDown",
    "GuardFailingOpen",
    "GuardFailingClosed",
    "HookErrorRateHigh",
    "HookNearTimeout",
    "HostWaitHigh",
    "BlockSpike",
    "Shedding",
    "PoolSaturated",
    "ProcessLeaks",
    "SpawnSlow",
    "ActorCrashLooping",
    "WorkerRestarts",
    "WorkersDegraded",
    "WorkspaceNotLoaded",
    "RestartLoop",
    "FewerHooks",
    "AuditLinesLost",
    "ShippedLinesLost",
    "LinesNotShipped",
    "RequiredHookMissing",
    "BundleMissing",
    "BundleCopyChanged",
    "BundleStale",
    "BundleRejected",
    "RunStateNotSaved",
    "RunStateGone",
    "ClusterNotFresh",
    "HaltsNotShared",
    "ClusterPutsFailing",
    "ClusterQueueLost",
    "OutboxOld",
    "DeadLetters",
    "ConfigReloadFailed",
    "UntrustedHook",
    "LabelOverflow",
    "FdsNearLimit",
];

/// A panel, by where it is.
fn each_panel(mut judge: impl FnMut(&str, &Value)) {
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        for panel in panels(&dashboard) {
            judge(&format!("{name}: {}", panel["title"]), panel);
        }
    }
}

/// The names of all metrics.
fn metrics() -> BTreeSet<String> {
    METRICS.iter().chain(PROCESS_METRICS).map(|metric| metric.name.to_owned()).collect()
}

/// The metric that a series belongs to: histograms have three.
fn metric_of(series: &str) -> &str {
    ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|suffix| series.strip_suffix(suffix).filter(|metric| metric.ends_with("_seconds")))
        .unwrap_or(series)
}

fn is_counter(series: &str) -> bool {
    series.ends_with("_total") || metric_of(series) != series
}

#[test]
fn dashboards_are_up_to_date_with_their_source() {
    #[allow(clippy::disallowed_methods, reason = "it is run as its users run it")]
    let written = Command::new("python3").arg("-B").arg(folder().join("build.py")).arg("--check").output();
    let Ok(written) = written else {
        eprintln!("COULD NOT RUN: the dashboards are written by python3, which is not installed");
        return;
    };
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
}

#[test]
fn expressions_are_understood() {
    let text = r#"histogram_quantile(0.95, sum by (le, pool) (rate(a_bucket{x=~"$y",z="}"}[$__rate_interval])))
        and on (pool) b:c > 14.4 * 0.001 or (d{} offset 1d)"#;
    let ask = |metric: &str, selector: &str, range: Option<&str>, function: &str| Asked {
        metric: metric.to_owned(),
        selector: selector.to_owned(),
        range: range.map(str::to_owned),
        function: function.to_owned(),
    };
    let expected = [
        ask("a_bucket", r#"a_bucket{x=~"$y",z="}"}"#, Some("$__rate_interval"), "rate"),
        ask("b:c", "b:c", None, ""),
        ask("d", "d{}", None, ""),
    ];
    assert_eq!(asked(text), expected);
}

#[test]
fn every_panel_has_a_title_a_description_and_a_unit() {
    each_panel(|place, panel| {
        let text = |key: &str| panel[key].as_str().unwrap_or_default().to_owned();
        assert!(!text("title").is_empty(), "{place} has no title");
        assert!(text("description").ends_with('.'), "{place}: {:?} is no description", text("description"));
        let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap_or_default();
        assert!(!unit.is_empty(), "{place} has no unit");
        for queried in panel["targets"].as_array().unwrap().iter().chain([panel]) {
            assert_eq!(queried["datasource"]["uid"], "${datasource}", "{place} asks a source of its own");
        }
    });
}

#[test]
fn dashboards_have_stable_ids() {
    let uids = ["hookyard-overview", "hookyard-hook", "hookyard-internals"];
    for (name, uid) in DASHBOARDS.iter().zip(uids) {
        let dashboard = dashboard(name);
        assert_eq!(dashboard["uid"], uid, "links and bookmarks have it");
        assert!(
            dashboard["tags"].as_array().unwrap().contains(&"hookyard".into()),
            "{name}: links go by the tag"
        );
    }
}

#[test]
fn variables_are_used_and_defined() {
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
        let declared: BTreeSet<_> =
            variables.map(|variable| variable["name"].as_str().unwrap().to_owned()).collect();
        let mut used = BTreeSet::from(["datasource".to_owned()]);
        for panel in panels(&dashboard) {
            for part in expressions(panel).iter().flat_map(|expression| expression.split('$').skip(1)) {
                let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
                used.extend((!part.starts_with("__")).then(|| part[..end].to_owned()));
            }
        }
        assert_eq!(declared, used, "{name}");
    }
}

/// Checks that the panels of a dashboard or of a closed row are beside each other.
fn check_apart(name: &str, panels: &[Value], ids: &mut BTreeSet<u64>) {
    let mut taken = BTreeMap::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: an id twice: {}", panel["title"]);
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(
            place("x") + place("w") <= 24 && place("w") > 0 && place("h") > 0,
            "{name}: {}",
            panel["title"]
        );
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                let other = taken.insert((x, y), panel["title"].to_string());
                assert_eq!(other, None, "{name}: {} lies on it", panel["title"]);
            }
        }
        if let Some(inner) = panel["panels"].as_array() {
            check_apart(name, inner, ids);
        }
    }
}

#[test]
fn panels_do_not_overlap() {
    for name in DASHBOARDS {
        check_apart(name, dashboard(name)["panels"].as_array().unwrap(), &mut BTreeSet::new());
    }
}

#[test]
fn rows_below_the_first_screen_are_closed() {
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        let rows = dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] == "row");
        for row in rows {
            let is_below = row["gridPos"]["y"].as_u64().unwrap() >= 22;
            let inner = row["panels"].as_array().unwrap().len();
            assert_eq!(
                (row["collapsed"] == true, inner > 0),
                (is_below, is_below),
                "{name}: {}",
                row["title"]
            );
        }
    }
}

/// Checks a part of a dashboard against one of the types of Grafana.
fn check_type(schema: &Value, name: &str, place: &str, part: &Value) {
    let validator = jsonschema::validator_for(&schema[name]).unwrap();
    let wrong: Vec<String> = validator.iter_errors(part).map(|error| format!("{error:#?}")).collect();
    assert!(wrong.is_empty(), "{place}: {wrong:#?}");
}

#[test]
fn dashboards_are_of_the_types_of_grafana() {
    let schema = std::fs::read_to_string(folder().join("schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    for name in DASHBOARDS {
        let mut dashboard = dashboard(name);
        for annotation in dashboard["annotations"]["list"].as_array_mut().unwrap() {
            // Those of the data source: the type knows only what Grafana's own marks have.
            for own in ["target", "titleFormat", "textFormat"] {
                assert!(annotation.as_object_mut().unwrap().remove(own).is_some(), "{own}");
            }
        }
        check_type(&schema, "dashboard", name, &dashboard);
        // What a panel is made of depends on its kind.
        for panel in panels(&dashboard) {
            let place = format!("{name}: {}", panel["title"]);
            let kind = panel["type"].as_str().unwrap();
            check_type(&schema, kind, &place, &panel["options"]);
            let custom = &panel["fieldConfig"]["defaults"]["custom"];
            let fields = format!("{kind} fields");
            if schema[&fields].is_object() {
                let custom = if custom.is_null() { &Value::Object(serde_json::Map::new()) } else { custom };
                check_type(&schema, &fields, &place, custom);
            } else {
                assert!(custom.is_null(), "{place}: {custom}");
            }
        }
    }
    let mut odd = dashboard("overview");
    odd["panels"][1]["gridPos"]["w"] = "wide".into();
    let validator = jsonschema::validator_for(&schema["dashboard"]).unwrap();
    assert!(!validator.is_valid(&odd));
}

#[test]
fn every_metric_in_an_expression_exists() {
    let mut known = metrics();
    known.insert("up".to_owned());
    let rules = rules();
    known.extend(rules.iter().filter(|rule| rule.alert.is_none()).map(|rule| rule.name.clone()));
    let mut unknown = BTreeSet::new();
    let mut look = |place: &str, expression: &str| {
        let missing = asked(expression).into_iter().filter(|asked| !known.contains(metric_of(&asked.metric)));
        unknown.extend(missing.map(|asked| format!("{place} asks for {}", asked.metric)));
    };
    each_panel(|place, panel| expressions(panel).iter().for_each(|expression| look(place, expression)));
    for rule in &rules {
        look(&rule.name, &rule.expression);
    }
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        for annotation in dashboard["annotations"]["list"].as_array().unwrap() {
            look(&format!("{name}: {}", annotation["name"]), annotation["target"]["expr"].as_str().unwrap());
        }
    }
    assert!(unknown.is_empty(), "no such metrics: {unknown:#?}");
}

#[test]
fn every_metric_is_on_a_panel() {
    let mut hidden = metrics();
    assert!(hidden.len() > 20, "the names are not where they are looked for");
    each_panel(|_, panel| {
        for asked in expressions(panel).iter().flat_map(|expression| asked(expression)) {
            hidden.remove(metric_of(&asked.metric));
        }
    });
    let excused: BTreeSet<_> = NOT_SHOWN.iter().map(|(metric, _)| (*metric).to_owned()).collect();
    assert_eq!(hidden, excused, "on no panel, and excused");
}

#[test]
fn counters_are_queried_with_rate_and_gauges_are_not() {
    let judge = |place: &str, asked: &Asked, windows: Option<&[&str]>| {
        let grows = ["rate", "increase"].contains(&asked.function.as_str());
        assert_eq!(grows, is_counter(&asked.metric), "{place}: {asked:?}");
        let (Some(windows), true) = (windows, grows) else { return };
        assert!(windows.contains(&asked.range.as_deref().unwrap_or_default()), "{place}: {asked:?}");
    };
    each_panel(|place, panel| {
        // What is one number for all the time that is shown may look at all of it.
        let summary = ["stat", "bargauge"].contains(&panel["type"].as_str().unwrap());
        let windows: &[&str] = if summary { &["$__range"] } else { &["$__rate_interval"] };
        for asked in expressions(panel).iter().flat_map(|expression| asked(expression)) {
            judge(place, &asked, Some(windows));
        }
    });
    for rule in rules() {
        for asked in asked(&rule.expression) {
            let excused =
                AS_THEY_STAND.iter().any(|(metric, _)| *metric == asked.metric) && asked.range.is_none();
            if !excused {
                judge(&rule.name, &asked, None);
            }
        }
    }
}

/// The series of a panel that have a colour of their own.
fn colored(panel: &Value) -> Vec<&str> {
    let overrides = panel["fieldConfig"]["overrides"].as_array().unwrap();
    overrides.iter().filter_map(|each| each["matcher"]["options"].as_str()).collect()
}

#[test]
fn verdicts_and_ends_have_the_same_colours_everywhere() {
    let verdicts: Vec<_> = Verdict::ALL.iter().map(|verdict| verdict.as_str()).collect();
    let ends: Vec<_> = Ended::ALL.iter().map(|ended| ended.as_str()).collect();
    let mut seen = BTreeMap::new();
    each_panel(|place, panel| {
        let legend = panel["targets"][0]["legendFormat"].as_str().unwrap_or_default();
        match legend {
            "{{verdict}}" => assert_eq!(colored(panel), verdicts, "{place}"),
            "{{ended}}" => assert_eq!(colored(panel), ends, "{place}"),
            _ => return,
        }
        for each in panel["fieldConfig"]["overrides"].as_array().unwrap() {
            let name = format!("{legend} {}", each["matcher"]["options"]);
            let color = each["properties"][0]["value"]["fixedColor"].to_string();
            assert_eq!(seen.entry(name).or_insert_with(|| color.clone()), &color, "{place}");
        }
    });
    assert_eq!(seen.len(), verdicts.len() + ends.len());
}

#[test]
fn lifecycle_events_are_distinguished_everywhere() {
    let watched = EventKind::ALL.iter().filter(|kind| !kind.is_interceptor()).map(|kind| kind.as_str());
    let list = watched.collect::<Vec<_>>().join("|");
    let mut found = 0;
    let mut look = |place: &str, expression: &str| {
        for start in expression.match_indices("session_started").map(|(start, _)| start) {
            assert!(expression[start..].starts_with(&format!("{list}\"")), "{place} should say {list}");
            found += 1;
        }
    };
    each_panel(|place, panel| expressions(panel).iter().for_each(|expression| look(place, expression)));
    for rule in rules() {
        look(&rule.name, &rule.expression);
    }
    assert!(found > 10);
}

#[test]
fn every_alert_says_what_to_do() {
    let alerts: Vec<_> =
        rules().into_iter().filter_map(|rule| rule.alert.map(|alert| (rule.name, alert))).collect();
    let names: Vec<_> = alerts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ALERTS);
    let operating = include_str!("../../docs/operating.md");
    let headings = operating.lines().filter_map(|line| line.strip_prefix("### "));
    let sections: BTreeSet<_> = headings.map(str::to_lowercase).collect();
    for (name, alert) in alerts {
        let severity = alert["labels"]["severity"].as_str().unwrap_or_default();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}: {severity:?} is no severity");
        let text = |key: &str| alert["annotations"][key].as_str().unwrap_or_default();
        assert!(!text("summary").is_empty() && text("description").contains("{{"), "{name}");
        assert!(text("runbook").lines().count() >= 2, "{name} has no runbook");
        let section = text("runbook_url").strip_prefix("docs/operating.md#").unwrap_or_default();
        let is_its_own = !section.is_empty() && name.to_lowercase().starts_with(section);
        assert!(is_its_own && sections.contains(section), "{name}: {section:?} is no section about it");
    }
}

#[test]
fn every_alert_has_a_case_that_fires_it_and_one_that_does_not() {
    let cases = cases();
    let checks = cases["tests"].as_array().unwrap().iter();
    let checks: Vec<_> = checks.filter_map(|case| case["promql_expr_test"].as_array()).flatten().collect();
    for alert in ALERTS {
        let of_it =
            |check: &&&Value| check["expr"].as_str().unwrap().contains(&format!("alertname=\"{alert}\""));
        let (quiet, fires): (Vec<&Value>, Vec<&Value>) = checks
            .iter()
            .filter(of_it)
            .partition(|check| check["exp_samples"].as_array().is_none_or(Vec::is_empty));
        assert!(!quiet.is_empty() && !fires.is_empty(), "{alert}");
    }
}
