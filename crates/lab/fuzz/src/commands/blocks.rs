//! Finds the blocks of a text: a line, and the lines below it that are indented more, whatever its
//! format.

use std::ops::Range;

/// Returns the lines of a text, each with its end.
pub(super) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns the lines of the block that begins with a line. The block includes the lines that are
/// indented more, the items of a list below a key, and a brace that ends the block.
pub(super) fn block(lines: &[&str], first: usize) -> Range<usize> {
    let indent = indent(lines[first]);
    let has_items = !is_item(lines[first]) && lines[first].trim_end().ends_with(':');
    let is_inside = |line: &&str| {
        let own = self::indent(line);
        line.trim().is_empty() || own > indent || own == indent && has_items && is_item(line)
    };
    let below = lines[first + 1..].iter().take_while(|line| is_inside(line)).count();
    let mut last = first + 1 + below;
    let closes = |line: &&&str| self::indent(line) == indent && line.trim_start().starts_with('}');
    if lines[first].trim_end().ends_with('{') && lines.get(last).filter(closes).is_some() {
        last += 1;
    }
    first..last
}

/// Returns whether a line starts an item of a list.
pub(super) fn is_item(line: &str) -> bool {
    line.trim_start().starts_with("- ")
}

/// Returns the indentation of a line.
pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, first: usize) -> String {
        let lines = lines(text);
        lines[block(&lines, first)].concat()
    }

    #[test]
    fn a_block_is_a_line_with_what_is_below_it() {
        let text = "spec:\n  ports:\n  - port: 80\n    name: a\n  - port: 81\n  type: x\n";
        assert_eq!(of(text, 0), text);
        assert_eq!(of(text, 1), "  ports:\n  - port: 80\n    name: a\n  - port: 81\n");
        assert_eq!(of(text, 2), "  - port: 80\n    name: a\n");
        assert_eq!(of(text, 5), "  type: x\n");
        let rules = "chain a {\n\tdrop\n}\nchain b {\n}\n";
        assert_eq!(of(rules, 0), "chain a {\n\tdrop\n}\n");
        assert_eq!(of("*nat\n-A b\nCOMMIT", 1), "-A b\n");
    }
}
