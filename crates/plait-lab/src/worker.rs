//! Threads: in the background until they are told to stop, and on all cores for a batch of work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

pub(crate) mod pool;

/// A thread that works until it is told to stop. Dropping this tells it to stop and waits for it.
#[derive(Debug)]
pub(crate) struct Worker<T = ()> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread. Its work must check regularly whether to go on.
    ///
    /// # Errors
    ///
    /// The system's, when it has no room for another thread.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Builder::new()
            .name(name.into())
            .spawn(move || work(&|| !stopped.load(Ordering::Relaxed)))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether its work is not done.
    pub(crate) fn runs(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Tells it to stop, and returns its result. A panic in it continues here.
    pub(crate) fn stop(mut self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("only here and at its end the thread is taken");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_works_until_it_is_told_to_stop() {
        let count = |goes_on: &dyn Fn() -> bool| {
            let mut turns = 0_u32;
            while goes_on() {
                turns = turns.saturating_add(1);
                std::thread::yield_now();
            }
            turns
        };
        let worker = Worker::start("count", count).unwrap();
        assert!(worker.runs());
        worker.stop();
        let done = Worker::start("done", |_| 7).unwrap();
        while done.runs() {
            std::thread::yield_now();
        }
        assert_eq!(done.stop(), 7);
    }

    #[test]
    fn a_worker_that_is_dropped_has_ended() {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let work = move |goes_on: &dyn Fn() -> bool| {
            while goes_on() {
                std::thread::yield_now();
            }
            seen.store(true, Ordering::Relaxed);
        };
        drop(Worker::start("dropped", work).unwrap());
        assert!(ended.load(Ordering::Relaxed));
    }
}
