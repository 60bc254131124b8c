//! Tests that requests that wait are stored together, and that readers do not wait.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::*;
use crate::state::{Account, Task, TaskStatus};

/// A storage that waits, at every commit, until a test lets it continue.
struct Slow {
    began: Sender<Batch>,
    go_on: Mutex<Receiver<Result<(), StorageError>>>,
}

impl Storage for Slow {
    fn commit(&self, batch: &Batch) -> Result<(), StorageError> {
        self.began.send(batch.clone()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap()
    }
}

/// Returns a slow storage, and the test's ends of its channels.
fn slow() -> (Slow, Receiver<Batch>, Sender<Result<(), StorageError>>) {
    let ((began, seen), (let_go, go_on)) = (mpsc::channel(), mpsc::channel());
    (Slow { began, go_on: Mutex::new(go_on) }, seen, let_go)
}

/// A storage that counts commits.
#[derive(Default)]
struct Counting {
    commits: AtomicUsize,
    fails: AtomicBool,
}

impl Storage for Counting {
    fn commit(&self, _: &Batch) -> Result<(), StorageError> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        if self.fails.load(Ordering::SeqCst) {
            Err(StorageError("no space left".to_owned()))
        } else {
            Ok(())
        }
    }
}

fn place(account: &str) -> Place {
    Place { account: account.to_owned(), region: "ap-test".to_owned() }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_760_000_000 + seconds).unwrap()
}

/// Adds a task to an account. The answer is the number of tasks that the account had before.
fn add(
    accounts: &Accounts,
    account: &str,
    id: &str,
    task: Task,
) -> Result<(Batch, usize), ApiError> {
    let place = place(account);
    let before = accounts.get(&place).map_or(0, |account| account.tasks.len());
    let key = RecordKey { kind: RecordKind::Task, id: id.to_owned() };
    let changes = Changes::from([(key, Some(Record::Task(task)))]);
    Ok((Batch::from([(place, changes)]), before))
}

/// Returns the ids of the stored tasks of an account.
fn ids(accounts: &SharedAccounts, account: &str) -> Vec<String> {
    accounts.read(|accounts| {
        let account = accounts.get(&place(account));
        account.map_or(Vec::new(), |account| account.tasks.keys().cloned().collect())
    })
}

fn task(began: Timestamp, status: TaskStatus) -> Task {
    Task { load_balancers: Vec::new(), listeners: Vec::new(), began, status }
}

fn done(seconds: i64) -> Task {
    task(at(seconds), TaskStatus::Done)
}

#[test]
fn requests_that_wait_are_stored_in_one_transaction() {
    const WRITERS: usize = 30;
    let accounts = SharedAccounts::new(Accounts::new());
    let (storage, began, let_go) = slow();
    let write = |account: &str, id: &str| {
        accounts.change(Some(at(0)), &storage, |accounts| add(accounts, account, id, done(0)))
    };
    let names: Vec<String> = (0..WRITERS).map(|number| format!("writer-{number}")).collect();
    thread::scope(|scope| {
        let first = scope.spawn(|| write("one", "first"));
        assert_eq!(began.recv().unwrap().len(), 1);
        let writers: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(number, name)| scope.spawn(move || write(["one", "two"][number % 2], name)))
            .collect();
        let fails = scope.spawn(|| {
            accounts.change(Some(at(0)), &storage, |_| {
                Err::<(Batch, ()), _>(ApiError::new(ErrorCode::FailedOperation, "no"))
            })
        });
        let panics = scope.spawn(|| {
            accounts.change(Some(at(0)), &storage, |_| -> Result<(Batch, ()), ApiError> {
                panic!("a fault of an action")
            })
        });
        wait_for(&accounts, WRITERS + 2);
        assert_eq!(ids(&accounts, "one").len(), 0, "nothing is stored yet");

        let_go.send(Ok(())).unwrap();
        assert_eq!(first.join().unwrap(), Ok(0));
        let second = began.recv().unwrap();
        let sizes: Vec<usize> = second.values().map(Changes::len).collect();
        assert_eq!(sizes, [WRITERS / 2, WRITERS / 2], "all that waited, and nothing else");
        assert_eq!(ids(&accounts, "one").len(), 1);

        let_go.send(Ok(())).unwrap();
        let mut seen: Vec<usize> =
            writers.into_iter().map(|writer| writer.join().unwrap().unwrap()).collect();
        seen.sort_unstable();
        let mut expected: Vec<usize> = (1..=WRITERS / 2).chain(0..WRITERS / 2).collect();
        expected.sort_unstable();
        assert_eq!(seen, expected, "each saw those before it");
        assert_eq!(fails.join().unwrap().unwrap_err().code, ErrorCode::FailedOperation);
        assert!(panics.join().is_err());
    });
    assert!(began.try_recv().is_err(), "two transactions for {} requests", WRITERS + 1);
    assert_eq!(ids(&accounts, "one").len(), 1 + WRITERS / 2);
}

