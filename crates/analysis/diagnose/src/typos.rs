//! Names and ports so similar to others that they may be typos.
//!
//! Similarity is a hint and proves nothing. Therefore numbers that people use side by side (8080
//! and 8081, `web-1` and `web-2`) do not count as similar.

use uturn_model::Port;

/// Returns whether one port may be a typo of the other.
///
/// - Two neighbouring digits are swapped, or one is missing: 8008 and 8080, 443 and 8443.
/// - One is a system port, and the other ends with it: 80 and 8080, 53 and 1053. Programs
///   without privileges are set up so, and a missing `targetPort` means the Service's port.
///
/// A digit that differs (8080 and 8081, 3000 and 8000, 8443 and 9443) is not a sign: such ports are
/// used side by side.
pub(crate) fn are_ports_alike(left: Port, right: Port) -> bool {
    let (low, high) = (left.number().min(right.number()), left.number().max(right.number()));
    let (short, long) = (low.to_string(), high.to_string());
    is_raised(left, right) || is_raised(right, left) || is_typo(short.as_bytes(), long.as_bytes())
}

/// Returns whether `high` is a usual replacement of the system port `low` for a program without
/// privileges.
pub(crate) fn is_raised(low: Port, high: Port) -> bool {
    let (low, high) = (low.number(), high.number());
    low < 1024 && high >= 1024 && high.to_string().ends_with(&low.to_string())
}

/// Returns whether two neighbouring digits are swapped, or one of three or more is missing.
fn is_typo(short: &[u8], long: &[u8]) -> bool {
    if short.len() == long.len() {
        return is_swap(short, long);
    }
    let without = |at: usize| long[..at].iter().chain(&long[at + 1..]);
    let is_left_out = |at: usize| without(at).eq(short);
    short.len() >= 3 && long.len() == short.len() + 1 && (0..long.len()).any(is_left_out)
}

fn is_swap<T: PartialEq>(left: &[T], right: &[T]) -> bool {
    let mut differing = (0..left.len()).filter(|at| left[*at] != right[*at]);
    match (differing.next(), differing.next(), differing.next()) {
        (Some(first), Some(second), None) => {
            second == first + 1 && left[first] == right[second] && left[second] == right[first]
        }
        _ => false,
    }
}

/// Returns whether one name may be a typo of the other: they are spelt alike, or one is the
/// beginning of the other, up to a dash: `web` and `web-api`.
pub(crate) fn are_names_alike(left: &str, right: &str) -> bool {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let rest = long.strip_prefix(short).and_then(|rest| rest.strip_prefix('-'));
    are_spelt_alike(left, right) || rest.is_some_and(|rest| !is_number(rest))
}

/// Returns whether two texts differ by a slip.
///
/// - A letter is wrong, missing or added, or two neighbours are swapped, in texts of four
///   letters or more. Digits that differ are not a slip, because they count things.
/// - Only their dashes differ.
pub(crate) fn are_spelt_alike(left: &str, right: &str) -> bool {
    if left == right {
        return false;
    }
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let bare = |name: &str| name.replace(['-', '_', '.'], "");
    bare(short) == bare(long) || short.len() >= 4 && is_letter_off(short, long)
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('v').unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether the names differ in one letter or in two swapped neighbours.
fn is_letter_off(short: &str, long: &str) -> bool {
    let (short, long): (Vec<char>, Vec<char>) = (short.chars().collect(), long.chars().collect());
    if short.len() == long.len() {
        let mut differing = (0..short.len()).filter(|at| short[*at] != long[*at]);
        return match (differing.next(), differing.next()) {
            (Some(at), None) => !short[at].is_ascii_digit() && !long[at].is_ascii_digit(),
            _ => is_swap(&short, &long),
        };
    }
    let is_extra = |at: &usize| {
        let without = long[..*at].iter().chain(&long[*at + 1..]);
        !long[*at].is_ascii_digit() && without.eq(&short)
    };
    long.len() == short.len() + 1 && (0..long.len()).any(|at| is_extra(&at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_slips() {
        let alike = |a: u16, b: u16| are_ports_alike(Port::new(a).unwrap(), Port::new(b).unwrap());
        let slips = [(8008, 8080), (80, 8080), (443, 8443), (53, 1053), (800, 8000), (9009, 9090)];
        for (a, b) in slips {
            assert!(alike(a, b) && alike(b, a), "{a} {b}");
        }
        let others = [
            (8080, 8081),
            (80, 81),
            (3000, 8000),
            (8443, 9443),
            (9090, 9100),
            (80, 443),
            (80, 3000),
        ];
        for (a, b) in others {
            assert!(!alike(a, b) && !alike(b, a), "{a} {b}");
        }
    }

    #[test]
    fn names_that_are_slips() {
        let slips = [
            ("fronted", "frontend"),
            ("fornt", "front"),
            ("web", "web-api"),
            ("webapi", "web-api"),
            ("checkout", "chekout"),
        ];
        for (a, b) in slips {
            assert!(are_names_alike(a, b) && are_names_alike(b, a), "{a} {b}");
        }
        assert!(!are_spelt_alike("web", "web-api") && are_spelt_alike("webapi", "web-api"));
        let others = [("web", "web"), ("web-1", "web-2"), ("web", "web-2"), ("app-v1", "app-v2")];
        for (a, b) in others.into_iter().chain([("api", "app"), ("web", "web-v2"), ("a", "b")]) {
            assert!(!are_names_alike(a, b) && !are_names_alike(b, a), "{a} {b}");
        }
    }
}
