//! What of this machine's own a lab could change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Links, rules, routes, settings, and instances of the tracer.
#[derive(Debug)]
pub(crate) struct Host {
    links: BTreeSet<String>,
    rules: String,
    routes: Vec<String>,
    settings: BTreeMap<String, String>,
    tracers: BTreeSet<String>,
}

impl Host {
    pub(crate) fn look() -> Self {
        let mut save = Command::new("iptables-save");
        let rules = save.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").output().unwrap().stdout;
        let rules = String::from_utf8(rules).unwrap();
        let mut settings = BTreeMap::new();
        read_settings(Path::new("/proc/sys/net"), &mut settings);
        Self {
            links: names("/sys/class/net"),
            rules: rules.lines().filter(|line| line.starts_with('-')).collect(),
            routes: routes(),
            settings,
            tracers: names("/sys/kernel/tracing/instances"),
        }
    }

    /// Asserts that nothing has changed. What newly loaded kernel modules have added does not
    /// count.
    pub(crate) fn must_be(&self, before: &Self, after: &str) {
        assert_eq!(self.links, before.links, "{after} changed the host's links");
        assert_eq!(self.rules, before.rules, "{after} changed the host's rules");
        assert_eq!(self.routes, before.routes, "{after} changed the host's routes");
        assert_eq!(self.tracers, before.tracers, "{after} left a tracer");
        for (name, was) in &before.settings {
            assert_eq!(self.settings.get(name), Some(was), "{after} changed {name}");
        }
    }
}

/// Destination, gateway, link and length of each route, without counts of their use.
fn routes() -> Vec<String> {
    let read = |file: &str, fields: &[usize]| -> Vec<String> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let of_line = |line: &str| {
            let all: Vec<&str> = line.split_whitespace().collect();
            fields.iter().map(|at| format!("{} ", all[*at])).collect()
        };
        text.lines().map(of_line).collect()
    };
    let mut all = read("/proc/net/route", &[0, 1, 2, 7]);
    all.extend(read("/proc/net/ipv6_route", &[0, 1, 4, 9]));
    all.sort_unstable();
    all
}

fn read_settings(folder: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_settings(&path, all);
        } else if !path.to_string_lossy().ends_with("_count")
            // Some can only be written.
            && let Ok(value) = fs::read_to_string(&path)
        {
            all.insert(path.to_string_lossy().into_owned(), value);
        }
    }
}

pub(crate) fn names(folder: &str) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