#[test]
fn what_could_not_be_stored_is_in_no_account() {
    let accounts = SharedAccounts::new(Accounts::new());
    let storage = Counting::default();
    let write = |id: &str| {
        accounts.change(Some(at(0)), &storage, |accounts| add(accounts, "one", id, done(0)))
    };
    storage.fails.store(true, Ordering::SeqCst);
    let error = write("a").unwrap_err();
    assert_eq!(error.code, ErrorCode::InternalError);
    assert!(error.message.contains("no space left"), "{error}");
    assert_eq!(ids(&accounts, "one").len(), 0);
    storage.fails.store(false, Ordering::SeqCst);
    assert_eq!(write("b"), Ok(0), "the next does not see it");
    assert_eq!(ids(&accounts, "one"), ["b"]);
}

#[test]
fn a_batch_that_could_not_be_stored_fails_all_of_its_requests() {
    let accounts = SharedAccounts::new(Accounts::new());
    let (storage, began, let_go) = slow();
    let write = |id: &str| {
        accounts.change(Some(at(0)), &storage, |accounts| add(accounts, "one", id, done(0)))
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| write("first"));
        began.recv().unwrap();
        let others = ["a", "b", "c"].map(|id| scope.spawn(move || write(id)));
        wait_for(&accounts, 3);
        let_go.send(Ok(())).unwrap();
        let_go.send(Err(StorageError("full".to_owned()))).unwrap();
        assert!(first.join().unwrap().is_ok());
        for other in others {
            assert_eq!(other.join().unwrap().unwrap_err().code, ErrorCode::InternalError);
        }
    });
    assert_eq!(ids(&accounts, "one"), ["first"]);
}

/// A repeated `ClientToken` changes nothing, and its answer must not outlive the load balancers
/// that it names.
#[test]
fn an_answer_that_rests_on_changes_of_others_waits_for_them() {
    let accounts = SharedAccounts::new(Accounts::new());
    let (storage, began, let_go) = slow();
    let write = |id: &str| {
        accounts.change(Some(at(0)), &storage, |accounts| add(accounts, "one", id, done(0)))
    };
    let look = || {
        accounts.change(Some(at(0)), &storage, |accounts| {
            let found = accounts.get(&place("one")).map_or(0, |account| account.tasks.len());
            Ok::<_, ApiError>((Batch::new(), found))
        })
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| write("first"));
        began.recv().unwrap();
        let second = scope.spawn(|| write("second"));
        wait_for(&accounts, 1);
        let looks: Vec<_> = (0..8).map(|_| scope.spawn(look)).collect();
        wait_for(&accounts, 9);
        let_go.send(Ok(())).unwrap();
        began.recv().unwrap();
        let_go.send(Err(StorageError("full".to_owned()))).unwrap();
        assert!(first.join().unwrap().is_ok());
        assert!(second.join().unwrap().is_err());
        for look in looks {
            // A request that ran before the second write saw only the first one.
            assert!(matches!(look.join().unwrap(), Err(_) | Ok(1)));
        }
    });
    assert_eq!(look(), Ok(1));
}

