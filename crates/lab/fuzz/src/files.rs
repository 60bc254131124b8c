//! Inputs of several files: each after a line with its name, `=== objects/services.yaml`.

/// The beginning of a line that starts a file.
const BEGINS: &str = "=== ";

/// Returns the files of an input, with their names.
pub(crate) fn files(text: &str) -> Vec<(&str, String)> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        match (line.strip_prefix(BEGINS), files.last_mut()) {
            (Some(name), _) => files.push((name.trim(), String::new())),
            (None, Some((_, text))) => text.push_str(line),
            (None, None) => {}
        }
    }
    files
}
