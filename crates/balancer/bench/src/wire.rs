//! The protocol between clients and layer 4 targets: a request of a fixed length states the length
//! of its answer, so that neither side spends much time on what it reads.

/// The length of a request.
pub(crate) const REQUEST: usize = 64;

/// The length of an answer that has no end.
pub(crate) const ENDLESS: u32 = u32::MAX;

/// The length of a small answer.
pub(crate) const SMALL: u32 = 100;

/// The part of an endless answer that counts as one answer.
pub(crate) const MEBIBYTE: usize = 1024 * 1024;

/// A request to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The length of the answer, in bytes.
    pub(crate) length: u32,
    /// Whether the target closes the connection after the answer.
    pub(crate) closes: bool,
}

impl Request {
    pub(crate) fn to_bytes(self) -> [u8; REQUEST] {
        let mut bytes = [b'.'; REQUEST];
        bytes[..4].copy_from_slice(&self.length.to_be_bytes());
        bytes[4] = self.closes.into();
        bytes
    }

    /// Reads a request. Returns `None` if the bytes are not a whole request.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [a, b, c, d, closes, ..] if bytes.len() == REQUEST => {
                Some(Self { length: u32::from_be_bytes([*a, *b, *c, *d]), closes: *closes == 1 })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        for request in
            [Request { length: SMALL, closes: false }, Request { length: ENDLESS, closes: true }]
        {
            assert_eq!(Request::from_bytes(&request.to_bytes()), Some(request));
        }
        assert_eq!(Request::from_bytes(&[0; REQUEST - 1]), None);
        assert_eq!(Request::from_bytes(&[0; REQUEST + 1]), None);
    }
}
