//! An input: the arguments of a command, and the files that they name.

/// The first file of an input: the arguments, one on a line.
const ARGUMENTS: &str = "arguments";

/// The beginning of a line that starts a file.
const BEGINS: &[u8] = b"=== ";

/// A command and its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Input {
    /// The words after the program's name.
    pub(super) arguments: Vec<String>,
    /// The files, with their names.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

impl Input {
    /// Reads the output of [`Self::bytes`]. Bytes that are no text are replaced in arguments and
    /// names, and stay in files.
    pub(super) fn read(data: &[u8]) -> Option<Self> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for line in data.split_inclusive(|byte| *byte == b'\n') {
            match (line.strip_prefix(BEGINS), files.last_mut()) {
                (Some(name), _) => files.push((text(name).trim().to_owned(), Vec::new())),
                (None, Some((_, own))) => own.extend_from_slice(line),
                (None, None) => {}
            }
        }
        let is_right = files.first().is_some_and(|(name, _)| name == ARGUMENTS);
        is_right.then(|| {
            let (_, arguments) = files.remove(0);
            Self { arguments: text(&arguments).lines().map(str::to_owned).collect(), files }
        })
    }

    /// Returns the input as one text. A line of a file that looks like the start of a file splits
    /// the file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let one_line = |argument: &String| argument.replace(['\n', '\r'], " ");
        let arguments = self.arguments.iter().map(one_line).collect::<Vec<_>>().join("\n");
        let mut bytes = [BEGINS, ARGUMENTS.as_bytes(), b"\n", arguments.as_bytes()].concat();
        for (name, own) in &self.files {
            if !bytes.ends_with(b"\n") {
                bytes.push(b'\n');
            }
            bytes.extend([BEGINS, name.as_bytes(), b"\n", own].concat());
        }
        bytes
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let input = Input {
            arguments: ["scan", "-f", "a b.yaml"].map(str::to_owned).into(),
            files: vec![("a b.yaml".into(), b"\xff: 1\n".into()), ("n1/addr".into(), Vec::new())],
        };
        assert_eq!(Input::read(&input.bytes()), Some(input));
        assert_eq!(Input::read(b"scan\n=== a.yaml\n"), None);
    }
}
