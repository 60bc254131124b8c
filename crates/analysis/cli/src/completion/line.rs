//! The other words of the line.

use std::ffi::OsString;
use std::path::PathBuf;

/// The words of a line that name the source of names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The paths of `-f`.
    pub files: Vec<PathBuf>,
    /// The paths of `--bundle`.
    pub bundles: Vec<PathBuf>,
    /// The kubeconfig that is named.
    pub kubeconfig: Option<PathBuf>,
    /// Its context that is named.
    pub context: Option<String>,
    /// The namespace that is named.
    pub namespace: Option<String>,
    /// Whether a running cluster is asked for.
    pub is_live: bool,
    /// Words that are neither options nor their values: commands, topics, codes.
    pub words: Vec<String>,
}

impl Line {
    /// Reads what is typed so far, without judging it. An option without its value is skipped.
    pub fn of(words: &[OsString]) -> Self {
        let mut line = Self::default();
        let mut words = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty()) else {
                line.words.push(word);
                continue;
            };
            let (name, stated) = match option.strip_prefix('-') {
                Some(long) => match long.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (long.to_owned(), None),
                },
                // `-nshop` means `-n shop`.
                None => {
                    let (name, value) =
                        option.split_at(option.chars().next().map_or(0, char::len_utf8));
                    let value = value.strip_prefix('=').unwrap_or(value);
                    (name.to_owned(), Some(value.to_owned()).filter(|value| !value.is_empty()))
                }
            };
            line.option(&name, stated.as_deref(), &mut words);
        }
        // For `probe`, `-n` is the number of calls.
        if line.has("probe") {
            line.namespace = None;
        }
        line
    }

    fn option(
        &mut self,
        name: &str,
        stated: Option<&str>,
        words: &mut impl Iterator<Item = String>,
    ) {
        let mut value = || {
            let value = stated.map(str::to_owned).or_else(|| words.next());
            value.filter(|value| !value.is_empty())
        };
        match name {
            "live" => self.is_live = true,
            "f" | "filename" => self.files.extend(value().map(PathBuf::from)),
            "bundle" => self.bundles.extend(value().map(PathBuf::from)),
            "kubeconfig" => self.kubeconfig = value().map(PathBuf::from),
            "context" => self.context = value(),
            "n" | "namespace" => self.namespace = value(),
            _ => {}
        }
    }

    /// Returns whether the line has a word.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line::of(&text.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_found_in_each_form() {
        let expected = Line {
            files: vec!["a".into(), "b".into(), "c".into()],
            bundles: vec!["d".into()],
            kubeconfig: Some("k".into()),
            context: Some("x".into()),
            namespace: Some("shop".into()),
            is_live: true,
            words: vec!["check".into(), "service".into()],
        };
        let text = "uturn check -f a --filename b --filename=c --bundle d --kubeconfig=k \
                    --context x -nshop --live service";
        assert_eq!(line(text), expected);
    }

    #[test]
    fn an_option_without_its_value_is_passed_over() {
        assert_eq!(line("uturn scan -f"), line("uturn scan"));
        assert_eq!(line("uturn scan --context="), line("uturn scan"));
    }
}
