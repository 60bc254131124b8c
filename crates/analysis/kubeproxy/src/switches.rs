//! The labels and annotations of a Service that kube-proxy reads.

use uturn_model::Service;

/// The labels that leave a Service to another proxy.
const LEFT_TO_OTHERS: [&str; 2] =
    ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"];

/// The settings in labels and annotations of a Service that kube-proxy reads. It reads no others,
/// except the annotation that [`AddressBinding`](uturn_model::proxy::AddressBinding) names:
/// Services that differ in nothing else have the same rules except for names and addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Switches {
    /// Whether a label leaves the Service to another proxy.
    pub is_left_to_others: bool,
    /// Whether the older annotation asks for hints of zones.
    pub asks_for_hints: bool,
    /// Whether either annotation asks for hints of zones in the words of later versions.
    pub allows_hints: bool,
}

impl Switches {
    /// Reads the settings of a Service.
    pub fn of(service: &Service) -> Self {
        let old = service.annotations.get("service.kubernetes.io/topology-aware-hints");
        let new = service.annotations.get("service.kubernetes.io/topology-mode");
        Self {
            is_left_to_others: LEFT_TO_OTHERS
                .iter()
                .any(|label| service.labels.get(label).is_some()),
            asks_for_hints: matches!(old, Some("Auto" | "auto")),
            allows_hints: !matches!(old.or(new), None | Some("" | "Disabled" | "disabled")),
        }
    }
}
