//! Finds the names that are most like one that does not exist.

use std::cmp::Reverse;

/// Sorts names by likeness: first those that have the most letters in common with the wanted name,
/// counted from the beginning and from the end.
pub fn sort_likest_first<N: AsRef<str>>(names: &mut [N], wanted: &str) {
    let alike = |name: &N| {
        let name = name.as_ref();
        let ahead = name.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
        let behind = name.chars().rev().zip(wanted.chars().rev()).take_while(|(a, b)| a == b);
        ahead + behind.count()
    };
    names.sort_by_key(|name| Reverse(alike(name)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_nearest_to_what_was_meant() {
        let mut names = ["front", "api", "l7-host-one-node", "no-endpoint"];
        sort_likest_first(&mut names, "l7-host-one-nod");
        assert_eq!(names[0], "l7-host-one-node");
        sort_likest_first(&mut names, "frnt");
        assert_eq!(names[0], "front");
    }
}
