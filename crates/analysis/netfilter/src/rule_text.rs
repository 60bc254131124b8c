//! The text of a rule as evidence.

use std::fmt::Display;

use uturn_model::Text;

/// The bytes of a rule that are kept at its beginning, and at its end, where its action and comment are.
const BEGINNING: usize = 1200;
const END: usize = 400;

/// The text of a rule. Every end of a walk shows it again, so of a longer one (a map of thousands of
/// elements) the middle is left out.
pub(crate) fn rule_text(rule: impl Display) -> Text {
    let text = rule.to_string();
    let omitted = text.len().saturating_sub(BEGINNING + END);
    if omitted < 100 {
        return text.into();
    }
    let beginning = &text[..text.floor_char_boundary(BEGINNING)];
    let end = &text[text.ceil_char_boundary(text.len() - END)..];
    let omitted = text.len() - beginning.len() - end.len();
    format!("{beginning} [{omitted} bytes are not shown] {end}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_rule_is_left_out() {
        let ordinary = format!("-A C -m comment --comment \"{}\" -j DROP", "c".repeat(256));
        assert_eq!(*rule_text(&ordinary), *ordinary);
        let long =
            format!("ip daddr {{ {} }} drop comment \"ende ä\"", "10.0.0.1, ä, ".repeat(9_000));
        let text = rule_text(&long);
        assert!(text.len() < 1_700, "{}", text.len());
        assert!(
            text.starts_with("ip daddr { 10.0.0.1, ä") && text.ends_with("drop comment \"ende ä\"")
        );
        let omitted = text.split_once(" [").unwrap().1.split_once(" bytes").unwrap().0;
        let shown = text.len() - omitted.len() - " [ bytes are not shown] ".len();
        assert_eq!(omitted.parse::<usize>().unwrap() + shown, long.len());
    }
}
