//! The envelope of an answer: `{"Response": {…, "RequestId": "…"}}`. Answers of success and of
//! failure both have the HTTP status 200.

use serde_json::{Map, Value, json};

use super::error::ApiError;

/// The only content type that clients accept. If it states a character set, the Python SDK takes an
/// error for a success.
pub const CONTENT_TYPE: &str = "application/json";

/// Returns the body of an answer with these members.
pub fn success(mut members: Map<String, Value>, request_id: &str) -> Vec<u8> {
    members.insert("RequestId".to_owned(), request_id.into());
    body(&json!({ "Response": members }))
}

/// Returns the body of an answer with an error.
pub fn failure(error: &ApiError, request_id: &str) -> Vec<u8> {
    body(&json!({ "Response": {
        "Error": { "Code": error.code.as_str(), "Message": error.message },
        "RequestId": request_id,
    }}))
}

fn body(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ErrorCode;

    #[test]
    fn both_kinds_of_answer_carry_the_request_id() {
        let id = "c93dbd9d-0000-4000-8000-9b3f0f7a2d5e";
        let members = Map::from_iter([("TotalCount".to_owned(), json!(0))]);
        assert_eq!(
            String::from_utf8(success(members, id)).unwrap(),
            format!(r#"{{"Response":{{"TotalCount":0,"RequestId":"{id}"}}}}"#)
        );
        let error = ApiError::new(ErrorCode::LbIdNotFound, "lb-00000000 does not exist");
        assert_eq!(
            String::from_utf8(failure(&error, id)).unwrap(),
            format!(
                r#"{{"Response":{{"Error":{{"Code":"InvalidParameter.LBIdNotFound","Message":"lb-00000000 does not exist"}},"RequestId":"{id}"}}}}"#
            )
        );
    }
}
