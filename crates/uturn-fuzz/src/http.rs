//! HTTP/1.1 as the load balancer parses it: heads, and the framing of bodies.

use uturn_lb::http::{Body, Head};

/// Longer heads may be refused.
const LIMIT: usize = 1 << 16;

/// A head is forwarded so that it parses the same; the bytes of a body are forwarded unchanged.
pub fn http(data: &[u8]) -> bool {
    let mut rest = data;
    let Ok(mut head) = Head::read(&mut rest) else { return false };
    read_back(&head);
    let taken = head.request().is_ok() || head.status().is_some();
    if let Ok(body) = head.body(Body::NONE) {
        let (mut from, mut to) = (rest, Vec::new());
        if body.copy(&mut from, &mut to).is_ok() {
            assert_eq!(to, rest[..rest.len() - from.len()], "a body is passed on as it is");
        }
    }
    head.closing();
    head.append("X-Forwarded-For", "10.1.1.10");
    for name in ["connection", "x-forwarded-for"] {
        assert_eq!(head.values(name).count(), 1, "{name}");
    }
    assert_eq!(head.values("connection").next(), Some(&b"close"[..]));
    read_back(&head);
    taken
}

fn read_back(head: &Head) {
    let mut written = Vec::new();
    head.write(&mut written).expect("a Vec takes everything");
    if written.len() < LIMIT {
        assert_eq!(Head::read(&mut &*written).ok().as_ref(), Some(head), "{written:?}");
    }
}
