//! Calls from pods, and how they ended.

use super::Story;

/// How long a call may take. Load balancers give up earlier.
const LIMIT: &str = "60";

/// The time for which a load balancer on layer 7 waits for a target.
const PROXY_CONNECT_TIMEOUT: f64 = 4.0;

/// Makes calls at the same time, and prints a line for each: what was answered, with bars in
/// place of ends of lines.
const SCRIPT: &str = r#"
count=$1 limit=$2 url=$3
while [ "$count" -gt 0 ]; do
  count=$((count - 1))
  { printf '%s\n' "$(curl -s --max-time "$limit" -w 'end %{http_code} %{exitcode} %{time_total}' "$url" | tr '\n' '|')"; } &
done
wait
"#;

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    /// The pod that answered: `shop/web-0`.
    pub(crate) by: Option<String>,
    /// The client's address as that pod saw it.
    pub(crate) source: Option<String>,
    /// The field X-Forwarded-For that it got.
    pub(crate) forwarded_for: Option<String>,
    /// The status of HTTP; 0 without an answer.
    pub(crate) status: u16,
    /// Why curl failed; 28 for a call that was given up.
    pub(crate) failure: u8,
    pub(crate) seconds: f64,
}

impl Call {
    fn read(line: &str) -> Self {
        let (body, end) = line.rsplit_once("end ").unwrap_or_else(|| panic!("curl: {line}"));
        let field = |name: &str| {
            let found = body.split('|').find_map(|line| line.strip_prefix(name));
            found.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let ends: Vec<&str> = end.split_whitespace().collect();
        let [status, failure, seconds] = ends[..] else { panic!("curl: {line}") };
        Self {
            by: field("by pod "),
            source: field("source "),
            forwarded_for: field("forwarded-for "),
            status: status.parse().unwrap(),
            failure: failure.parse().unwrap(),
            seconds: seconds.trim_end_matches('|').parse().unwrap(),
        }
    }

    /// Whether a pod answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.failure == 0 && self.status == 200
    }

    /// Whether it waited for a target that did not answer.
    pub(crate) fn waited(&self) -> bool {
        self.seconds >= PROXY_CONNECT_TIMEOUT
    }
}

/// Calls of one pod to one place.
#[derive(Clone, Debug)]
pub(crate) struct Calls(pub(crate) Vec<Call>);

impl Calls {
    /// How many are so.
    pub(crate) fn count(&self, is_so: impl Fn(&Call) -> bool) -> usize {
        self.0.iter().filter(|call| is_so(call)).count()
    }

    /// Shows that all were answered, and how many of them waited.
    #[track_caller]
    pub(crate) fn assert_waited(&self, expected: usize) {
        assert!(self.0.iter().all(Call::is_answered), "{self:#?}");
        assert_eq!(self.count(Call::waited), expected, "{self:#?}");
    }

    /// How many calls waited, or got no answer.
    pub(crate) fn failing(&self) -> usize {
        self.count(|call| call.waited() || !call.is_answered())
    }

    /// The share of these.
    pub(crate) fn share_failing(&self) -> f64 {
        self.failing() as f64 / self.0.len() as f64
    }
}

impl Story<'_> {
    /// Calls from a pod of this namespace, all at the same time: so one that fails does not
    /// change what the others meet.
    pub(crate) fn calls(&self, pod: &str, url: &str, count: usize) -> Calls {
        self.calls_within(pod, url, count, LIMIT)
    }

    /// The same, by clients that give up after so many seconds.
    pub(crate) fn calls_within(&self, pod: &str, url: &str, count: usize, limit: &str) -> Calls {
        let (place, count) = (format!("{}/{pod}", self.namespace), count.to_string());
        let words = ["sh", "-c", SCRIPT, "calls", &count, limit, url];
        let printed = self.stage.exec(&place, &words);
        Calls(printed.lines().map(Call::read).collect())
    }
}
