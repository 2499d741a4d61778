//! Hooks: programs that are run, and addresses that are told, when something happens to the
//! gateway. Each hook has a thread of its own behind a short queue, so that one that hangs delays
//! neither a packet nor another hook.

mod run;

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use plait_net::clock::{Clock, realtime_since_epoch};
use plait_toml::hook::{Hook, HookEvent};
use serde::{Deserialize, Serialize};

/// Events that wait for a hook; more are left out.
const QUEUE_MAX: usize = 32;
const MINUTE: Duration = Duration::from_secs(60);

/// Something that happened, as a hook is told of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Fact {
    /// The event's name.
    event: &'static str,
    /// Seconds since 1970.
    time_s: u64,
    /// Name of the TUN device.
    tun: String,
    /// Key of the peer that it is about.
    peer: Option<String>,
    /// Name of the path that it is about.
    path: Option<String>,
    /// Why, in words.
    reason: Option<String>,
    /// Events that this hook was not told of since the last.
    left_out: u64,
}

/// News of something that happened, before anybody is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct News {
    pub(super) event: HookEvent,
    pub(super) peer: Option<String>,
    pub(super) path: Option<String>,
    pub(super) reason: Option<String>,
}

/// What a hook has done, for `plait status`.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct HookStatus {
    /// The events that it is for.
    pub(crate) on: Vec<String>,
    /// Its program, without arguments.
    pub(crate) command: Option<String>,
    /// The host of its webhook, without the rest, which may hold a secret.
    pub(crate) webhook: Option<String>,
    /// How often all went well.
    pub(crate) done: u64,
    /// How often it failed.
    pub(crate) failed: u64,
    /// How often it took too long; a command was ended then.
    pub(crate) timed_out: u64,
    /// Events that it was not told of because there were too many.
    pub(crate) left_out: u64,
    /// What went wrong the last time.
    pub(crate) last_error: Option<String>,
}

/// What a hook's thread and the loop share.
type Shared = Arc<Mutex<HookStatus>>;

/// Nothing panics while holding it, and what it guards is always consistent.
fn lock(shared: &Shared) -> MutexGuard<'_, HookStatus> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Running {
    hook: Hook,
    queue: SyncSender<Fact>,
    shared: Shared,
    /// When there will be room for a minute's events at once again (GCRA, ITU-T I.371).
    full_at: Duration,
    /// Left out since the last that was told.
    left_out: u64,
}

/// The hooks of a gateway.
#[derive(Debug)]
pub(super) struct Hooks {
    tun: String,
    clock: Clock,
    running: Vec<Running>,
}

impl Hooks {
    /// No hooks yet, of the gateway with this device.
    pub(super) fn new(tun: &str) -> Self {
        Self { tun: tun.to_owned(), clock: Clock::start(), running: Vec::new() }
    }

    /// Goes on with these hooks; those that stay keep their queues and counters.
    pub(super) fn follow(&mut self, hooks: &[Hook]) {
        let mut old = std::mem::take(&mut self.running);
        for hook in hooks {
            let known = old.iter().position(|running| running.hook == *hook);
            let running = known.map(|at| old.swap_remove(at)).or_else(|| start(hook));
            self.running.extend(running);
        }
    }

    /// Something happened: tells the hooks that are for it. Never waits.
    pub(super) fn tell(&mut self, news: &News) {
        let now = self.clock.elapsed();
        for running in &mut self.running {
            if !running.hook.on.contains(&news.event) {
                continue;
            }
            let fact = Fact {
                event: news.event.name(),
                time_s: realtime_since_epoch().as_secs(),
                tun: self.tun.clone(),
                peer: news.peer.clone(),
                path: news.path.clone(),
                reason: news.reason.clone(),
                left_out: running.left_out,
            };
            running.offer(now, fact);
        }
    }

    /// What each has done, in the order of the file.
    pub(super) fn status(&self) -> Vec<HookStatus> {
        self.running.iter().map(|running| lock(&running.shared).clone()).collect()
    }
}

impl Running {
    /// Queues a fact, unless there were too many in a minute or too many wait.
    fn offer(&mut self, now: Duration, fact: Fact) {
        let most = u32::from(self.hook.per_minute_max.max(1));
        let interval = MINUTE / most;
        let full_at = self.full_at.max(now);
        let has_room = full_at - now <= interval * (most - 1);
        let full = |error: &TrySendError<Fact>| matches!(error, TrySendError::Full(_));
        let left_out = !has_room || self.queue.try_send(fact).as_ref().is_err_and(full);
        if left_out {
            if self.left_out == 0 {
                log::warn!("a hook on {} is told no more for a while: too many", self.events());
            }
            self.left_out += 1;
            lock(&self.shared).left_out += 1;
        } else {
            self.full_at = full_at + interval;
            self.left_out = 0;
        }
    }

    fn events(&self) -> String {
        self.hook.on.iter().map(|event| event.name()).collect::<Vec<_>>().join(", ")
    }
}

/// Starts a hook's thread, which ends when nothing more can come.
fn start(hook: &Hook) -> Option<Running> {
    let (queue, facts) = sync_channel(QUEUE_MAX);
    let status = HookStatus {
        on: hook.on.iter().map(ToString::to_string).collect(),
        command: hook.command.first().cloned(),
        webhook: hook.webhook.as_deref().map(|url| host_of(url).to_owned()),
        ..HookStatus::default()
    };
    let shared = Arc::new(Mutex::new(status));
    let (own, told) = (hook.clone(), Arc::clone(&shared));
    let thread = thread::Builder::new().name("hook".into());
    if let Err(error) = thread.spawn(move || serve(&own, &facts, &told)) {
        log::error!("a hook has no thread and is left out: {error}");
        return None;
    }
    Some(Running { hook: hook.clone(), queue, shared, full_at: Duration::ZERO, left_out: 0 })
}

