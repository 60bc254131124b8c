//! Locks of state that is whole between any two statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it, also after a thread panicked that held it: the state that it left is as good as any.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
