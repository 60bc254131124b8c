//! A flag of a preset, and the flags that it stands for in a cluster.

use uturn_model::lb::{Layer, ListenerOverrides};
use uturn_model::service::{Policy, ServiceKind};
use uturn_model::{Cluster, NamespacedName, ObjectKind, ObjectRef, Service};

use super::Flag;

/// A flag for the cluster, or for each of some objects.
#[derive(Clone, Debug)]
pub(super) struct Template {
    flag: &'static str,
    value: &'static str,
    over: Option<Over>,
    /// The conditions: a key, and the values that it may have.
    conditions: Vec<(&'static str, Vec<&'static str>)>,
}

/// The objects for each of which a flag stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Services,
    Ingresses,
    /// The objects in which users set properties of listeners.
    Configs,
}

/// The words in values for an object.
const WORDS: [(&str, Over); 3] =
    [("SERVICE", Over::Services), ("INGRESS", Over::Ingresses), ("CONFIG", Over::Configs)];

/// The word for each item of a list.
const EACH: &str = "[*]";

impl Template {
    /// Reads a line: `--set SERVICE:spec.externalTrafficPolicy=Local for type=LoadBalancer`.
    pub(super) fn read(line: &'static str) -> Option<Self> {
        let (change, conditions) = match line.split_once(" for ") {
            Some((change, conditions)) => (change, conditions),
            None => (line, ""),
        };
        let (flag, value) = change.strip_prefix("--")?.split_once(' ')?;
        let over = WORDS.iter().find(|(word, _)| value.contains(word)).map(|(_, over)| *over);
        let conditions = conditions.split_whitespace().map(|condition| {
            let (key, values) = condition.split_once('=')?;
            matches!(key, "type" | "policy" | "listeners")
                .then(|| (key, values.split(',').collect()))
        });
        Some(Self { flag, value, over, conditions: conditions.collect::<Option<_>>()? })
    }

    pub(super) fn is_of_objects(&self) -> bool {
        self.over.is_some()
    }

    /// Returns the flags for a cluster; of objects, only for those in `only`, or for all if it is empty.
    pub(super) fn flags(&self, cluster: &Cluster, only: &[ObjectRef]) -> Vec<Flag> {
        let is_meant = |object: &ObjectRef| only.is_empty() || only.contains(object);
        match self.over {
            None => vec![Flag { name: self.flag, value: self.value.to_owned() }],
            Some(Over::Services) => {
                let meant = cluster.services.values().filter(|own| is_meant(&own.object()));
                let meant = meant.filter(|own| self.fits(own));
                meant
                    .flat_map(|own| {
                        let items: Vec<usize> = (0..own.load_balancer.len()).collect();
                        self.for_object("SERVICE", &format!("svc/{}", own.name), &items)
                    })
                    .collect()
            }
            Some(Over::Ingresses) => {
                let meant = cluster.ingresses.values().filter(|own| own.route.is_none());
                let meant = meant.filter(|own| is_meant(&own.object()));
                let flags = meant.flat_map(|own| {
                    self.for_object("INGRESS", &format!("ingress/{}", own.name), &[])
                });
                flags.collect()
            }
            Some(Over::Configs) => {
                let is_meant = |name: &NamespacedName| {
                    let is_it = |object: &ObjectRef| {
                        object.namespaced_name().as_ref() == Some(name)
                            && matches!(object.kind, ObjectKind::CloudObject(_))
                    };
                    only.is_empty() || only.iter().any(is_it)
                };
                let meant = cluster.listener_overrides.iter().filter(|(name, _)| is_meant(name));
                meant
                    .flat_map(|(name, own)| {
                        self.for_object("CONFIG", &name.to_string(), &self.listeners(own))
                    })
                    .collect()
            }
        }
    }

    /// Returns whether a Service fulfils the conditions.
    fn fits(&self, service: &Service) -> bool {
        self.conditions.iter().all(|(key, values)| {
            let own = match *key {
                "type" => match service.kind {
                    ServiceKind::LoadBalancer => "LoadBalancer",
                    ServiceKind::NodePort => "NodePort",
                    _ => "other",
                },
                _ => match service.external_policy {
                    Policy::Cluster => "Cluster",
                    Policy::Local => "Local",
                },
            };
            values.contains(&own)
        })
    }

    /// Returns the listeners on the wanted layer that keep no connections open, by their place among those
    /// of the layer.
    fn listeners(&self, own: &ListenerOverrides) -> Vec<usize> {
        let wants = |layer| {
            let word = if layer == Layer::L7 { "7" } else { "4" };
            self.conditions.iter().all(|(_, values)| values.contains(&word))
        };
        let of_layer = own.listeners.iter().filter(|listener| wants(listener.protocol.layer()));
        let numbered = of_layer.enumerate();
        let off = numbered.filter(|(_, listener)| listener.keepalive != Some(true));
        off.map(|(place, _)| place).collect()
    }

    /// Returns the flag for an object, or the flags for each of these items of its list.
    fn for_object(&self, word: &str, object: &str, items: &[usize]) -> Vec<Flag> {
        let value = self.value.replace(word, object);
        if !value.contains(EACH) {
            return vec![Flag { name: self.flag, value }];
        }
        let of = |item: &usize| Flag {
            name: self.flag,
            value: value.replace(EACH, &format!("[{item}]")),
        };
        items.iter().map(of).collect()
    }
}
