//! Custom configurations: the settings of their directives on layer 7 listeners.

use std::time::Duration;

use uturn_lb::config::ListenerSettings;
use uturn_model::lb::Profile;

/// Applies the directives of a custom configuration. Notes a directive that this data plane does
/// not know.
pub(super) fn set(
    content: &str,
    profile: &mut Profile,
    settings: &mut ListenerSettings,
    notes: &mut Vec<String>,
) {
    for directive in content.split(';').map(str::trim).filter(|directive| !directive.is_empty()) {
        let name = directive.split_whitespace().next().unwrap_or_default();
        let value = directive[name.len()..].trim();
        if set_directive(name, value, profile, settings).is_none() {
            notes.push(format!("the custom configuration's {name} {value} is not served"));
        }
    }
}

/// Applies a directive; `None` if the directive or its value is not known.
fn set_directive(
    name: &str,
    value: &str,
    profile: &mut Profile,
    settings: &mut ListenerSettings,
) -> Option<()> {
    let timeouts = &mut settings.timeouts;
    let timeout = match name {
        "proxy_connect_timeout" => &mut profile.connect_timeout,
        "proxy_read_timeout" => &mut timeouts.read,
        "client_header_timeout" => &mut timeouts.header,
        "keepalive_timeout" => &mut timeouts.idle,
        "client_max_body_size" => {
            // 0 means no limit.
            settings.limits.body_bytes = Some(size(value)?).filter(|bytes| *bytes > 0);
            return Some(());
        }
        _ => return None,
    };
    *timeout = time(value).filter(|time| !time.is_zero())?;
    Some(())
}

/// Parses a time: `10s`, `10`, `2m`, `500ms`.
fn time(text: &str) -> Option<Duration> {
    let (number, unit) = split(text);
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "ms" => Duration::from_millis(number),
        "" | "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        "h" => Duration::from_secs(number.checked_mul(3600)?),
        _ => return None,
    })
}

/// Parses a number of bytes: `512`, `8k`, `60M`, `1g`.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let factor = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Splits a text into a number and its unit.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use uturn_clouds::cloud::tke::profile;
    use uturn_model::lb::{Layer, ListenerProtocol};

    use super::*;

    #[test]
    fn directives_set_what_the_data_plane_has() {
        let mut profile = profile::clb(Layer::L7);
        let mut settings = ListenerSettings::of(ListenerProtocol::Http);
        let mut notes = Vec::new();
        let content = "proxy_connect_timeout 9s;\nproxy_read_timeout 2m; client_header_timeout 35;
            keepalive_timeout 0s; client_max_body_size 60M; proxy_set_header X-Real-Port $port;";
        set(content, &mut profile, &mut settings, &mut notes);
        assert_eq!(profile.connect_timeout, Duration::from_secs(9));
        assert_eq!(settings.timeouts.read, Duration::from_secs(120));
        assert_eq!(settings.timeouts.header, Duration::from_secs(35));
        assert_eq!(settings.timeouts.idle, Duration::from_secs(75), "0 is no time");
        assert_eq!(settings.limits.body_bytes, Some(60 << 20));
        assert_eq!(
            notes,
            [
                "the custom configuration's keepalive_timeout 0s is not served",
                "the custom configuration's proxy_set_header X-Real-Port $port is not served",
            ]
        );
        set("client_max_body_size 0;", &mut profile, &mut settings, &mut notes);
        assert_eq!(settings.limits.body_bytes, None);
    }

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(time("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(
            (time("1h"), time("5x"), time(""), time("s")),
            (Some(Duration::from_secs(3600)), None, None, None)
        );
        assert_eq!((size("8k"), size("1G"), size("1t")), (Some(8192), Some(1 << 30), None));
        assert_eq!(size("99999999999999999999"), None);
    }
}
