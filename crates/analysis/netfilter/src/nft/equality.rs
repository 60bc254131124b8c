//! Parts of a ruleset are equal regardless of where they were written.

use super::{Chain, Flowtable, Object, Rule, Set, Table};

/// Implements equality that ignores origins.
macro_rules! equal_but_origin {
    ($kind:ident: $($field:ident),+) => {
        impl PartialEq for $kind {
            fn eq(&self, other: &Self) -> bool {
                $(self.$field == other.$field)&&+
            }
        }

        impl Eq for $kind {}
    };
}

equal_but_origin!(Table: family, name, flags, comment, objects, sets, flowtables, chains);
equal_but_origin!(Chain: name, base, comment, rules);
equal_but_origin!(Rule: statements, comment);
equal_but_origin!(Set: name, key, typeof_key, data, typeof_data, flags, timeout, gc_interval, size, policy, auto_merge, statements, comment, elements);
equal_but_origin!(Object: kind, name, body);
equal_but_origin!(Flowtable: name, priority, devices, lines);
