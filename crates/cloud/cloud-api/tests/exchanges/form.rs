//! The form of a document: the names of its members and what kind of value each has.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Map, Value, json};

/// The form of a value.
#[derive(Debug)]
pub(crate) enum Form {
    Null,
    Text,
    Integer,
    Fraction,
    Boolean,
    List(Vec<Form>),
    Object(Vec<(String, Form)>),
}

impl Form {
    /// Reads a form as `exchanges.txt` has it.
    pub(crate) fn parse(text: &str) -> Self {
        let mut rest = text.chars().peekable();
        let form = read(&mut rest);
        assert_eq!(rest.next(), None, "{text}");
        form
    }

    /// A value of this form.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Text => json!("s"),
            Self::Integer => json!(1),
            Self::Fraction => json!(0.5),
            Self::Boolean => json!(true),
            Self::List(items) => items.iter().map(Self::value).collect(),
            Self::Object(members) => {
                let members = members.iter().map(|(name, form)| (name.clone(), form.value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

fn read(rest: &mut Peekable<Chars<'_>>) -> Form {
    match rest.next() {
        Some('n') => Form::Null,
        Some('s') => Form::Text,
        Some('i') => Form::Integer,
        Some('f') => Form::Fraction,
        Some('b') => Form::Boolean,
        Some('[') => Form::List(read_list(rest, ']', read)),
        Some('{') => Form::Object(read_list(rest, '}', |rest| {
            let mut name = String::new();
            while let Some(letter) = rest.next_if(|letter| *letter != ':') {
                name.push(letter);
            }
            assert_eq!(rest.next(), Some(':'));
            (name, read(rest))
        })),
        other => panic!("{other:?} is no form"),
    }
}

/// Reads items with commas between them up to a bracket.
fn read_list<T>(
    rest: &mut Peekable<Chars<'_>>,
    end: char,
    read_item: impl Fn(&mut Peekable<Chars<'_>>) -> T,
) -> Vec<T> {
    let mut items = Vec::new();
    if rest.next_if_eq(&end).is_some() {
        return items;
    }
    loop {
        items.push(read_item(rest));
        match rest.next() {
            Some(',') => {}
            Some(letter) if letter == end => return items,
            other => panic!("{other:?} instead of a comma or {end}"),
        }
    }
}
