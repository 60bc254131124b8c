//! Finds the items of a List by its brackets or its indentation alone, because a tree of a large
//! cluster's List takes many times the memory of its text.

use std::ops::Range;

/// Returns the range of each item of a document that is a List. In YAML an item begins with its
/// dash. Returns `None` if the document is not a List, or is not written as kubectl writes it.
pub(super) fn of_list(text: &str) -> Option<Vec<Range<usize>>> {
    if text.trim_start().starts_with('{') { in_json(text) } else { in_yaml(text) }
}

fn in_yaml(text: &str) -> Option<Vec<Range<usize>>> {
    let (mut kind, mut items) = (None, None);
    let mut is_item = false;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        match line.as_bytes()[0] {
            b' ' | b'#' | b'\n' | b'\r' => {}
            b'-' if is_item && line.starts_with("- ") => {
                items.get_or_insert_with(Vec::new).push(start..end);
            }
            first if first.is_ascii_alphabetic() => {
                let (key, value) = line.split_once(':')?;
                is_item = key == "items";
                match key {
                    "kind" if kind.is_none() => kind = Some(value.trim()),
                    "items" if items.is_none() && value.trim().is_empty() => {
                        items = Some(Vec::new());
                    }
                    // A repeated key is left to the parser, which uses the last.
                    "kind" | "items" => return None,
                    _ => {}
                }
            }
            _ => return None,
        }
        if is_item && let Some(item) = items.iter_mut().flatten().last() {
            item.end = end;
        }
    }
    items.filter(|_| kind.is_some_and(|kind| kind.ends_with("List")))
}

fn in_json(text: &str) -> Option<Vec<Range<usize>>> {
    let mut scan = Scan { text, at: text.len() - text.trim_start().len() };
    scan.pass(b'{')?;
    let (mut kind, mut items) = (None, None);
    loop {
        let key = scan.string()?;
        scan.pass(b':')?;
        match key {
            "kind" if kind.is_none() => kind = Some(scan.string()?),
            "items" if items.is_none() => items = Some(scan.objects()?),
            // A repeated key is left to the parser, which uses the last.
            "kind" | "items" => return None,
            _ => {
                let _value = scan.value()?;
            }
        }
        match scan.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    let is_all = text[scan.at..].trim().is_empty();
    items.filter(|_| is_all && kind.is_some_and(|kind| kind.ends_with("List")))
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn skip_blank(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blank = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))?;
        self.at += blank;
        Some(rest[blank])
    }

    /// Takes the next byte that is not blank.
    fn next(&mut self) -> Option<u8> {
        let byte = self.skip_blank()?;
        self.at += 1;
        Some(byte)
    }

    fn pass(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    /// Takes a text without escapes.
    fn string(&mut self) -> Option<&'t str> {
        self.pass(b'"')?;
        let from = self.at;
        self.end_of_string()?;
        let text = &self.text[from..self.at - 1];
        (!text.contains('\\')).then_some(text)
    }

    /// Moves behind the quote that ends a text.
    fn end_of_string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        loop {
            let ends = |byte: &u8| matches!(byte, b'"' | b'\\');
            let end = self.at + bytes[self.at..].iter().position(ends)?;
            if bytes[end] == b'"' {
                self.at = end + 1;
                return Some(());
            }
            self.at = (end + 2).min(bytes.len());
        }
    }

    /// Takes a value of any kind, and returns its range.
    fn value(&mut self) -> Option<Range<usize>> {
        self.skip_blank()?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        loop {
            let matters =
                |byte: &u8| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']' | b',' | b'#' | b'\'');
            let next = self.at + bytes[self.at..].iter().position(matters)?;
            match bytes[next] {
                b'"' => {
                    self.at = next + 1;
                    self.end_of_string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at = next + 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at = next + 1;
                }
                b',' if depth > 0 => self.at = next + 1,
                // A comment or a single-quoted text of YAML is here.
                b'#' | b'\'' => return None,
                // A comma or bracket that ends the value is here.
                _ => self.at = next,
            }
            if depth == 0 {
                return Some(start..self.at);
            }
        }
    }

    /// Takes a list of objects, and returns their ranges.
    fn objects(&mut self) -> Option<Vec<Range<usize>>> {
        self.pass(b'[')?;
        let mut all = Vec::new();
        if self.skip_blank()? == b']' {
            self.at += 1;
            return Some(all);
        }
        loop {
            if self.skip_blank()? != b'{' {
                return None;
            }
            all.push(self.value()?);
            match self.next()? {
                b',' => {}
                b']' => return Some(all),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Option<Vec<&str>> {
        Some(of_list(text)?.into_iter().map(|range| &text[range]).collect())
    }

    #[test]
    fn items_of_lists_in_json_are_found() {
        let text = "\n {\"apiVersion\": \"v1\", \"n\": -1.5 , \"deep\": [{\"items\": [1]}, \"]\"],\n\"kind\":\"List\",\n \
                    \"items\":[{\"a\":\"} \\\" ]\"} ,\n{\"b\":{\"c\":[]}}], \"metadata\": {}}\n";
        assert_eq!(items(text), Some(vec!["{\"a\":\"} \\\" ]\"}", "{\"b\":{\"c\":[]}}"]));
        assert_eq!(items("{\"items\": [], \"kind\": \"PodList\"}"), Some(vec![]));
        let plain = "{\"items\": [{\"a\": 1}, {\"b\": true}], \"kind\": \"List\", \"x\": null}";
        assert_eq!(items(plain), Some(vec!["{\"a\": 1}", "{\"b\": true}"]));
    }

    #[test]
    fn items_of_lists_in_yaml_are_found() {
        let text = "# all\napiVersion: v1\nitems:\n- a: |\n    - b\n\n  c: 1\n# c\n- d: [\n  ]\nkind: List\nmetadata:\n  x: y\n";
        assert_eq!(items(text), Some(vec!["- a: |\n    - b\n\n  c: 1\n# c\n", "- d: [\n  ]\n"]));
        assert_eq!(items("kind: PodList\nitems:\n"), Some(vec![]));
        assert_eq!(items("kind: List\nitems:\n- a: 1"), Some(vec!["- a: 1"]));
    }

    #[test]
    fn what_is_no_list_has_no_items() {
        for text in [
            "",
            "kind: Service\nitems:\n- a: 1\n",
            "kind: List\nitems: []\n",
            "kind: List\nitems:\n  - a: 1\nitems:\n",
            "kind: List\nitems:\n-\n  a: 1\n",
            "kind: List\n- a: 1\n",
            "--- \nkind: List\nitems:\n- a: 1\n",
            "'kind': List\nitems:\n- a: 1\n",
            "{",
            "---\n{\"kind\": \"List\", \"items\": []}",
            "{\"kind\": \"Service\", \"items\": []}",
            "{\"kind\": \"List\"}",
            "{\"kind\": \"List\", \"items\": {}}",
            "{\"kind\": \"List\", \"items\": [1]}",
            "{\"kind\": \"List\", \"items\": [], \"items\": []}",
            "{\"kind\": \"List\", \"items\": [{}]} x",
            "{\"kind\": \"List\", \"items\": [{} # no\n]}",
            "{\"kind\": \"List\", \"items\": [{\"a\": '}'}]}",
            "{\"kind\": \"List\", \"items\": [{\"a\": \"}]}",
            "{kind: List, items: []}",
        ] {
            assert_eq!(items(text), None, "{text:?}");
        }
    }
}
