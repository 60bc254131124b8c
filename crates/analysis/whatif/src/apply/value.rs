//! Sets a value in an object.

use uturn_document::edit::{At, Tree};
use uturn_model::misspelt;

use crate::change::path::shown;

/// Returns a tree with a value at a place. Missing mappings on the way are made if `may_have` accepts
/// their keys. `None` removes what is there.
pub(super) fn with_value(
    tree: &Tree,
    path: &[At],
    value: Option<&Tree>,
    may_have: &dyn Fn(&[At]) -> Result<(), String>,
) -> Result<Tree, String> {
    let mut new = tree.clone();
    descend(&mut new, path, 0, value, may_have)?;
    Ok(new)
}

fn descend(
    tree: &mut Tree,
    path: &[At],
    depth: usize,
    value: Option<&Tree>,
    may_have: &dyn Fn(&[At]) -> Result<(), String>,
) -> Result<(), String> {
    let here = || shown(&path[..=depth]);
    let is_last = depth + 1 == path.len();
    if *tree == Tree::bare("null") {
        *tree = Tree::Map(Vec::new());
    }
    match (&path[depth], tree) {
        (At::Key(key), Tree::Map(entries)) => {
            let place = entries.iter().position(|(own, _)| own == key);
            let Some(place) = place else {
                may_have(&path[..=depth])?;
                let Some(value) = value else {
                    let keys = entries.iter().map(|(key, _)| key.as_str());
                    return Err(format!("{} is not there{}", here(), misspelt::hint(key, keys)));
                };
                let mut new = Tree::bare("null");
                if is_last {
                    new = value.clone();
                } else {
                    if !matches!(path[depth + 1], At::Key(_)) {
                        return Err(format!("{} is not there: a list has to be set whole", here()));
                    }
                    descend(&mut new, path, depth + 1, Some(value), may_have)?;
                }
                entries.push((key.clone(), new));
                return Ok(());
            };
            match (is_last, value) {
                (true, Some(value)) => entries[place].1 = value.clone(),
                (true, None) => {
                    entries.remove(place);
                }
                (false, _) => descend(&mut entries[place].1, path, depth + 1, value, may_have)?,
            }
            Ok(())
        }
        (At::Key(key), Tree::List(items)) => Err(format!(
            "{}: a list of {} items is there: name one, such as [0] or [name=…], before {key}",
            shown(&path[..depth]),
            items.len()
        )),
        (step, Tree::List(items)) => {
            let place = match step {
                At::Item(at) => (*at < items.len()).then_some(*at),
                At::Where(key, wanted) => items
                    .iter()
                    .position(|item| item.get(key).and_then(Tree::as_str) == Some(wanted)),
                At::Key(_) => None,
            };
            let Some(place) = place else { return Err(missing_item(step, items, &here())) };
            match (is_last, value) {
                (true, Some(value)) => items[place] = value.clone(),
                (true, None) => {
                    items.remove(place);
                }
                (false, _) => descend(&mut items[place], path, depth + 1, value, may_have)?,
            }
            Ok(())
        }
        (_, Tree::Map(_)) => {
            Err(format!("{}: a mapping is there, and no list", shown(&path[..depth])))
        }
        (_, Tree::Text(_) | Tree::Bare(_)) => {
            Err(format!("{}: a single value is there", shown(&path[..depth])))
        }
    }
}

fn missing_item(step: &At, items: &[Tree], here: &str) -> String {
    let count = items.len();
    match step {
        At::Where(key, wanted) => {
            let own: Vec<&str> =
                items.iter().filter_map(|item| item.get(key).and_then(Tree::as_str)).collect();
            let hint = misspelt::hint(wanted, own.iter().copied());
            match own.as_slice() {
                [] => format!("{here}: no item has the key {key}"),
                some => format!("{here}: no such item; there are {}{hint}", some.join(", ")),
            }
        }
        _ => format!("{here}: the list has {count} items, counted from 0"),
    }
}
