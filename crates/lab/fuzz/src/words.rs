//! Targets for the short texts of the command line: clients, destinations, names, versions, fixed
//! terms.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use uturn_model::{
    Client, Destination, Mechanism, Name, NamespacedName, Port, Protocol, ProxyMode, Version,
};

use crate::text;

/// Reads a value of `--from`.
pub fn client(data: &[u8]) -> bool {
    printed_is_read_back::<Client>(&text(data))
}

/// Reads a value of `--to`.
pub fn destination(data: &[u8]) -> bool {
    printed_is_read_back::<Destination>(&text(data))
}

/// Reads names, names with a namespace, and ports.
pub fn names(data: &[u8]) -> bool {
    let text = text(data);
    let name = Name::new(&*text);
    if let Ok(name) = &name {
        assert_eq!(name.to_string(), text, "a name is kept as it was written");
    }
    let namespaced = printed_is_read_back::<NamespacedName>(&text);
    let port = printed_is_read_back::<Port>(&text);
    name.is_ok() || namespaced || port
}

/// Reads versions of components.
pub fn version(data: &[u8]) -> bool {
    printed_is_read_back::<Version>(&text(data))
}

/// Reads words of fixed lists: mechanisms, modes of kube-proxy, protocols.
pub fn terms(data: &[u8]) -> bool {
    let text = text(data);
    [
        printed_is_read_back::<Mechanism>(&text),
        printed_is_read_back::<ProxyMode>(&text),
        printed_is_read_back::<Protocol>(&text),
    ]
    .contains(&true)
}

/// Reads a text. An accepted text is printed as one with the same meaning.
fn printed_is_read_back<T>(text: &str) -> bool
where
    T: FromStr + Display + Debug + PartialEq,
    T::Err: Display,
{
    let value = match text.parse::<T>() {
        Ok(value) => value,
        Err(fault) => {
            assert!(!fault.to_string().is_empty(), "a refusal says why");
            return false;
        }
    };
    let printed = value.to_string();
    match printed.parse::<T>() {
        Ok(again) => assert_eq!(again, value, "read from {text:?}, printed as {printed:?}"),
        Err(fault) => panic!("read from {text:?}, printed as {printed:?}, refused: {fault}"),
    }
    true
}
