//! DNS messages, as far as this judge needs them.

use std::net::IpAddr;

use uturn_dns::{Data, Question, Rcode, Record, Reply};

pub(crate) fn query(id: u16, question: &Question) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [id, 0x0100, 1, 0, 0, 0] {
        bytes.extend(number.to_be_bytes());
    }
    for label in question.name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    for number in [crate::number(&question.kind), 1] {
        bytes.extend(number.to_be_bytes());
    }
    bytes
}

/// A reply; `None` when it is one to another question.
pub(crate) fn reply(bytes: &[u8], id: u16) -> Option<Reply> {
    let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    if number(0) != id {
        return None;
    }
    assert_eq!(bytes[2] & 2, 0, "the reply is cut off");
    let rcode = match bytes[3] & 15 {
        0 => Rcode::NoError,
        1 => Rcode::FormErr,
        2 => Rcode::ServFail,
        3 => Rcode::NxDomain,
        4 => Rcode::NotImp,
        5 => Rcode::Refused,
        6 => Rcode::Other("YXDOMAIN"),
        7 => Rcode::Other("YXRRSET"),
        8 => Rcode::Other("NXRRSET"),
        9 => Rcode::Other("NOTAUTH"),
        other => panic!("code {other}"),
    };
    let mut at = 12;
    for _ in 0..number(4) {
        at = name(bytes, at).1 + 4;
    }
    let mut records = Vec::new();
    for _ in 0..number(6) {
        let (owner, next) = name(bytes, at);
        let (kind, length) = (number(next), usize::from(number(next + 8)));
        let data = &bytes[next + 10..next + 10 + length];
        let data = match kind {
            1 => Data::Address(IpAddr::from(<[u8; 4]>::try_from(data).unwrap())),
            28 => Data::Address(IpAddr::from(<[u8; 16]>::try_from(data).unwrap())),
            5 => Data::Cname(name(bytes, next + 10).0),
            _ => Data::Other,
        };
        records.push(Record { name: owner, data });
        at = next + 10 + length;
    }
    Some(Reply { rcode, records, authority: number(8) > 0 })
}

/// A name and where it ends.
fn name(bytes: &[u8], mut at: usize) -> (String, usize) {
    let mut text = String::new();
    let mut end = None;
    loop {
        let length = usize::from(bytes[at]);
        match length {
            0 => break,
            192.. => {
                end.get_or_insert(at + 2);
                at = (length & 63) << 8 | usize::from(bytes[at + 1]);
            }
            _ => {
                text.push_str(std::str::from_utf8(&bytes[at + 1..at + 1 + length]).unwrap());
                text.push('.');
                at += 1 + length;
            }
        }
    }
    if text.is_empty() {
        text.push('.');
    }
    (text, end.unwrap_or(at + 1))
}
