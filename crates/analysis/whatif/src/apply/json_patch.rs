//! The operations of a JSON patch (RFC 6902) on an object.

use uturn_document::edit::Tree;
use uturn_model::misspelt;

use crate::change::Operation;

/// Returns a tree after operations.
pub(super) fn patched(tree: &Tree, operations: &[Operation]) -> Result<Tree, String> {
    let mut new = tree.clone();
    for operation in operations {
        one(&mut new, operation)?;
    }
    Ok(new)
}

fn one(tree: &mut Tree, operation: &Operation) -> Result<(), String> {
    match operation {
        Operation::Add(path, value) => add(tree, path, value.clone()),
        Operation::Remove(path) => remove(tree, path).map(|_| ()),
        Operation::Replace(path, value) => {
            *at(tree, path)? = value.clone();
            Ok(())
        }
        Operation::Test(path, value) => {
            let found = at(tree, path)?;
            if found == value {
                Ok(())
            } else {
                Err(format!("test of {} fails: another value is there", pointer(path)))
            }
        }
        Operation::Move(from, path) => {
            let value = remove(tree, from)?;
            add(tree, path, value)
        }
        Operation::Copy(from, path) => {
            let value = at(tree, from)?.clone();
            add(tree, path, value)
        }
    }
}

fn at<'t>(tree: &'t mut Tree, path: &[String]) -> Result<&'t mut Tree, String> {
    let mut found = tree;
    for (depth, step) in path.iter().enumerate() {
        let missing = |hint: String| format!("{} does not exist{hint}", pointer(&path[..=depth]));
        found = match found {
            Tree::Map(entries) => match entries.iter().position(|(key, _)| key == step) {
                Some(place) => &mut entries[place].1,
                None => {
                    let keys = entries.iter().map(|(key, _)| key.as_str());
                    return Err(missing(misspelt::hint(step, keys)));
                }
            },
            Tree::List(items) => {
                let count = items.len();
                let item = step.parse::<usize>().ok().and_then(|at| items.get_mut(at));
                item.ok_or_else(|| missing(format!(": the list has {count} items")))?
            }
            Tree::Text(_) | Tree::Bare(_) => return Err(missing(String::new())),
        };
    }
    Ok(found)
}

fn add(tree: &mut Tree, path: &[String], value: Tree) -> Result<(), String> {
    let Some((last, above)) = path.split_last() else {
        *tree = value;
        return Ok(());
    };
    match at(tree, above)? {
        Tree::Map(entries) => {
            entries.retain(|(key, _)| key != last);
            entries.push((last.clone(), value));
        }
        Tree::List(items) if last == "-" => items.push(value),
        Tree::List(items) => {
            let count = items.len();
            let place = last.parse::<usize>().ok().filter(|place| *place <= count);
            let place =
                place.ok_or_else(|| format!("{}: the list has {count} items", pointer(path)))?;
            items.insert(place, value);
        }
        Tree::Text(_) | Tree::Bare(_) => {
            return Err(format!("{} holds no mapping and no list", pointer(above)));
        }
    }
    Ok(())
}

fn remove(tree: &mut Tree, path: &[String]) -> Result<Tree, String> {
    let value = at(tree, path)?.clone();
    let Some((last, above)) = path.split_last() else {
        return Err("the whole object cannot be removed so: use --delete".to_owned());
    };
    match at(tree, above)? {
        Tree::Map(entries) => entries.retain(|(key, _)| key != last),
        Tree::List(items) => {
            if let Ok(place) = last.parse::<usize>() {
                items.remove(place);
            }
        }
        Tree::Text(_) | Tree::Bare(_) => {}
    }
    Ok(value)
}

/// Formats a path as a JSON pointer.
fn pointer(path: &[String]) -> String {
    path.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
}
