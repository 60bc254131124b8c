//! Work that is shared between processors, with the same results as on one.
//!
//! The caller enqueues items in order, then drains the queue too. Results are in the order of the
//! items, whichever thread made them.

use std::panic;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The largest number of helper threads. More would wait for one another.
const MAX: usize = 7;
/// The stack size of threads. The ways of packets nest deeply.
const STACK: usize = 8 << 20;

/// Works on all items that are enqueued. Returns the results in the order of the items.
pub(crate) fn side_by_side<Piece: Send, Done: Send>(
    hand_out: impl FnOnce(&mut dyn FnMut(Piece)),
    work: impl Fn(Piece) -> Done + Sync,
) -> Vec<Done> {
    let (send, pieces) = mpsc::channel::<(usize, Piece)>();
    let pieces = Mutex::new(pieces);
    let (pieces, work) = (&pieces, &work);
    let mut done = thread::scope(|scope| {
        let helpers = thread::available_parallelism().map_or(0, |all| (all.get() - 1).min(MAX));
        let helper = |_| {
            let helper = thread::Builder::new().stack_size(STACK);
            helper.spawn_scoped(scope, || do_all(pieces, work)).ok()
        };
        let helpers: Vec<_> = (0..helpers).map_while(helper).collect();
        let mut number = 0;
        hand_out(&mut |piece| {
            // The receiver lives until the end, so this cannot fail.
            let _ = send.send((number, piece));
            number += 1;
        });
        drop(send);
        let mut done = do_all(pieces, work);
        for helper in helpers {
            done.extend(helper.join().unwrap_or_else(|why| panic::resume_unwind(why)));
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

fn do_all<Piece, Done>(
    pieces: &Mutex<Receiver<(usize, Piece)>>,
    work: impl Fn(Piece) -> Done,
) -> Vec<(usize, Done)> {
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    let mut done = Vec::new();
    while let Some((number, piece)) = next() {
        done.push((number, work(piece)));
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_pieces() {
        let hand_out = |piece: &mut dyn FnMut(u64)| (0..500).for_each(piece);
        let squares = side_by_side(hand_out, |number| number * number);
        assert!(squares.into_iter().eq((0..500).map(|number| number * number)));
    }

    #[test]
    #[should_panic(expected = "piece 3")]
    fn a_panic_is_passed_on() {
        let hand_out = |piece: &mut dyn FnMut(u64)| (0..10).for_each(piece);
        side_by_side(hand_out, |number| assert!(number != 3, "piece {number}"));
    }
}
