//! What a target uses of the machine: of this process by the system, of a daemon by its metrics.

use std::time::Duration;

use crate::platform;

/// What a target has used so far, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in super::super) struct TargetUsage {
    /// Processor time of the process itself, without its hooks.
    pub(in super::super) cpu: Option<Duration>,
    /// That of the processes of hooks which have ended; known in process only.
    pub(in super::super) hooks_cpu: Option<Duration>,
    pub(in super::super) resident_bytes: Option<u64>,
    /// The runs that are known.
    pub(in super::super) runs: Option<u64>,
}

impl TargetUsage {
    pub(super) fn of_this_process() -> Self {
        let usage = platform::own_usage();
        Self {
            cpu: usage.cpu,
            hooks_cpu: usage.children_cpu,
            resident_bytes: usage.resident_bytes,
            runs: None,
        }
    }

    /// By metrics in the text format of Prometheus.
    pub(super) fn of_metrics(text: &str) -> Self {
        let mut usage = Self::default();
        for line in text.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            match series {
                "process_cpu_seconds_total" => usage.cpu = Duration::try_from_secs_f64(value).ok(),
                "process_resident_memory_bytes" => usage.resident_bytes = whole(value),
                _ if series.starts_with("hookyard_runs{") => {
                    usage.runs = Some(usage.runs.unwrap_or(0) + whole(value).unwrap_or(0));
                }
                _ => {}
            }
        }
        usage
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn whole(value: f64) -> Option<u64> {
    (0.0..=9e15).contains(&value).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_of_a_daemon_tell_what_it_uses() {
        let text = "# HELP process_cpu_seconds_total x\nprocess_cpu_seconds_total 1.5\n\
            process_resident_memory_bytes 2097152\nhookyard_runs{state=\"active\"} 3\nhookyard_runs{state=\"idle\"} 4\n\
            hookyard_shed_total 9\nnonsense\n";
        let usage = TargetUsage::of_metrics(text);
        let expected = TargetUsage {
            cpu: Some(Duration::from_millis(1500)),
            hooks_cpu: None,
            resident_bytes: Some(2 << 20),
            runs: Some(7),
        };
        assert_eq!(usage, expected);
        assert_eq!(TargetUsage::of_metrics(""), TargetUsage::default());
    }
}
