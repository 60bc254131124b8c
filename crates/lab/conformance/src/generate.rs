//! Random cases that depend only on a seed.

use uturn_dice::Dice;
use uturn_model::Version;

use crate::case::Case;
use crate::{services, settings};

/// Returns the random case of this seed and number.
pub(crate) fn case(seed: u64, number: u64, version: Version) -> Case {
    let mut dice = Dice::new(seed.wrapping_add(number.wrapping_mul(0x1000_0001)));
    let dual = !dice.once_in(3);
    let mut items = settings::around(&mut dice, version, dual);
    for number in 1..=6 + dice.below(14) {
        items.extend(services::service(&mut dice, number, dual));
    }
    Case { name: format!("seed-{seed}-{number}"), items }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::mode::Mode;

    const VERSION: Version = Version::new(1, 34, 4);

    #[test]
    fn a_seed_gives_the_same_case_and_another_seed_another() {
        assert_eq!(case(1, 2, VERSION), case(1, 2, VERSION));
        assert_ne!(case(1, 2, VERSION).items, case(1, 3, VERSION).items);
    }

    #[test]
    fn uturn_reads_every_case_and_finds_its_services() {
        for number in 0..50 {
            let case = case(5, number, VERSION);
            for mode in Mode::ALL {
                let cluster = case.cluster(case.uturn_input(mode, &[]).unwrap()).unwrap();
                let made = case.items.iter().filter(|item| item["kind"] == "Service").count();
                assert_eq!(cluster.services.len(), made + 1);
                assert_eq!(cluster.proxy.mode.value, mode.proxy());
            }
        }
    }

    #[test]
    fn node_ports_are_taken_once() {
        for number in 0..50 {
            let mut taken = BTreeSet::new();
            for item in &case(9, number, VERSION).items {
                for port in item["spec"]["ports"].as_array().into_iter().flatten() {
                    if let Some(port) = port["nodePort"].as_u64() {
                        assert!(taken.insert(port), "{port}");
                    }
                }
            }
        }
    }
}
