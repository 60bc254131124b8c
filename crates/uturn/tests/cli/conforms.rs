//! Holds results in JSON against their published schemas.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

/// Every place at which a value does not conform to a schema, with the reason.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<String> {
    violations_of(&validator(schema), value)
}

/// Fails the test if a result does not conform to the schema of that name, or has a field that
/// the schema does not name.
pub(crate) fn assert_conforms(name: &str, result: &Value) {
    static VALIDATORS: LazyLock<Vec<(&str, Validator)>> = LazyLock::new(|| {
        let schemas = uturn_report::schema::published().into_iter();
        schemas.map(|(name, schema)| (name, validator(&closed(schema.to_value())))).collect()
    });
    let (_, validator) = VALIDATORS.iter().find(|(each, _)| *each == name).unwrap();
    assert_eq!(violations_of(validator, result), [""; 0], "{name}: {result:#}");
}

fn violations_of(validator: &Validator, value: &Value) -> Vec<String> {
    let errors = validator.iter_errors(value);
    errors.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn validator(schema: &Value) -> Validator {
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

/// The schema with all objects closed: consumers must expect fields that are added later, but
/// today no result has a field that its schema does not name.
pub(crate) fn closed(mut schema: Value) -> Value {
    close(&mut schema, true);
    schema
}

fn close(schema: &mut Value, is_whole_object: bool) {
    match schema {
        Value::Object(words) => {
            let has_fields = words.contains_key("properties");
            if has_fields && is_whole_object {
                words.insert("unevaluatedProperties".into(), false.into());
            }
            for (word, inner) in words.iter_mut() {
                let is_part = has_fields && matches!(&**word, "anyOf" | "oneOf" | "allOf");
                match inner {
                    Value::Array(all) => all.iter_mut().for_each(|each| close(each, !is_part)),
                    each => close(each, true),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|each| close(each, true)),
        _ => {}
    }
}
