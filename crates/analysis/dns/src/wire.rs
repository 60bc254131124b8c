//! The DNS wire format (RFC 1035), as far as address lookups need it.
//!
//! Written by hand: four functions suffice, and the large DNS crates bring a resolver, an
//! asynchronous runtime or both.

use std::net::IpAddr;

use crate::message::{Data, Question, Rcode, Record, RecordType, Reply};

/// The longest name in text form, without the dot at its end.
const MAX_NAME: usize = 253;
/// The maximum number of labels and pointers of a compressed name.
const MAX_LABELS: usize = 255;
const HEADER: usize = 12;

const CLASS_IN: u16 = 1;
const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_HINFO: u16 = 13;
const TYPE_AAAA: u16 = 28;

const RESPONSE: u8 = 0x80;
const AUTHORITATIVE: u8 = 0x04;
const TRUNCATED: u8 = 0x02;
const RECURSION_DESIRED: u8 = 0x01;
const RECURSION_AVAILABLE: u8 = 0x80;
/// The time to live of encoded records, in seconds.
const TTL: u32 = 30;

/// A decoded response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The id of the query.
    pub id: u16,
    /// Whether records are missing because they did not fit.
    pub truncated: bool,
    /// The response code and the records.
    pub reply: Reply,
}

/// Encodes a query. Returns `None` if the name is not a domain name or the type has no number here.
pub fn encode_query(id: u16, question: &Question) -> Option<Vec<u8>> {
    let mut bytes = Vec::from(id.to_be_bytes());
    bytes.extend([RECURSION_DESIRED, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    put_name(&question.name, &mut bytes)?;
    bytes.extend(number_of(&question.kind)?.to_be_bytes());
    bytes.extend(CLASS_IN.to_be_bytes());
    Some(bytes)
}

/// Decodes a query: its id and question. A type other than A and AAAA, or of another class than IN,
/// becomes `TYPE` and its number. Returns `None` if the message is malformed.
pub fn decode_query(bytes: &[u8]) -> Option<(u16, Question)> {
    let (name, end) = name_at(bytes, HEADER)?;
    let (number, class) = (u16_at(bytes, end)?, u16_at(bytes, end + 2)?);
    let kind = match (number, class) {
        (TYPE_A, CLASS_IN) => RecordType::A,
        (TYPE_AAAA, CLASS_IN) => RecordType::Aaaa,
        _ => RecordType::Other(format!("TYPE{number}")),
    };
    Some((u16_at(bytes, 0)?, Question::new(&name, kind)))
}

/// Encodes the response to a query: the query's id and question, and those records of the reply
/// that are addresses or CNAMEs. Returns `None` if the query or a name is malformed, or if the
/// code needs EDNS.
pub fn encode_response(query: &[u8], reply: &Reply) -> Option<Vec<u8>> {
    let (_, end) = name_at(query, HEADER)?;
    let code = u8::try_from(reply.rcode.number()).ok().filter(|code| *code < 16)?;
    let encoded = |record: &&Record| record.data != Data::Other;
    let count = u16::try_from(reply.records.iter().filter(encoded).count()).ok()?;
    let mut bytes = Vec::from(query.get(..2)?);
    bytes.extend([RESPONSE | AUTHORITATIVE | RECURSION_DESIRED, RECURSION_AVAILABLE | code]);
    bytes.extend([0, 1]);
    bytes.extend(count.to_be_bytes());
    bytes.extend([0, 0, 0, 0]);
    bytes.extend(query.get(HEADER..end + 4)?);
    for record in reply.records.iter().filter(encoded) {
        put_name(&record.name, &mut bytes)?;
        let mut data = Vec::new();
        let number = match &record.data {
            Data::Address(IpAddr::V4(ip)) => {
                data.extend(ip.octets());
                TYPE_A
            }
            Data::Address(IpAddr::V6(ip)) => {
                data.extend(ip.octets());
                TYPE_AAAA
            }
            Data::Cname(name) => {
                put_name(name, &mut data)?;
                TYPE_CNAME
            }
            Data::Other => continue,
        };
        bytes.extend(number.to_be_bytes());
        bytes.extend(CLASS_IN.to_be_bytes());
        bytes.extend(TTL.to_be_bytes());
        bytes.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        bytes.extend(data);
    }
    Some(bytes)
}

/// Decodes a response. Returns `None` if the response is malformed, or if its code is unknown.
pub fn decode_response(bytes: &[u8]) -> Option<Response> {
    let flags = *bytes.get(2)?;
    let rcode = Rcode::from_number(u16::from(bytes.get(3)? & 0x0f))?;
    let mut at = HEADER;
    for _ in 0..u16_at(bytes, 4)? {
        at = name_at(bytes, at)?.1 + 4;
    }
    let mut records = Vec::new();
    for _ in 0..u16_at(bytes, 6)? {
        let (name, end) = name_at(bytes, at)?;
        let length = usize::from(u16_at(bytes, end + 8)?);
        let data = bytes.get(end + 10..end + 10 + length)?;
        let data = match u16_at(bytes, end)? {
            TYPE_A => Data::Address(<[u8; 4]>::try_from(data).ok()?.into()),
            TYPE_AAAA => Data::Address(<[u8; 16]>::try_from(data).ok()?.into()),
            TYPE_CNAME => Data::Cname(name_at(bytes, end + 10)?.0),
            _ => Data::Other,
        };
        records.push(Record { name, data });
        at = end + 10 + length;
    }
    let other_records = u16_at(bytes, 8)? > 0 || u16_at(bytes, 10)? > 0;
    let reply = Reply { rcode, records, other_records };
    Some(Response { id: u16_at(bytes, 0)?, truncated: flags & TRUNCATED != 0, reply })
}

fn number_of(kind: &RecordType) -> Option<u16> {
    match kind {
        RecordType::A => Some(TYPE_A),
        RecordType::Aaaa => Some(TYPE_AAAA),
        RecordType::Other(word) if word == "HINFO" => Some(TYPE_HINFO),
        RecordType::Other(word) => word.strip_prefix("TYPE")?.parse().ok(),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

/// Appends a name. A dot at its end is optional.
fn put_name(name: &str, into: &mut Vec<u8>) -> Option<()> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > MAX_NAME {
        return None;
    }
    for label in name.split('.').filter(|_| !name.is_empty()) {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?;
        into.push(length);
        into.extend(label.as_bytes());
    }
    into.push(0);
    Some(())
}

/// Reads a name with the dot at its end, following compression pointers. Returns it with the
/// position after it.
fn name_at(bytes: &[u8], mut at: usize) -> Option<(String, usize)> {
    let (mut name, mut end) = (String::new(), None);
    // Pointers may form a loop.
    for _ in 0..MAX_LABELS {
        let length = usize::from(*bytes.get(at)?);
        match length {
            0 => {
                if name.is_empty() {
                    name.push('.');
                }
                return Some((name, end.unwrap_or(at + 1)));
            }
            1..64 => {
                name.push_str(&String::from_utf8_lossy(bytes.get(at + 1..at + 1 + length)?));
                name.push('.');
                at += 1 + length;
            }
            192.. => {
                end.get_or_insert(at + 2);
                at = usize::from(u16_at(bytes, at)? & 0x3fff);
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question::new("web.shop.svc.cluster.local", RecordType::A)
    }

    #[test]
    fn queries_are_read_back() {
        for kind in [RecordType::A, RecordType::Aaaa, RecordType::Other("TYPE33".into())] {
            let question = Question::new("web.shop.svc.cluster.local", kind);
            let bytes = encode_query(77, &question).unwrap();
            assert_eq!(decode_query(&bytes), Some((77, question)));
        }
    }

    #[test]
    fn responses_are_read_back() {
        let name = question().name;
        let record = |data| Record { name: name.clone(), data };
        let records = vec![
            record(Data::Cname("front.example.com.".into())),
            record(Data::Address("10.0.0.1".parse().unwrap())),
            record(Data::Address("fd00::1".parse().unwrap())),
        ];
        let query = encode_query(7, &question()).unwrap();
        for reply in [Reply::records(records), Reply::code(Rcode::NxDomain)] {
            let bytes = encode_response(&query, &reply).unwrap();
            let response = Response { id: 7, truncated: false, reply };
            assert_eq!(decode_response(&bytes), Some(response));
        }
    }

    #[test]
    fn compressed_names_are_followed() {
        let reply = Reply::records(vec![Record {
            name: question().name,
            data: Data::Address("10.0.0.1".parse().unwrap()),
        }]);
        let query = encode_query(7, &question()).unwrap();
        let bytes = encode_response(&query, &reply).unwrap();
        // The record's name, replaced by a pointer to the question's.
        let mut compressed = bytes[..query.len()].to_vec();
        compressed.extend([0xc0, 12]);
        compressed.extend(&bytes[bytes.len() - 14..]);
        assert_eq!(decode_response(&compressed).unwrap().reply, reply);
    }

    #[test]
    fn what_is_no_name_is_not_encoded() {
        for name in ["a..b", &"a".repeat(64), &"a.".repeat(200)] {
            assert_eq!(encode_query(1, &Question::new(name, RecordType::A)), None, "{name}");
        }
        assert!(encode_query(1, &Question::new(".", RecordType::A)).is_some());
        let other = Question::new("a", RecordType::Other("NAPTR".into()));
        assert_eq!(encode_query(1, &other), None);
    }

    #[test]
    fn loops_and_cut_messages_are_refused() {
        let query = encode_query(1, &question()).unwrap();
        let reply = Reply::addresses(&question(), ["10.0.0.1".parse().unwrap()]);
        let bytes = encode_response(&query, &reply).unwrap();
        for length in 0..bytes.len() {
            assert_eq!(decode_response(&bytes[..length]), None, "{length}");
        }
        let mut looped = bytes;
        looped[12] = 0xc0;
        looped[13] = 12;
        assert_eq!(decode_response(&looped), None);
        assert_eq!(decode_query(&looped), None);
    }

    #[test]
    fn every_code_has_a_number_of_its_own() {
        for number in 0..64 {
            if let Some(code) = Rcode::from_number(number) {
                assert_eq!(code.number(), number, "{}", code.word());
            }
        }
        assert_eq!(Rcode::from_number(3), Some(Rcode::NxDomain));
        assert_eq!(Rcode::from_number(11), None);
    }
}