#[test]
fn a_request_without_changes_stores_nothing() {
    let accounts = SharedAccounts::new(Accounts::new());
    let storage = Counting::default();
    let result = accounts.change(Some(at(0)), &storage, |_| Ok::<_, ApiError>((Batch::new(), ())));
    result.unwrap();
    assert_eq!(storage.commits.load(Ordering::SeqCst), 0);
}

#[test]
fn old_tasks_are_removed_unless_they_run() {
    let week = TASKS_KEPT.as_secs();
    let mut account = Account::EMPTY;
    account.tasks.insert("old".to_owned(), done(0));
    account.tasks.insert("serving".to_owned(), task(at(0), TaskStatus::Serving));
    account.tasks.insert("slow".to_owned(), task(at(0), TaskStatus::DoneAt(at(2 * week))));
    account.tasks.insert("recent".to_owned(), done(2));
    account.client_tokens.insert("of one that is gone".to_owned(), vec!["lb-1".to_owned()]);
    let accounts = SharedAccounts::new(Accounts::from([(place("one"), account)]));
    let storage = Counting::default();
    let write = |id: &str, now: i64| {
        let write = |accounts: &Accounts| add(accounts, "one", id, done(now));
        accounts.change(Some(at(now)), &storage, write).unwrap();
        ids(&accounts, "one")
    };
    assert_eq!(write("a", week), ["a", "old", "recent", "serving", "slow"]);
    assert!(accounts.read(|accounts| accounts[&place("one")].client_tokens.is_empty()));
    assert_eq!(write("b", week + 2).len(), 6, "the account was searched within the hour");
    assert_eq!(write("c", week + 3_600), ["a", "b", "c", "serving", "slow"]);
}

#[test]
fn the_latest_tasks_are_kept() {
    let mut account = Account::EMPTY;
    for number in 0..2 * MOST_TASKS {
        let second = i64::try_from(number).unwrap() / 1000;
        account.tasks.insert(format!("{number:06}"), done(second));
    }
    account.tasks.insert("serving".to_owned(), task(at(0), TaskStatus::Serving));
    let accounts = SharedAccounts::new(Accounts::from([(place("one"), account)]));
    let storage = Counting::default();
    let write = |accounts: &Accounts| add(accounts, "one", "last", done(100));
    accounts.change(Some(at(100)), &storage, write).unwrap();
    let kept = ids(&accounts, "one");
    assert_eq!(kept.len(), MOST_TASKS + 1);
    assert!(kept.iter().any(|id| id == "serving"), "it is not done");
    assert!(kept.iter().any(|id| id == "last"));
    assert!(!kept.iter().any(|id| id == "000000"), "the oldest is gone");
}

/// Waits until this many writers wait for their turn.
fn wait_for(accounts: &SharedAccounts, writers: usize) {
    while accounts.waiting.load(Ordering::SeqCst) < writers {
        thread::yield_now();
    }
}

#[test]
fn what_has_to_be_served_is_counted_and_ended_tasks_are_not() {
    let accounts = SharedAccounts::new(Accounts::new());
    let storage = Counting::default();
    let counted = |task: Task| {
        let before = *accounts.changes().borrow();
        let write = |accounts: &Accounts| add(accounts, "one", "id", task);
        accounts.change(Some(at(0)), &storage, write).unwrap();
        *accounts.changes().borrow() - before
    };
    assert_eq!(counted(task(at(0), TaskStatus::Serving)), 1);
    assert_eq!(counted(done(0)), 0);
    assert_eq!(counted(task(at(0), TaskStatus::Failed("why".to_owned()))), 0);
    let token = RecordKey { kind: RecordKind::ClientToken, id: "token".to_owned() };
    let changes = Changes::from([(token, Some(Record::ClientToken(Vec::new())))]);
    let batch = Batch::from([(place("one"), changes)]);
    accounts.change(None, &storage, |_| Ok::<_, ApiError>((batch, ()))).unwrap();
    assert_eq!(*accounts.changes().borrow(), 3);
}
