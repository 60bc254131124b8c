//! Reads the ConfigMap that has the settings of a controller.

use std::time::Duration;

use uturn_model::controller::ControllerBehaviour;
use uturn_model::{Labels, NamespacedName};

use super::arguments::Arguments;
use super::products::Product;
use crate::decode::objects::Objects;

/// The settings of a controller.
pub(super) enum Settings<'a> {
    /// The controller's arguments name no ConfigMap, so its defaults apply.
    None,
    /// The data of the ConfigMap.
    Given(&'a Labels),
    /// The controller's arguments name a ConfigMap that is not given.
    Missing(NamespacedName),
}

impl<'a> Settings<'a> {
    pub(super) fn of(product: &Product, arguments: &Arguments<'_>, objects: &'a Objects) -> Self {
        const NOTHING: &Labels = &Labels::new();
        let Some(name) = product.config_map.and_then(|argument| arguments.object(argument)) else {
            return Self::None;
        };
        match objects.controller_settings.get(&name) {
            Some(settings) => Self::Given(settings),
            None if objects.other_config_maps.contains(&name) => Self::Given(NOTHING),
            None => Self::Missing(name),
        }
    }

    /// Returns the name of the ConfigMap. Returns `None` if there is none, or if it is not given.
    pub(super) fn name(
        &self,
        product: &Product,
        arguments: &Arguments<'_>,
    ) -> Option<NamespacedName> {
        let argument = product.config_map.filter(|_| matches!(self, Self::Given(_)))?;
        arguments.object(argument)
    }

    /// Returns the value of a key. Returns `None` if the default applies or nothing is known.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        match self {
            Self::Given(labels) => labels.get(key),
            Self::None | Self::Missing(_) => None,
        }
    }
}

/// Applies the settings for time-outs and tries, of a ConfigMap with these keys, to the behaviour.
pub(super) fn set_tries(behaviour: &mut ControllerBehaviour, settings: &Labels) {
    if let Some(value) = settings.get("proxy-connect-timeout") {
        behaviour.connect_timeout = seconds(value);
    }
    if let Some(value) = settings.get("proxy-next-upstream-tries") {
        behaviour.tries = match value.parse() {
            Ok(0) => Some(u32::MAX),
            Ok(tries) => Some(tries),
            Err(_) => None,
        };
    }
    if let Some(value) = settings.get("proxy-next-upstream") {
        behaviour.tries = match (value.contains("error"), value.contains("timeout")) {
            (true, true) => behaviour.tries,
            (false, false) => Some(1),
            _ => None,
        };
    }
    if settings.get("proxy-next-upstream-timeout").is_some_and(|value| value != "0") {
        behaviour.tries = None;
    }
}

/// Parses a time such as `5`, `5s`, `1m` or `500ms`.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let number: u64 = number.parse().ok()?;
    match unit {
        "" | "s" => Some(Duration::from_secs(number)),
        "ms" => Some(Duration::from_millis(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}
