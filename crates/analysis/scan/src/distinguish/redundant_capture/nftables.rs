//! The tables of nftables without what does not matter: their origin, and the order of the elements
//! of sets and maps.

use uturn_model::{Family, Text};
use uturn_netfilter::NodeState;
use uturn_netfilter::hash::FastMap;
use uturn_netfilter::nft::{self, TableFamily};

/// The key of a table.
type TableKey<'s> = (TableFamily, &'s str);

/// The content of a table.
#[derive(Debug, PartialEq)]
pub(super) struct TableContent<'s> {
    flags: &'s [Text],
    comment: Option<&'s Text>,
    /// Named objects, by kind and name.
    objects: FastMap<(&'s str, &'s str), &'s nft::Object>,
    sets: FastMap<&'s str, SetContent<'s>>,
    flowtables: FastMap<&'s str, &'s nft::Flowtable>,
    chains: FastMap<&'s str, &'s nft::Chain>,
}

/// Returns the tables of a kernel that packets of these families meet.
pub(super) fn tables<'s>(
    families: &[Family],
    state: &'s NodeState,
) -> FastMap<TableKey<'s>, TableContent<'s>> {
    let is_met = |table: &&nft::Table| match table.family {
        TableFamily::Ip => families.contains(&Family::V4),
        TableFamily::Ip6 => families.contains(&Family::V6),
        _ => true,
    };
    let tables = state.nft.tables.iter().filter(is_met).filter(|table| state.is_walked(table));
    tables.map(|table| ((table.family, &*table.name), TableContent::of(table))).collect()
}

impl<'s> TableContent<'s> {
    fn of(table: &'s nft::Table) -> Self {
        // No `..`: a new field has to be compared too.
        let nft::Table {
            family: _,
            name: _,
            flags,
            comment,
            objects,
            sets,
            flowtables,
            chains,
            origin: _,
        } = table;
        let objects = objects.iter().map(|object| ((&*object.kind, &*object.name), object));
        let sets = sets.iter().map(|set| (&*set.name, SetContent::of(set)));
        let flowtables = flowtables.iter().map(|flowtable| (&*flowtable.name, flowtable));
        let chains = chains.iter().map(|chain| (&*chain.name, chain));
        Self {
            flags,
            comment: comment.as_ref(),
            objects: objects.collect(),
            sets: sets.collect(),
            flowtables: flowtables.collect(),
            chains: chains.collect(),
        }
    }
}

/// A set or map with its elements in any order.
#[derive(Debug, PartialEq)]
struct SetContent<'s> {
    without_elements: nft::Set,
    /// The number of times that the set has each element.
    elements: FastMap<&'s nft::Element, usize>,
}

impl<'s> SetContent<'s> {
    fn of(set: &'s nft::Set) -> Self {
        let mut elements = FastMap::default();
        for element in &set.elements {
            *elements.entry(element).or_default() += 1;
        }
        Self { without_elements: set.without_elements(), elements }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(elements: &str) -> NodeState {
        let text = format!(
            "table ip kube-proxy {{\n\tmap m {{\n\t\ttype ipv4_addr : verdict\n\t\t\
             elements = {{ {elements} }}\n\t}}\n\n\tchain a {{\n\t\taccept\n\t}}\n\n\t\
             chain b {{\n\t\tdrop\n\t}}\n}}\n"
        );
        NodeState { nft: nft::parse("x", &text).unwrap(), ..NodeState::default() }
    }

    #[test]
    fn elements_of_maps_have_no_order_and_keep_their_values() {
        let [state, reordered, changed, one_less] = [
            "10.0.0.1 : goto a, 10.0.0.2 : goto b",
            "10.0.0.2 : goto b,\n\t\t\t     10.0.0.1 : goto a",
            "10.0.0.1 : goto b, 10.0.0.2 : goto a",
            "10.0.0.1 : goto a",
        ]
        .map(map);
        let all = |state| tables(&Family::BOTH, state);
        assert_eq!(all(&state), all(&reordered));
        assert_ne!(all(&state), all(&changed));
        assert_ne!(all(&state), all(&one_less));
    }

    #[test]
    fn tables_of_two_families_are_two_tables() {
        let table = |family: &str| {
            let text = format!("table {family} t {{\n\tchain a {{\n\t\taccept\n\t}}\n}}\n");
            NodeState { nft: nft::parse("x", &text).unwrap(), ..NodeState::default() }
        };
        let [v4, v6] = ["ip", "ip6"].map(table);
        assert_ne!(tables(&Family::BOTH, &v4), tables(&Family::BOTH, &v6));
        assert!(tables(&[Family::V4], &v6).is_empty());
    }
}
