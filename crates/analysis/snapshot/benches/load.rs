//! How fast manifests become a cluster, beside splitting the same bytes into words and beside
//! `serde_json` making its values of them: `cargo bench -p uturn-snapshot --bench load -- FILE` for each JSON file that
//! `cargo xtask gen-cluster` wrote; `--brief` only reads them, for a profiler. Figures are of processor time, not of the clock.

#![expect(clippy::needless_pass_by_value, reason = "a text is let go where it is read")]
#![expect(clippy::print_stdout, reason = "a program that talks to people")]

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

use serde_json::Value;
use uturn_snapshot::{Loaded, Source, load, read};
use uturn_testing::yardstick::{Beside, split_into_words};

/// How much of a file is also measured as YAML and as JSON with a line for each value, in
/// bytes, and is given to `serde_json`: that of a whole cluster would take gigabytes.
const PART: usize = 40_000_000;

fn main() {
    for file in env::args().skip(1).filter(|word| !word.starts_with("--")) {
        // First, while this process has taken no memory for anything else.
        let before = worked();
        let loaded = load(&[PathBuf::from(&file)]).expect("manifests");
        let (spent, most) = (worked() - before, most_memory());
        let text = fs::read_to_string(&file).expect("a file that can be read");
        let size = text.len() as f64 / 1e6;
        let cluster = &loaded.cluster;
        println!(
            "{file}, {size:.0} MB: {} nodes, {} pods, {} Services; {most} MB of memory at most",
            cluster.nodes.len(),
            cluster.pods.len(),
            cluster.services.len(),
        );
        println!("  {:<28} {:>6.0} MB/s", "uturn, file to cluster", size / spent);
        drop(loaded);
        if env::args().any(|word| word == "--brief") {
            continue;
        }
        drop(print_time("uturn, text to cluster", &text, cluster_of));
        let part = part(text);
        let value = print_time("serde_json, to its values", &part, serde_of);
        print_time("uturn, to a cluster", &part, cluster_of);
        let pretty = serde_json::to_string_pretty(&value).expect("a value");
        drop(print_time("serde_json, a line a value", &pretty, serde_of));
        print_time("uturn, a line a value", &pretty, cluster_of);
        let mut yaml = String::new();
        write(&value, 0, &mut yaml);
        print_time("uturn, as YAML", &yaml, cluster_of);
    }
}

fn serde_of(text: String) -> Value {
    serde_json::from_slice(text.as_bytes()).expect("JSON")
}

fn cluster_of(text: String) -> Loaded {
    read(vec![Source { name: "-".into(), text }]).expect("manifests")
}

/// The best of three, and how many times as long it is as splitting the text into words.
fn print_time<T>(what: &str, text: &str, run: impl Fn(String) -> T) -> T {
    let timed = || {
        let copy = text.to_owned();
        Beside::once(worked, || run(copy), || split_into_words(text))
    };
    let (first, made) = timed();
    drop(made);
    let (second, made) = timed();
    drop(made);
    let (third, made) = timed();
    let times = first.shortest(second).shortest(third);
    let size = text.len() as f64 / 1e6;
    println!(
        "  {what:<28} {:>6.0} MB/s of {size:.0} MB, {:.2} times as long as splitting it into words",
        size / times.work,
        times.ratio(),
    );
    made
}

/// The first items of a List of one item a line, as a List.
fn part(text: String) -> String {
    if text.len() <= PART {
        return text;
    }
    match text[..PART].rfind(",\n") {
        Some(end) => format!("{}\n]}}", &text[..end]),
        None => text,
    }
}

/// Writes a value as YAML, as `kubectl get -o yaml` does.
fn write(value: &Value, indent: usize, to: &mut String) {
    let pad = " ".repeat(indent);
    let nested = |value: &Value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let start = to.len();
                write(item, indent + 2, to);
                to.replace_range(start..start + pad.len() + 2, &format!("{pad}- "));
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                let _ = write!(to, "{pad}{key}:");
                if nested(value) {
                    to.push('\n');
                    write(value, indent + usize::from(value.is_object()) * 2, to);
                } else {
                    let _ = writeln!(to, " {value}");
                }
            }
        }
        leaf => {
            let _ = writeln!(to, "{pad}{leaf}");
        }
    }
}

/// The CPU seconds of this thread.
fn worked() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux that says it");
    let first = text.split_ascii_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    first.expect("nanoseconds") / 1e9
}

/// The most memory this process has had, in MB.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux that says it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.expect("a number of KiB") * 1024 / 1_000_000
}
