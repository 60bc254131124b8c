//! The status that a controller will write for a Service that is still to be applied.

use uturn_model::{Labels, Service};

use super::{NewStatus, Product, StatusEntry, Want, remedies_of};

/// The form of a status that a controller will write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedStatus {
    /// An address.
    Address,
    /// An address with `ipMode: Proxy`.
    AddressInModeProxy,
    /// A name without an address: the user's own name, if an annotation states one.
    Name(Option<String>),
}

/// Returns the status that the controller of a product will write for a Service.
pub fn expected_status(product: &dyn Product, service: &Service) -> ExpectedStatus {
    asked_for(product, service).unwrap_or(match product.writes(service) {
        StatusEntry::Address => ExpectedStatus::Address,
        StatusEntry::AddressInModeProxy => ExpectedStatus::AddressInModeProxy,
        StatusEntry::Name => ExpectedStatus::Name(None),
    })
}

/// Returns the status that an annotation asks for. Remedies state which annotations do.
fn asked_for(product: &dyn Product, service: &Service) -> Option<ExpectedStatus> {
    /// A placeholder for a name of the user's own.
    const ANY: &str = "name.example";
    let remedies = remedies_of(product)?;
    let without = Service { annotations: Labels::default(), ..service.clone() };
    remedies(&without, Want::CallsFromInside, ANY).into_iter().find_map(|remedy| {
        let own = |key: &str| service.annotations.get(key).map(str::trim);
        let is_set = |(key, value): &(String, String)| {
            if value == ANY {
                own(key).is_some_and(|name| !name.is_empty())
            } else {
                own(key).is_some_and(|own| own.eq_ignore_ascii_case(value))
            }
        };
        if remedy.annotations.is_empty() || !remedy.annotations.iter().all(is_set) {
            return None;
        }
        let mut names = remedy.annotations.iter().filter(|(_, value)| value == ANY);
        match remedy.status {
            NewStatus::OnlyName => {
                let name = names.next().and_then(|(key, _)| own(key));
                Some(ExpectedStatus::Name(name.map(str::to_owned)))
            }
            NewStatus::ModeProxy => Some(ExpectedStatus::AddressInModeProxy),
            NewStatus::Same | NewStatus::OnlyPublic => None,
        }
    })
}
