//! The manifest from which krew installs the plugin.

use std::fs;

use crate::shell::{self, Failure};

/// The manifest without the parts that a release adds.
const TEMPLATE: &str = "packaging/krew/uturn.yaml";

/// Returns the manifest of a version whose archives have these checksums, by processor.
pub(super) fn manifest(
    version: &str,
    base_url: &str,
    homepage: &str,
    sums: &[(&str, &str)],
) -> Result<String, Failure> {
    let path = shell::root().join(TEMPLATE);
    let text = fs::read_to_string(&path).map_err(|why| Failure(format!("{TEMPLATE}: {why}")))?;
    // The template's comment is left out.
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut text: String = lines.map(|line| format!("{line}\n")).collect();
    for (mark, value) in [("VERSION", version), ("BASE_URL", base_url), ("HOMEPAGE", homepage)] {
        text = text.replace(&format!("@{mark}@"), value);
    }
    for (arch, sum) in sums {
        text = text.replace(&format!("@SHA256_{}@", arch.to_uppercase()), sum);
    }
    check(&text).map_err(|why| Failure(format!("{TEMPLATE}: {why}")))?;
    Ok(text)
}

/// Checks the parts that a release fills in. A test of the template covers the rest of the form.
fn check(text: &str) -> Result<(), String> {
    if text.contains('@') {
        return Err("a mark between @ signs is left".to_owned());
    }
    let values = |key: &str| -> Vec<&str> {
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(key));
        lines.map(|value| value.trim().trim_matches('"')).collect()
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    for version in values("version:") {
        let core = version.strip_prefix('v').and_then(|rest| rest.split(['-', '+']).next());
        let parts: Vec<&str> = core.unwrap_or_default().split('.').collect();
        if parts.len() != 3 || !parts.into_iter().all(is_number) {
            return Err(format!("{version:?} is no version such as v1.2.3"));
        }
    }
    let sums = values("sha256:");
    let is_sum = |sum: &&str| {
        sum.len() == 64 && sum.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if sums.is_empty() || !sums.iter().all(is_sum) {
        return Err(format!("{sums:?} are no checksums"));
    }
    let urls = values("uri:");
    if urls.len() == sums.len() && urls.iter().all(|url| url.starts_with("https://")) {
        Ok(())
    } else {
        Err(format!("{urls:?} are not the URLs of {} archives", sums.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://example.com/v1";

    #[test]
    fn a_manifest_is_filled_in() {
        let (one, two) = ("1".repeat(64), "a".repeat(64));
        let sums = [("amd64", &*one), ("arm64", &*two)];
        let text = manifest("0.1.0", URL, URL, &sums).unwrap();
        for line in [
            "  version: \"v0.1.0\"".to_owned(),
            format!("    uri: \"{URL}/uturn-0.1.0-linux-arm64.tar.gz\""),
            format!("    sha256: \"{one}\""),
            format!("    sha256: \"{two}\""),
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
    }

    #[test]
    fn what_krew_would_refuse_is_refused() {
        let sum = "1".repeat(64);
        let whole = [("amd64", &*sum), ("arm64", &*sum)];
        assert!(manifest("0.1.0", URL, URL, &whole[..1]).is_err());
        assert!(manifest("0.1", URL, URL, &whole).is_err());
        assert!(manifest("0.1.0", "http://example.com", URL, &whole).is_err());
        assert!(manifest("0.1.0", URL, URL, &[("amd64", "12"), ("arm64", "34")]).is_err());
    }
}