fn host_of(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    host.rsplit('@').next().unwrap_or(host)
}

fn serve(hook: &Hook, facts: &Receiver<Fact>, shared: &Shared) {
    for fact in facts {
        let result = run::run(hook, &fact);
        let mut status = lock(shared);
        match result {
            Ok(()) => {
                status.done += 1;
                status.last_error = None;
            }
            Err(error) => {
                let text = error.to_string();
                if status.last_error.as_ref() != Some(&text) {
                    log::warn!("hook on {}: {text}", fact.event);
                }
                match error {
                    run::HookError::TimedOut { .. } => status.timed_out += 1,
                    _ => status.failed += 1,
                }
                status.last_error = Some(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn news(event: HookEvent) -> News {
        News { event, peer: Some("S0VZ".into()), path: Some("dsl".into()), reason: None }
    }

    fn hook(command: &[&str], per_minute_max: u16) -> Hook {
        Hook {
            on: vec![HookEvent::PathDown],
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            timeout: Duration::from_secs(1),
            per_minute_max,
            ..Hook::default()
        }
    }

    fn wait_for(hooks: &Hooks, what: impl Fn(&HookStatus) -> bool) -> HookStatus {
        let begun = Instant::now();
        loop {
            let [status] = &hooks.status()[..] else { panic!() };
            if what(status) {
                return status.clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{status:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn only_its_events_reach_a_hook_and_more_than_its_rate_are_left_out() {
        let mut hooks = Hooks::new("plait0");
        hooks.follow(&[hook(&["/bin/true"], 3)]);
        for _ in 0..10 {
            hooks.tell(&news(HookEvent::PathDown));
            hooks.tell(&news(HookEvent::PathUp));
        }
        let status = wait_for(&hooks, |status| status.done == 3);
        assert_eq!((status.left_out, status.failed), (7, 0));
        assert_eq!(hooks.running[0].left_out, 7, "the next one is told");
        hooks.running[0].full_at = Duration::ZERO;
        hooks.tell(&news(HookEvent::PathDown));
        assert_eq!(hooks.running[0].left_out, 0);
    }

    #[test]
    fn a_hook_that_hangs_is_ended_with_its_children_and_holds_nobody_up() {
        let seconds = 1_000_000 + std::process::id();
        let sleeps = || {
            let is_it = |entry: &std::fs::DirEntry| {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                line == format!("sleep\0{seconds}\0").into_bytes()
            };
            std::fs::read_dir("/proc").unwrap().flatten().filter(is_it).count()
        };
        let mut hooks = Hooks::new("plait0");
        let script = format!("sleep {seconds} & wait");
        hooks.follow(&[hook(&["/bin/sh", "-c", &script], 1000)]);
        hooks.tell(&news(HookEvent::PathDown));
        let begun = Instant::now();
        while sleeps() == 0 && begun.elapsed() < Duration::from_secs(1) {
            thread::sleep(Duration::from_millis(1));
        }
        wait_for(&hooks, |status| status.timed_out == 1);
        thread::sleep(Duration::from_millis(100));
        assert_eq!(sleeps(), 0, "its child goes on");
        let begun = Instant::now();
        for _ in 0..5 * QUEUE_MAX {
            hooks.tell(&news(HookEvent::PathDown));
        }
        assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
        let [status] = &hooks.status()[..] else { panic!() };
        assert!(status.left_out as usize >= 3 * QUEUE_MAX, "{status:?}");
    }

    #[test]
    fn what_cannot_be_run_is_counted_and_told() {
        let mut hooks = Hooks::new("plait0");
        hooks.follow(&[hook(&["/nowhere/told"], 10)]);
        hooks.tell(&news(HookEvent::PathDown));
        let status = wait_for(&hooks, |status| status.failed == 1);
        let error = status.last_error.unwrap();
        assert!(error.starts_with("cannot run /nowhere/told: No such file"), "{error}");
        hooks.follow(&[hook(&["/bin/false"], 10)]);
        hooks.tell(&news(HookEvent::PathDown));
        let status = wait_for(&hooks, |status| status.failed == 1);
        assert_eq!(status.last_error.unwrap(), "/bin/false ended with exit status: 1");
    }

    #[test]
    fn a_hook_that_stays_keeps_its_counters() {
        let mut hooks = Hooks::new("plait0");
        hooks.follow(&[hook(&["/bin/true"], 10)]);
        hooks.tell(&news(HookEvent::PathDown));
        wait_for(&hooks, |status| status.done == 1);
        hooks.follow(&[hook(&["/bin/false"], 10), hook(&["/bin/true"], 10)]);
        let done: Vec<u64> = hooks.status().iter().map(|status| status.done).collect();
        assert_eq!(done, [0, 1]);
    }

    #[test]
    fn a_webhooks_secret_is_not_shown() {
        for url in ["http://u:p@a:1/secret?token", "http://a:1", "http://a:1?token"] {
            assert_eq!(host_of(url), "a:1");
        }
    }
}
