//! What all mappings of the documents have in common.

/// Mappings whose fields have the names of YAML, and no others.
macro_rules! documents {
    ($($(#[$doc:meta])* $visibility:vis struct $name:ident {
        $($(#[$attribute:meta])* $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        $visibility struct $name {
            $($(#[$attribute])* pub(in crate::load_balancer) $field: $type,)*
        }
    )*};
}
