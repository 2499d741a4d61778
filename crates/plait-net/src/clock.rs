//! The driver's clocks: the source of the time that the core takes as an argument.

use std::io;
use std::time::Duration;

use crate::sys;

/// Time since a start, on CLOCK_BOOTTIME: it never jumps and counts time spent asleep, so a
/// gateway that wakes up knows that its keys and paths have aged.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Duration,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Self {
        Self { start: sys::process::clock(libc::CLOCK_BOOTTIME) }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        sys::process::clock(libc::CLOCK_BOOTTIME).saturating_sub(self.start)
    }
}

/// The wall clock: time since 1970-01-01 UTC. It may be wrong and it may jump.
pub fn realtime_since_epoch() -> Duration {
    sys::process::clock(libc::CLOCK_REALTIME)
}

/// Time on CLOCK_MONOTONIC, which programs in the kernel read, too.
pub fn monotonic() -> Duration {
    sys::process::clock(libc::CLOCK_MONOTONIC)
}

/// Processor time that the calling thread has used.
pub fn thread_cpu_time() -> Duration {
    sys::process::clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time that all threads of this process have used.
pub fn process_cpu_time() -> Duration {
    sys::process::clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Sets by how many nanoseconds the kernel may delay the calling thread's timers (50 us by default;
/// 1 is the least, 0 restores what the thread began with). Threads started later inherit it.
///
/// # Errors
/// The kernel's, when it does not support timer slack.
pub fn set_timer_slack(nanos: u64) -> io::Result<()> {
    sys::process::set_timer_slack(nanos)
}

/// Lets the calling thread run before all threads of ordinary priority (SCHED_FIFO). For threads
/// that must keep time and do little.
///
/// # Errors
/// EPERM without the right (CAP_SYS_NICE on the host, or a limit set for the user).
pub fn set_realtime_priority() -> io::Result<()> {
    sys::process::set_realtime_priority()
}

/// Lets ordinary threads run before the calling one, and before those that it starts later. For
/// work that can wait.
///
/// # Errors
/// The kernel's.
pub fn lower_priority() -> io::Result<()> {
    const STEPS: i32 = 15;
    sys::process::lower_priority(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_starts_at_zero_and_goes_on() {
        let clock = Clock::start();
        let first = clock.elapsed();
        assert!(first < Duration::from_secs(3600));
        std::thread::sleep(Duration::from_millis(2));
        assert!(clock.elapsed() >= first + Duration::from_millis(2));
    }

    #[test]
    fn only_work_uses_processor_time() {
        let before = thread_cpu_time();
        std::thread::sleep(Duration::from_millis(20));
        let idle = thread_cpu_time() - before;
        assert!(idle < Duration::from_millis(20), "{idle:?}");
        let mut sum = 0_u64;
        while thread_cpu_time() < before + Duration::from_millis(20) {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        assert!(sum > 0);
    }

    #[test]
    fn the_wall_clock_is_the_standard_librarys() {
        let expected = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        assert!(realtime_since_epoch().abs_diff(expected) < Duration::from_secs(60));
    }

    #[test]
    fn priority_is_given_or_refused_by_right() {
        let result = std::thread::spawn(set_realtime_priority).join().unwrap();
        let refused = result.err().map(|error| error.kind());
        assert!(matches!(refused, None | Some(io::ErrorKind::PermissionDenied)), "{refused:?}");
    }

    #[test]
    fn timer_slack_can_be_set() {
        std::thread::spawn(|| {
            set_timer_slack(1234).unwrap();
            let slack = std::fs::read_to_string("/proc/thread-self/timerslack_ns")
                .or_else(|_| std::fs::read_to_string("/proc/self/timerslack_ns"));
            // The file needs a right of its own on some kernels; the call above has succeeded.
            if let Ok(slack) = slack {
                assert!(["1234", "50000"].contains(&slack.trim()));
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_can_be_made_to_wait_for_others() {
        let nice = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, after_name) = stat.rsplit_once(')').unwrap();
            after_name.split_whitespace().nth(16).unwrap().parse::<i32>().unwrap()
        };
        std::thread::spawn(move || {
            lower_priority().unwrap();
            assert_eq!((nice(), std::thread::spawn(nice).join().unwrap()), (15, 15));
        })
        .join()
        .unwrap();
    }
}
