//! Refuses signatures that were used before.
//!
//! A signature is valid for some minutes, and real clients sign neither the action nor anything
//! that differs between two equal requests of one second. So an attacker who captured a request
//! could send it again, or use the signature of a read for a write with the same parameters. Each
//! signature is remembered for as long as it is valid, and these rules hold:
//!
//! - A write that was performed is not performed again.
//! - Another use of the signature for a write must come within [`TOGETHER`] of the first use.
//!   Clients sign each request anew, so that only two cases are legitimate: two actions with the
//!   same parameters in one second (RegisterTargets, DeregisterTargets), or a failed write that is
//!   retried at once.
//!
//! The refusal is `RequestLimitExceeded`: clients that retry it wait and sign the request anew,
//! which is also what a client must do that sends equal writes twice in one second. A write with a
//! client token may be repeated for as long as the load balancers that it created exist.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::authorization::{MAX_SKEW, Received, Signed};

/// The time after its first use in which a signature may be used for a write that was not
/// performed.
const TOGETHER: SignedDuration = SignedDuration::from_secs(3);
/// The most writes of an account whose signatures are remembered. Further writes are refused,
/// because no signature may be forgotten while it is valid.
const MOST_WRITES: usize = 200_000;
/// The most reads of an account whose signatures are remembered. Beyond it, the oldest are
/// forgotten.
const MOST_READS: usize = 50_000;

/// The hash that identifies a signature and the parts of the request that it does not cover.
type Key = [u8; 32];

/// The signatures that were used, by accounts.
#[derive(Debug)]
pub(super) struct Replays {
    /// The start of this process. Requests signed earlier may have been used with a process before
    /// it.
    begins: Timestamp,
    most_writes: usize,
    most_reads: usize,
    accounts: Mutex<HashMap<String, Used>>,
}

/// The signatures that an account used.
#[derive(Debug, Default)]
struct Used {
    by_key: HashMap<Key, Use>,
    /// The expiry times of the signatures, of writes and of reads.
    writes: BTreeSet<(i64, Key)>,
    reads: BTreeSet<(i64, Key)>,
}

/// The uses of a signature.
#[derive(Clone, Debug)]
struct Use {
    first: Timestamp,
    expires: i64,
    is_write: bool,
    /// The actions of the writes with this signature that were performed, or are being performed.
    done: Vec<String>,
}

/// A write that may be performed.
#[derive(Debug)]
pub(super) struct Admission<'a> {
    replays: &'a Replays,
    account: &'a str,
    key: Key,
    action: String,
}

impl Replays {
    /// Returns an empty record. Writes that were signed before this time are refused.
    pub(super) fn new(begins: Timestamp) -> Self {
        let (most_writes, most_reads) = (MOST_WRITES, MOST_READS);
        Self { begins, most_writes, most_reads, accounts: Mutex::default() }
    }

    /// Notes that a signature was used for a read.
    pub(super) fn reads(
        &self,
        account: &str,
        signed: &Signed,
        request: &Received<'_>,
        now: Timestamp,
    ) {
        let (mut accounts, key) = (self.accounts(), key(signed, request, ""));
        let used = accounts.entry(account.to_owned()).or_default();
        used.forget(now);
        if used.by_key.contains_key(&key) {
            return;
        }
        if used.reads.len() >= self.most_reads
            && let Some((_, oldest)) = used.reads.pop_first()
        {
            used.by_key.remove(&oldest);
        }
        let expires = expires(signed);
        used.reads.insert((expires, key));
        used.by_key.insert(key, Use { first: now, expires, is_write: false, done: Vec::new() });
    }

