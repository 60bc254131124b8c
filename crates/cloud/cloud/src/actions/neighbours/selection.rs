//! The selection of a list's items by ids or by filters, but not both.

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

/// The most ids of a request.
const MAX_IDS: usize = 100;
/// The most filters of a request.
const MAX_FILTERS: usize = 10;

/// A filter: its name, and the values, one of which has to match.
pub(super) type NamedValues<'r> = (&'r str, &'r [String]);

/// The limits of a service's lists, and its error codes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The names of the filters. `tag:` stands for every name that begins with it.
    pub(super) filters: &'static [&'static str],
    /// The filter that is equivalent to the ids of the request.
    pub(super) id_filter: &'static str,
    /// The most values of a filter.
    pub(super) max_values: usize,
    /// The code for a request with both ids and filters.
    pub(super) both: ErrorCode,
    /// The code for an unknown filter.
    pub(super) unknown: ErrorCode,
    /// The code for too many ids, filters or values.
    pub(super) too_many: ErrorCode,
}

/// A selection by ids or by filters.
#[derive(Clone, Debug)]
pub(super) struct Selection<'r> {
    filters: Vec<NamedValues<'r>>,
    id_filter: &'static str,
}

impl<'r> Selection<'r> {
    /// Reads the ids and the filters of a request.
    pub(super) fn of(
        ids: Option<&'r Vec<String>>,
        filters: Vec<NamedValues<'r>>,
        rules: Rules,
    ) -> Result<Self, ApiError> {
        let too_many = |what: String, limit: usize| {
            Err(ApiError::new(rules.too_many, format!("{what}; {limit} are allowed")))
        };
        let ids = ids.map(Vec::as_slice).unwrap_or_default();
        if !ids.is_empty() && !filters.is_empty() {
            let message = "ids and the parameter `Filters` cannot be in one request";
            return Err(ApiError::new(rules.both, message));
        }
        if ids.len() > MAX_IDS {
            return too_many(format!("{} ids", ids.len()), MAX_IDS);
        }
        if filters.len() > MAX_FILTERS {
            return too_many(format!("{} filters", filters.len()), MAX_FILTERS);
        }
        for (name, values) in &filters {
            let is_known = |known: &&str| {
                if known.ends_with(':') {
                    name.len() > known.len() && name.starts_with(*known)
                } else {
                    name == known
                }
            };
            if !rules.filters.iter().any(is_known) {
                let known = rules.filters.join(", ");
                let message = format!("there is no filter {name:?}; there are {known}");
                return Err(ApiError::new(rules.unknown, message));
            }
            if values.len() > rules.max_values {
                let what = format!("the filter {name} has {} values", values.len());
                return too_many(what, rules.max_values);
            }
        }
        let id_filter = rules.id_filter;
        let filters = if ids.is_empty() { filters } else { vec![(id_filter, ids)] };
        Ok(Self { filters, id_filter })
    }

    /// Returns the ids to list; `None` for all.
    pub(super) fn ids(&self) -> Option<&'r [String]> {
        self.values(self.id_filter)
    }

    /// Returns the values of the first filter with this name.
    pub(super) fn values(&self, name: &str) -> Option<&'r [String]> {
        self.filters.iter().find(|(known, _)| *known == name).map(|(_, values)| *values)
    }

    /// Returns whether an item passes every filter. `value_of` returns the item's values for a
    /// filter's name, one of which has to be among the filter's values.
    pub(super) fn passes(&self, value_of: impl Fn(&str) -> Vec<String>) -> bool {
        self.filters.iter().all(|(name, wanted)| {
            let found = value_of(name);
            found.iter().any(|value| wanted.contains(value))
        })
    }
}

/// Refuses a list of ids if one of them was not found.
pub(super) fn check_found<'f>(
    wanted: Option<&Vec<String>>,
    found: impl Fn(&str) -> bool + 'f,
    code: ErrorCode,
) -> Result<(), ApiError> {
    let missing = wanted.into_iter().flatten().find(|id| !found(id));
    missing.map_or(Ok(()), |id| Err(ApiError::new(code, format!("{id} does not exist"))))
}
