//! Runs work on all cores, with results in the order of the work.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Threads for this many jobs: one per core, but no more than jobs.
pub(crate) fn workers(jobs: usize) -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(jobs).max(1)
}

/// Does `work` for each index below `jobs`. On this thread, `take` gets `None` whenever a job is
/// done, and each result in its turn: results are always in order.
///
/// # Errors
///
/// The first error of `take`; jobs not begun by then are skipped.
pub(crate) fn in_order<T: Send, E>(
    jobs: usize,
    work: impl Fn(usize) -> T + Sync,
    take: impl FnMut(Option<T>) -> Result<(), E>,
) -> Result<(), E> {
    in_order_on(workers(jobs), jobs, work, take)
}

/// As [`in_order`], with so many threads.
///
/// # Errors
///
/// As [`in_order`].
pub(crate) fn in_order_on<T: Send, E>(
    threads: usize,
    jobs: usize,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(Option<T>) -> Result<(), E>,
) -> Result<(), E> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, stop, work) = (&next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= jobs || sender.send((index, work(index))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut turn = 0;
        for (index, result) in receiver {
            early.insert(index, result);
            let mut taken = take(None);
            while let Some(result) = early.remove(&turn).filter(|_| taken.is_ok()) {
                taken = take(Some(result));
                turn += 1;
            }
            if taken.is_err() {
                stop.store(true, Ordering::Relaxed);
                return taken;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for the neighbour with the higher index, so that results are ready in reverse.
    #[test]
    fn results_come_in_order_whatever_is_ready_first() {
        let done = AtomicUsize::new(0);
        let reversed = workers(2) > 1;
        let work = |index: usize| {
            while reversed && index == 0 && done.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            done.fetch_add(1, Ordering::Release);
            index
        };
        let (mut results, mut finished) = (Vec::new(), 0);
        let outcome: Result<(), ()> = in_order(5, work, |result| {
            match result {
                Some(index) => results.push(index),
                None => finished += 1,
            }
            Ok(())
        });
        assert_eq!((outcome, finished), (Ok(()), 5));
        assert_eq!(results, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn an_error_stops_the_rest() {
        let mut taken = Vec::new();
        let outcome = in_order(
            1000,
            |index| index,
            |result| match result {
                Some(3) => Err("three"),
                Some(index) => {
                    taken.push(index);
                    Ok(())
                }
                None => Ok(()),
            },
        );
        assert_eq!((outcome, taken), (Err("three"), vec![0, 1, 2]));
    }

    #[test]
    fn no_work_is_done_at_once() {
        let outcome: Result<(), ()> = in_order(0, |_| (), |_| Err(()));
        assert_eq!(outcome, Ok(()));
    }
}