    /// Admits a write if it may be performed, and notes that it is.
    ///
    /// # Errors
    ///
    /// Returns the error to answer with if the signature was used before.
    pub(super) fn admit<'a>(
        &'a self,
        account: &'a str,
        signed: &Signed,
        request: &Received<'_>,
        now: Timestamp,
    ) -> Result<Admission<'a>, ApiError> {
        if signed.timestamp.as_second() < self.begins.as_second() {
            return Err(refused("it was signed before this server was started"));
        }
        let action = request.header("X-TC-Action").unwrap_or_default();
        let key = key(signed, request, action);
        let mut accounts = self.accounts();
        let used = accounts.entry(account.to_owned()).or_default();
        used.forget(now);
        let expires = expires(signed);
        if let Some(known) = used.by_key.get_mut(&key) {
            let is_done = known.done.iter().any(|done| done == action);
            if is_done || now.duration_since(known.first) > TOGETHER {
                return Err(refused("its signature was used before"));
            }
            known.done.push(action.to_owned());
            if !known.is_write {
                known.is_write = true;
                let entry = (known.expires, key);
                used.reads.remove(&entry);
                used.writes.insert(entry);
            }
        } else {
            if used.writes.len() >= self.most_writes {
                return Err(refused("too many writes were signed in the last minutes"));
            }
            used.writes.insert((expires, key));
            let done = vec![action.to_owned()];
            used.by_key.insert(key, Use { first: now, expires, is_write: true, done });
        }
        Ok(Admission { replays: self, account, key, action: action.to_owned() })
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<String, Used>> {
        // No code that panics runs while the mutex is locked.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission<'_> {
    /// Notes that the write failed and changed nothing, so that it may be tried again at once.
    pub(super) fn failed(self) {
        let mut accounts = self.replays.accounts();
        let used = accounts.get_mut(self.account);
        if let Some(used) = used.and_then(|used| used.by_key.get_mut(&self.key)) {
            used.done.retain(|done| *done != self.action);
        }
    }
}

impl Used {
    /// Forgets expired signatures.
    fn forget(&mut self, now: Timestamp) {
        for all in [&mut self.writes, &mut self.reads] {
            while all.first().is_some_and(|(expires, _)| *expires < now.as_second()) {
                if let Some((_, key)) = all.pop_first() {
                    self.by_key.remove(&key);
                }
            }
        }
    }
}

/// Returns the time after which a signature is no longer valid.
fn expires(signed: &Signed) -> i64 {
    signed.timestamp.as_second() + MAX_SKEW
}

/// Returns the key of a signature: a hash of the signature itself. If it does not cover the body,
/// distinct requests often have equal signatures; then the hash includes the action of a write and
/// the body.
fn key(signed: &Signed, request: &Received<'_>, action: &str) -> Key {
    let mut hash = Sha256::new();
    hash.update(&signed.signature);
    if !signed.covers_payload {
        hash.update(action);
        hash.update([0]);
        hash.update(request.body);
    }
    hash.finalize().into()
}

