//! The version of a configuration: a hash of its contents.
//!
//! It is computed from a hash for each load balancer. The hashes of unchanged load balancers are
//! reused, so that a change costs what it changes, and a comparison of the rest.

use std::collections::HashMap;
use std::fmt;

use uturn_lb::change::BalancerKey;
use uturn_lb::config::{BalancerConfig, Config};
use uturn_lb::hash::fnv1a;

use super::Form;

/// The version of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// The hashes of the load balancers, in their order.
    parts: Vec<u64>,
    whole: u64,
}

impl Version {
    /// Computes the version of a configuration. `before` is another configuration with its version,
    /// whose hashes are reused for equal load balancers.
    pub(super) fn of(
        config: &Config,
        before: Option<(&Config, &Self)>,
        describe: fn(&Config, Form) -> String,
    ) -> Self {
        let hash = |config: &Config| fnv1a(describe(config, Form::Json).as_bytes());
        let mut known: HashMap<BalancerKey, (&BalancerConfig, u64)> = HashMap::new();
        if let Some((config, version)) = before {
            let parts = config.load_balancers.iter().zip(&version.parts);
            let key = |served: &BalancerConfig| BalancerKey::of(&served.load_balancer);
            known.extend(parts.map(|(served, hash)| (key(served), (served, *hash))));
        }
        let part = |served: &BalancerConfig| {
            let same = known.get(&BalancerKey::of(&served.load_balancer));
            match same.filter(|(before, _)| *before == served) {
                Some((_, hash)) => *hash,
                None => hash(&Config { load_balancers: vec![served.clone()], ..Config::default() }),
            }
        };
        let parts: Vec<u64> = config.load_balancers.iter().map(part).collect();
        let rest = Config {
            process: config.process.clone(),
            load_balancers: Vec::new(),
            security_groups: config.security_groups.clone(),
        };
        let all = [hash(&rest)].into_iter().chain(parts.iter().copied());
        let whole = fnv1a(&all.flat_map(u64::to_be_bytes).collect::<Vec<u8>>());
        Self { parts, whole }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.whole)
    }
}
