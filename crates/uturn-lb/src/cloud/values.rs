//! Values of annotations that several controllers write alike.

use uturn_model::Service;

/// Whether an annotation is switched on.
pub(crate) fn is_on(service: &Service, key: &str) -> bool {
    let value = service.annotations.get(key).unwrap_or_default().trim();
    ["true", "1", "t"].iter().any(|on| value.eq_ignore_ascii_case(on))
}

/// Whether a list of ports names one: by its number, with a star for all, or with the word for a
/// switch that is on.
pub(crate) fn names_port(service: &Service, key: &str, port: u16) -> bool {
    let value = service.annotations.get(key).unwrap_or_default();
    let mut all = value.split(',').map(str::trim);
    all.any(|item| item == "*" || item == "true" || item.parse() == Ok(port))
}

#[cfg(test)]
mod tests {
    use uturn_model::{Origin, Service};

    use super::*;

    #[test]
    fn switches_and_lists() {
        let mut service = Service::new("shop/web".parse().unwrap(), Origin::file("a.yaml"));
        let annotations = [("on", "True"), ("off", "false"), ("list", "80, 443"), ("all", "*")];
        service.annotations = annotations.into_iter().collect();
        assert!(is_on(&service, "on") && !is_on(&service, "off") && !is_on(&service, "none"));
        assert!(names_port(&service, "list", 443) && !names_port(&service, "list", 8080));
        assert!(names_port(&service, "all", 1) && !names_port(&service, "off", 80));
        assert!(!names_port(&service, "none", 80));
    }
}