fn refused(why: &str) -> ApiError {
    let message = format!("the request is not performed: {why}; sign it anew, a second later");
    ApiError::new(ErrorCode::RequestLimitExceeded, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_760_000_000;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(START * 1000 + milliseconds).unwrap()
    }

    fn signed(signature: u32, second: i64) -> Signed {
        Signed {
            signature: signature.to_be_bytes().to_vec(),
            timestamp: at(second * 1000),
            covers_action: false,
            covers_payload: true,
        }
    }

    fn request<'a>(headers: &'a [(String, String)], body: &'a [u8]) -> Received<'a> {
        Received { method: "POST", query: "", headers, body }
    }

    fn admits(replays: &Replays, signed: &Signed, milliseconds: i64) -> bool {
        replays.admit("a", signed, &request(&[], b"{}"), at(milliseconds)).is_ok()
    }

    #[test]
    fn a_write_is_performed_once() {
        let replays = Replays::new(at(0));
        let first = signed(1, 0);
        assert!(admits(&replays, &first, 0));
        for later in [0, 1, 2_000, 299_000, 300_000] {
            assert!(!admits(&replays, &first, later), "{later} ms later");
        }
        assert!(admits(&replays, &signed(2, 1), 1_000), "it is signed anew");
        let other = replays.admit("b", &first, &request(&[], b"{}"), at(0));
        assert!(other.is_ok(), "another account");
    }

    #[test]
    fn a_write_that_failed_may_be_tried_again_at_once() {
        let replays = Replays::new(at(0));
        let (headers, body) = (Vec::new(), b"{}");
        for (later, is_admitted) in [(0, true), (500, true), (2_900, true), (3_100, false)] {
            let admission = replays.admit("a", &signed(1, 0), &request(&headers, body), at(later));
            assert_eq!(admission.is_ok(), is_admitted, "{later} ms later");
            if let Ok(admission) = admission {
                admission.failed();
            }
        }
    }

    #[test]
    fn the_signature_of_a_read_is_not_one_of_a_later_write() {
        let replays = Replays::new(at(0));
        let read =
            |number, now| replays.reads("a", &signed(number, 0), &request(&[], b"{}"), at(now));
        read(1, 0);
        assert!(!admits(&replays, &signed(1, 0), 10_000));
        read(2, 0);
        read(2, 9_000);
        assert!(!admits(&replays, &signed(2, 0), 10_000), "its first use counts");
        // A client that describes something and deletes it, with the same parameters.
        read(3, 0);
        assert!(admits(&replays, &signed(3, 0), 900));
        assert!(!admits(&replays, &signed(3, 0), 950));
    }

    #[test]
    fn two_actions_of_one_second_may_have_the_same_parameters() {
        let replays = Replays::new(at(0));
        let headers = |action: &str| vec![("X-TC-Action".to_owned(), action.to_owned())];
        let admits = |action: &str, milliseconds| {
            let (headers, signed) = (headers(action), signed(1, 0));
            replays.admit("a", &signed, &request(&headers, b"{}"), at(milliseconds)).is_ok()
        };
        assert!(admits("RegisterTargets", 0));
        assert!(admits("DeregisterTargets", 700));
        assert!(!admits("RegisterTargets", 800), "it was performed");
        assert!(!admits("DeleteListener", 3_100), "the signature is not of this second");
    }

    #[test]
    fn what_was_signed_before_the_start_is_refused() {
        let replays = Replays::new(at(10_500));
        assert!(!admits(&replays, &signed(1, 9), 11_000));
        assert!(admits(&replays, &signed(2, 10), 11_000));
    }

    #[test]
    fn bodies_that_are_not_signed_tell_requests_apart() {
        let replays = Replays::new(at(0));
        let unsigned = Signed { covers_payload: false, ..signed(1, 0) };
        let headers = |action: &str| vec![("X-TC-Action".to_owned(), action.to_owned())];
        let admits = |action: &str, body: &[u8]| {
            replays.admit("a", &unsigned, &request(&headers(action), body), at(0)).is_ok()
        };
        assert!(admits("CreateListener", b"{1}"));
        assert!(admits("CreateListener", b"{2}"));
        assert!(admits("CreateRule", b"{1}"));
        assert!(!admits("CreateListener", b"{1}"));
    }

    #[test]
    fn what_is_remembered_has_bounds() {
        let replays = Replays { most_writes: 40, most_reads: 20, ..Replays::new(at(0)) };
        for number in 0..30 {
            replays.reads("a", &signed(number, 0), &request(&[], b"{}"), at(0));
        }
        assert_eq!(replays.accounts()["a"].by_key.len(), 20);
        for number in 0..40 {
            assert!(admits(&replays, &signed(1_000_000 + number, 1), 1_000));
        }
        assert!(!admits(&replays, &signed(9_000_000, 1), 1_000), "none is forgotten");
        let later = 302_000;
        assert!(admits(&replays, &signed(9_000_001, 302), later));
        let accounts = replays.accounts();
        let used = &accounts["a"];
        assert_eq!((used.by_key.len(), used.writes.len(), used.reads.len()), (1, 1, 0));
    }
}
