//! Fits text into its place.

use crate::xml::cut;

/// Returns at most `most` characters from the end of a text: the end of a path is most informative.
pub(super) fn tail(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let rest: String = text.chars().skip(count + 1 - most).collect();
    format!("…{rest}")
}

/// Breaks a text into at most `rows` rows of at most `most` characters. A word that is longer
/// than a row is broken.
pub(super) fn wrapped(text: &str, most: usize, rows: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut row = String::new();
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let used = row.chars().count();
            let space = usize::from(used > 0);
            if used + space + word.len() <= most {
                if space > 0 {
                    row.push(' ');
                }
                row.extend(&word);
                break;
            }
            if used > 0 {
                all.push(std::mem::take(&mut row));
                continue;
            }
            row.extend(word.drain(..most.max(1)));
            all.push(std::mem::take(&mut row));
        }
    }
    if !row.is_empty() {
        all.push(row);
    }
    if all.len() > rows {
        all.truncate(rows);
        if let Some(last) = all.last_mut() {
            *last = cut(&format!("{last} …"), most);
            if !last.ends_with('…') {
                last.push('…');
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit() {
        for (text, most, rows) in [
            ("picks 10.0.0.11:30080 on node n1, keeps the client's address", 30, 3),
            ("a-word-that-is-much-longer-than-any-row-can-ever-be x", 10, 2),
            ("", 10, 2),
            ("ab", 1, 9),
        ] {
            let all = wrapped(text, most, rows);
            assert!(all.len() <= rows, "{all:?}");
            assert!(all.iter().all(|row| row.chars().count() <= most), "{all:?}");
        }
        assert_eq!(wrapped("one two three", 7, 2), ["one two", "three"]);
        assert!(wrapped("one two three four", 7, 2)[1].ends_with('…'));
        assert_eq!(tail("examples/shop/nodes.yaml:5", 12), "…des.yaml:5".replace("…des", "…odes"));
    }
}
