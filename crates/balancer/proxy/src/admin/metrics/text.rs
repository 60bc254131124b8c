//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

use super::family::Family;
use crate::metrics::{BOUNDS, Counts};

/// The content type of the format.
pub(in crate::admin) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The labels of a sample: names and values.
pub(super) type Labels<'a> = [(&'a str, &'a str)];

/// A page of metrics that is being written.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    /// Begins a family of samples.
    pub(super) fn family(&mut self, family: &Family) {
        let Family { name, metric, help, .. } = family;
        self.write(format_args!("# HELP {name} {}\n", Escaped { text: help, quotes: false }));
        self.write(format_args!("# TYPE {name} {}\n", metric.label()));
    }

    /// Writes a sample.
    pub(super) fn sample(&mut self, name: &str, labels: &Labels<'_>, value: impl Display) {
        self.0.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let text = Escaped { text, quotes: true };
            self.write(format_args!("{before}{label}=\"{text}\""));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        self.write(format_args!(" {value}\n"));
    }

    /// Writes the samples of a histogram of durations, in seconds.
    pub(super) fn histogram(&mut self, name: &str, labels: &Labels<'_>, counts: &Counts) {
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        for (place, count) in counts.classes.iter().enumerate() {
            below += count;
            let bound = BOUNDS.get(place).map_or("+Inf".to_owned(), |bound| seconds(*bound));
            let with_bound: Vec<_> = labels.iter().copied().chain([("le", &*bound)]).collect();
            self.sample(&bucket, &with_bound, below);
        }
        self.sample(&format!("{name}_sum"), labels, seconds(counts.sum));
        self.sample(&format!("{name}_count"), labels, below);
    }

    /// Returns the page.
    pub(super) fn into_string(self) -> String {
        self.0
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to memory does not fail.
        let _ = self.0.write_fmt(arguments);
    }
}

/// Writes microseconds as seconds, without rounding.
fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A text with special characters of the format escaped.
struct Escaped<'a> {
    text: &'a str,
    /// Whether the text is in quotes.
    quotes: bool,
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.text.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '"' if self.quotes => f.write_str("\\\"")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::family::Metric;
    use super::*;
    use crate::metrics::Histogram;

    #[test]
    fn what_has_a_meaning_is_escaped() {
        let mut text = Text::default();
        let help = "a \"b\" \\ c\nd";
        text.family(&Family { name: "x_total", metric: Metric::Counter, labels: &[], help });
        text.sample("x_total", &[("rule", "*.a\"\\\n"), ("target", "é")], 7);
        text.sample("y", &[], 0);
        assert_eq!(
            text.into_string(),
            "# HELP x_total a \"b\" \\\\ c\\nd\n# TYPE x_total counter\n\
             x_total{rule=\"*.a\\\"\\\\\\n\",target=\"é\"} 7\ny 0\n"
        );
    }

    #[test]
    fn the_classes_of_a_histogram_contain_those_below() {
        let histogram = Histogram::default();
        for millis in [1, 2, 70_000] {
            histogram.count(Duration::from_millis(millis));
        }
        let mut counts = Counts::default();
        histogram.add_to(&mut counts);
        let mut text = Text::default();
        text.histogram("t_seconds", &[("listener", "a")], &counts);
        let text = text.into_string();
        for line in [
            "t_seconds_bucket{listener=\"a\",le=\"0.001\"} 1\n",
            "t_seconds_bucket{listener=\"a\",le=\"0.0025\"} 2\n",
            "t_seconds_bucket{listener=\"a\",le=\"60\"} 2\n",
            "t_seconds_bucket{listener=\"a\",le=\"+Inf\"} 3\n",
            "t_seconds_sum{listener=\"a\"} 70.003\n",
            "t_seconds_count{listener=\"a\"} 3\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
