//! The families of metrics: their names and meanings. `docs/lb-metrics.md` lists the same.

/// A family of samples of one name.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) metric: Metric,
    #[cfg(test)]
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// A value that only grows, and is 0 when the process or the listener begins.
    Counter,
    /// A current value.
    Gauge,
    /// Durations, counted by classes.
    Histogram,
}

impl Metric {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

macro_rules! families {
    ($($constant:ident $name:literal $metric:ident $labels:expr, $help:literal;)*) => {
        $(pub(super) const $constant: Family = Family {
            name: $name,
            metric: Metric::$metric,
            #[cfg(test)]
            labels: $labels,
            help: $help,
        };)*

        /// All families, in the order in which they are printed.
        #[cfg(test)]
        pub(super) const ALL: &[Family] = &[$($constant),*];
    };
}

#[cfg(test)]
const LISTENER: &[&str] = &["listener", "protocol"];
#[cfg(test)]
const TARGET: &[&str] = &["listener", "protocol", "rule", "target"];

families! {
    BUILD "uturn_lb_build_info" Gauge &["version"],
        "Always 1; the version is a label.";
    STARTED "uturn_lb_start_time_seconds" Gauge &[],
        "When the process began to serve, in seconds since 1970.";
    DRAINING "uturn_lb_draining" Gauge &[],
        "1 while the process stops and open connections end.";
    RELOADS "uturn_lb_reloads_total" Counter &["result"],
        "Changes of the configuration by result: ok or failed.";
    RELOAD_OK "uturn_lb_last_reload_ok" Gauge &[],
        "1 unless the latest change of the configuration failed.";
    CONFIG "uturn_lb_config_info" Gauge &["version"],
        "Always 1; the version of the configuration that is served is a label.";
    CONFIG_TIME "uturn_lb_config_time_seconds" Gauge &[],
        "When the served configuration was taken, in seconds since 1970.";
    LOCAL_ERRORS "uturn_lb_local_errors_total" Counter &["operation", "cause"],
        "Failures of this machine, by cause; they say nothing about targets.";
    LOG_LINES "uturn_lb_access_log_lines_total" Counter &[],
        "Lines written to the access log.";
    LOG_DROPPED "uturn_lb_access_log_dropped_total" Counter &[],
        "Lines that the access log lost because what it goes to was too slow or failed.";

    ACCEPTING "uturn_lb_listener_accepting" Gauge LISTENER,
        "1 when every worker accepts connections of the listener.";
    ACCEPTED "uturn_lb_connections_accepted_total" Counter LISTENER,
        "Connections that clients opened, including those that were refused.";
    OPEN "uturn_lb_connections_open" Gauge LISTENER,
        "Connections of clients that are open.";
    REFUSED "uturn_lb_connections_refused_total" Counter &["listener", "protocol", "reason"],
        "Connections that were closed at once, by reason.";
    FAILED "uturn_lb_connections_failed_total" Counter LISTENER,
        "Connections that ended with an error: of TLS, of HTTP or of the connection itself.";
    REQUESTS "uturn_lb_requests_total" Counter &["listener", "protocol", "status", "answered_by"],
        "Requests by class of status and by who answered. Status none: the connection ended first.";
    OWN_ANSWERS "uturn_lb_own_answers_total" Counter &["listener", "protocol", "status"],
        "Answers of the load balancer's own by status.";
    CUT "uturn_lb_answers_cut_total" Counter &["listener", "protocol", "by"],
        "Answers that ended before they were complete, by the side that ended them.";
    RECEIVED "uturn_lb_received_bytes_total" Counter LISTENER,
        "Bytes from clients: of bodies of requests, and on layer 4 of connections.";
    SENT "uturn_lb_sent_bytes_total" Counter LISTENER,
        "Bytes to clients: of bodies of answers, and on layer 4 of connections.";
    FIRST_BYTE "uturn_lb_first_byte_seconds" Histogram LISTENER,
        "The time from a request's headers to those of its answer.";
    TOTAL "uturn_lb_request_seconds" Histogram LISTENER,
        "The time from a request's headers to the end of its answer.";

    WEIGHT "uturn_lb_target_weight" Gauge TARGET,
        "The weight of a target.";
    HEALTHY "uturn_lb_target_healthy" Gauge TARGET,
        "1 unless health checks have decided that the target is dead.";
    RESTING "uturn_lb_target_resting" Gauge TARGET,
        "1 while the target is ejected because requests to it failed.";
    TARGET_OPEN "uturn_lb_target_open" Gauge TARGET,
        "Requests, and on layer 4 connections, that the target has under way.";
    PICKS "uturn_lb_target_picks_total" Counter TARGET,
        "Requests and connections for which the target was picked first.";
    RETRIES "uturn_lb_target_retries_total" Counter TARGET,
        "Requests for which the target was picked after another one had failed.";
    FAILURES "uturn_lb_target_failures_total" Counter TARGET,
        "Failed attempts on the target, including those that did not connect.";
    CONNECT_FAILURES "uturn_lb_target_connect_failures_total" Counter
        &["listener", "protocol", "rule", "target", "reason"],
        "Connections to the target that failed, by reason: timeout or refused.";
    RESTS "uturn_lb_target_rests_total" Counter TARGET,
        "How often the target was ejected.";
    PROBES "uturn_lb_target_probes_total" Counter
        &["listener", "protocol", "rule", "target", "result"],
        "Health checks of the target by result.";
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/lb-metrics.md");

    /// Returns a family's row on the page.
    fn row(family: &Family) -> String {
        let Family { name, metric, labels, help } = family;
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{name}` | {} | {} | {help} |", metric.label(), labels.join(", "))
    }

    #[test]
    fn the_page_has_every_family_and_no_other() {
        let page = fs::read_to_string(PAGE).unwrap();
        let rows: Vec<&str> =
            page.lines().filter(|line| line.starts_with("| `uturn_lb_")).collect();
        let expected: Vec<String> = ALL.iter().map(row).collect();
        assert_eq!(rows, expected, "{PAGE}");
    }

    #[test]
    fn names_follow_the_conventions() {
        for Family { name, metric, .. } in ALL {
            assert_eq!(name.ends_with("_total"), *metric == Metric::Counter, "{name}");
            assert_eq!(ALL.iter().filter(|other| other.name == *name).count(), 1, "{name}");
        }
    }
}
