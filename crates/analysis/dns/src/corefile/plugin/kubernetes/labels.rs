//! The labels of a name below the zone.

/// The parts of a name below the zone.
pub(super) struct Parts<'n> {
    pub(super) port: &'n str,
    pub(super) protocol: &'n str,
    pub(super) endpoint: &'n str,
    pub(super) service: &'n str,
    pub(super) namespace: &'n str,
    pub(super) is_pod: bool,
}

impl<'n> Parts<'n> {
    pub(super) fn of(below: &'n str) -> Option<Self> {
        let mut parts = Self {
            port: "",
            protocol: "",
            endpoint: "",
            service: "",
            namespace: "",
            is_pod: false,
        };
        let mut labels = below.rsplit('.');
        parts.is_pod = match labels.next()? {
            "pod" => true,
            "svc" | "" => false,
            _ => return None,
        };
        parts.namespace = labels.next().unwrap_or("");
        parts.service = labels.next().unwrap_or("");
        let left: Vec<&str> = labels.collect();
        let bare = |label: &'n str| label.strip_prefix('_').unwrap_or(label);
        match left.as_slice() {
            [] => {}
            [endpoint] => parts.endpoint = endpoint,
            [protocol, port] => (parts.protocol, parts.port) = (bare(protocol), bare(port)),
            _ => return None,
        }
        Some(parts)
    }

    pub(super) fn fits(&self, port: &str, protocol: &str) -> bool {
        let fits = |asked: &str, there: &str| asked.is_empty() || asked.eq_ignore_ascii_case(there);
        fits(self.port, port) && fits(self.protocol, protocol)
    }
}
