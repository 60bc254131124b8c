//! DNS messages: questions for addresses, and what comes back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uturn_model::Family;

const IN: u16 = 1;
const A: u16 = 1;
const AAAA: u16 = 28;

const ANSWER: u8 = 0x80;
const AUTHORITATIVE: u8 = 0x04;
const RECURSION_WANTED: u8 = 0x01;
const RECURSION_THERE: u8 = 0x80;
pub(super) const NO_ERROR: u8 = 0;
pub(super) const NO_SUCH_NAME: u8 = 3;

/// Longer names than that do not fit a question.
const LONGEST_NAME: usize = 253;

/// A question for the addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) number: u16,
    /// Without the dot at its end.
    pub(super) name: String,
    /// The family of the addresses; none when something else is asked.
    pub(super) family: Option<Family>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) number: u16,
    pub(super) code: u8,
    /// The addresses of the family that was asked for, whatever name they stand under.
    pub(super) addresses: Vec<IpAddr>,
}

impl Question {
    /// None when the name cannot be one.
    pub(super) fn to_bytes(&self) -> Option<Vec<u8>> {
        let kind = self.family.map_or(0, kind_of);
        let mut bytes = Vec::from(self.number.to_be_bytes());
        bytes.extend([RECURSION_WANTED, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        put_name(&self.name, &mut bytes)?;
        bytes.extend(kind.to_be_bytes());
        bytes.extend(IN.to_be_bytes());
        Some(bytes)
    }

    /// The question in a message, and what of the message it is.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let number = u16_at(bytes, 0)?;
        let (name, after) = name_at(bytes, 12)?;
        let family = Family::BOTH.into_iter().find(|family| {
            u16_at(bytes, after) == Some(kind_of(*family)) && u16_at(bytes, after + 2) == Some(IN)
        });
        Some((Self { number, name, family }, bytes.get(12..after + 4)?))
    }
}

impl Answer {
    pub(super) fn read(bytes: &[u8], family: Family) -> Option<Self> {
        let code = bytes.get(3)? & 0x0f;
        let (_, after) = name_at(bytes, 12)?;
        let mut at = after + 4;
        let mut addresses = Vec::new();
        for _ in 0..u16_at(bytes, 6)? {
            let (_, after) = name_at(bytes, at)?;
            let length = usize::from(u16_at(bytes, after + 8)?);
            let data = bytes.get(after + 10..after + 10 + length)?;
            if u16_at(bytes, after)? == kind_of(family) {
                addresses.push(address(family, data)?);
            }
            at = after + 10 + length;
        }
        Some(Self { number: u16_at(bytes, 0)?, code, addresses })
    }

    /// As an answer to a question of which these are the bytes.
    pub(super) fn to_bytes(&self, question: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::from(self.number.to_be_bytes());
        bytes.extend([ANSWER | AUTHORITATIVE | RECURSION_WANTED, RECURSION_THERE | self.code]);
        bytes.extend([0, 1]);
        bytes.extend((self.addresses.len() as u16).to_be_bytes());
        bytes.extend([0, 0, 0, 0]);
        bytes.extend(question);
        for ip in &self.addresses {
            // The name is the question's.
            bytes.extend([0xc0, 12]);
            bytes.extend(kind_of(Family::of(*ip)).to_be_bytes());
            bytes.extend(IN.to_be_bytes());
            bytes.extend(30u32.to_be_bytes());
            match ip {
                IpAddr::V4(ip) => {
                    bytes.extend([0, 4]);
                    bytes.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.extend([0, 16]);
                    bytes.extend(ip.octets());
                }
            }
        }
        bytes
    }
}

fn kind_of(family: Family) -> u16 {
    match family {
        Family::V4 => A,
        Family::V6 => AAAA,
    }
}

fn address(family: Family, data: &[u8]) -> Option<IpAddr> {
    match family {
        Family::V4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(data).ok()?).into()),
        Family::V6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(data).ok()?).into()),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

fn put_name(name: &str, into: &mut Vec<u8>) -> Option<()> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return None;
    }
    for label in name.split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?;
        into.push(length);
        into.extend(label.as_bytes());
    }
    into.push(0);
    Some(())
}

/// A name, and where it ends. Parts of it may stand further ahead.
fn name_at(bytes: &[u8], mut at: usize) -> Option<(String, usize)> {
    let (mut labels, mut end) = (Vec::new(), None);
    // More steps than a name has labels lead in a circle.
    for _ in 0..LONGEST_NAME {
        let length = usize::from(*bytes.get(at)?);
        match length {
            0 => return Some((labels.join("."), end.unwrap_or(at + 1))),
            1..64 => {
                let label = bytes.get(at + 1..at + 1 + length)?;
                labels.push(String::from_utf8_lossy(label).into_owned());
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

    #[test]
    fn questions_and_answers_are_read_back() {
        for (family, ip) in [(Family::V4, "10.0.0.1"), (Family::V6, "fd00::1")] {
            let name = "web.shop.svc.cluster.local".to_owned();
            let question = Question { number: 77, name, family: Some(family) };
            let bytes = question.to_bytes().unwrap();
            let (read, part) = Question::read(&bytes).unwrap();
            assert_eq!(read, question);
            let addresses = vec![ip.parse().unwrap()];
            let answer = Answer { number: 77, code: NO_ERROR, addresses };
            assert_eq!(Answer::read(&answer.to_bytes(part), family).unwrap(), answer);
        }
    }

    #[test]
    fn what_is_no_name_is_not_asked() {
        for name in ["", "a..b", &"a".repeat(64), &"a.".repeat(200)] {
            let family = Some(Family::V4);
            assert_eq!(Question { number: 1, name: name.into(), family }.to_bytes(), None);
        }
    }

    #[test]
    fn circles_and_cuts_are_no_answers() {
        let question = Question { number: 1, name: "a.b".into(), family: Some(Family::V4) };
        let bytes = question.to_bytes().unwrap();
        for length in 0..bytes.len() {
            assert_eq!(
                Answer::read(&bytes[..length], Family::V4).map(|one| one.addresses.len()),
                if length < 17 { None } else { Some(0) },
                "{length}"
            );
        }
        let mut circle = bytes;
        circle[12] = 0xc0;
        circle[13] = 12;
        assert_eq!(Answer::read(&circle, Family::V4), None);
    }
}
