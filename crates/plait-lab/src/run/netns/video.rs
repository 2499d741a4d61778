//! A video application: headless Chromium at the customer plays the clip that the lab's server has.
//! The page stands before the scenario starts, so that only the clip is measured.
//!
//! Chromium speaks plain TCP. For MPTCP it asks a proxy at the customer, which leads it to one at
//! the provider over all links.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::tcp::set_congestion;
use plait_proto::time::Instant;
use plait_sim::app::viewer_score::Viewing;
use plait_sim::app::{Observation, Span, Tally, VideoView};
use plait_sim::scenario::app::Via;
use plait_sim::scenario::video::VideoSpec;
use plait_sim::scenario::{AppSpec, Scenario};
use plait_toml::proxy::{ProxyFile, Upstream, WayIn};

use super::plan::kernel_controller;
use super::player::{kbit, videos};
use super::site::{self, Site};
use crate::emulator::Epoch;
use crate::proxy::{ProxyProcess, open_to_all};
use crate::qoe::{self, Folders, Limits, Opened, Player, Prepared, Run, Server};
use crate::scratch::Scratch;
use crate::topology::{PROVIDER_V4, SERVER_BARE_V4, SERVER_V4};

/// The customer's proxy, for programs of the customer alone.
const NEAR: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);
const FAR_PORT: u16 = 5124;
const SLEEP: Duration = Duration::from_millis(20);

/// Makes the clip of a scenario's player, or finds it; `None` without a player.
pub(super) fn prepare(scenario: &Scenario) -> Result<Option<Prepared>> {
    let Some((_, video)) = videos(scenario).next() else { return Ok(None) };
    let seconds = |time: Duration| u32::try_from(time.as_secs()).context("a clip of an hour");
    let kbit: Vec<u64> = kbit(video).collect();
    Ok(Some(qoe::prepare(seconds(video.clip)?, seconds(video.segment)?, &kbit)?))
}

/// All that a player needs, running.
#[derive(Debug)]
pub(super) struct Stage {
    // Drop order: the browser ends before the proxies, and they before the server.
    page: Option<Opened>,
    _proxies: Vec<ProxyProcess>,
    _server: Server,
    _scratch: Scratch,
}

impl Stage {
    /// Starts server and proxies, and opens the page, over carriers that are up.
    pub(super) fn set(scenario: &Scenario, site: &Site, clip: &Prepared) -> Result<Self> {
        let (app, video) = videos(scenario).next().context("a clip belongs to a player")?;
        let scratch = Scratch::in_memory("video")?;
        let controller = kernel_controller(app, &video.tcp)?;
        let address = if app.via == Via::Bond { SERVER_V4 } else { SERVER_BARE_V4 };
        let listener = site.server.run_in(|| TcpListener::bind((address, 0)))??;
        // Connections take it from their listener.
        set_congestion(&listener, &controller)?;
        let runs = scratch.path().join("runs");
        let folders = Folders { clips: &clip.folder, runs: &runs, youtube_key: None };
        let server = Server::start(listener, folders, Limits::default())?;
        if let Some(link) = site::only_link(scenario, &app.via) {
            site.lead(scenario, SERVER_BARE_V4, link)?;
        }
        let is_multipath = app.via == Via::Mptcp;
        let proxies =
            if is_multipath { start_proxies(site, &scratch, &controller)? } else { Vec::new() };
        let url = format!("http://{}/", server.address());
        let proxy = is_multipath.then(|| format!("http://{NEAR}"));
        let player = player(app, video, clip);
        let player =
            Player { netns: Some(&site.customer), url: &url, proxy: proxy.as_deref(), ..player };
        let page = Some(Opened::new(&player)?);
        Ok(Self { page, _proxies: proxies, _server: server, _scratch: scratch })
    }

    pub(super) fn take_page(&mut self) -> Option<Opened> {
        self.page.take()
    }
}

/// The page's settings.
fn player<'a>(app: &AppSpec, video: &VideoSpec, clip: &'a Prepared) -> Player<'a> {
    // Several qualities are there to be chosen from.
    let only = clip.clip.qualities.first().filter(|_| clip.clip.qualities.len() == 1);
    Player {
        quality: only.map(|quality| quality.name.as_str()),
        rebuffering_goal_s: video.start.as_secs_f64(),
        buffering_goal_s: video.buffer_max.as_secs_f64(),
        limit: app.stop.saturating_sub(app.start).max(Duration::from_secs(1)),
        ..Player::new("", &clip.clip.id)
    }
}

/// One proxy at the provider, and one at the customer that asks it.
fn start_proxies(site: &Site, scratch: &Scratch, controller: &str) -> Result<Vec<ProxyProcess>> {
    let far = SocketAddr::from((PROVIDER_V4, FAR_PORT));
    let file = open_to_all(&[(far, WayIn::Convert)], controller);
    let at_provider = ProxyProcess::start(&site.provider, scratch.path(), "far", &file)?;
    let upstream = Some(Upstream { address: far, ..Upstream::default() });
    let file = ProxyFile { upstream, ..open_to_all(&[(NEAR, WayIn::Http)], controller) };
    let at_customer = ProxyProcess::start(&site.customer, scratch.path(), "near", &file)?;
    Ok(vec![at_customer, at_provider])
}

/// A running player. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct VideoApp {
    shared: Arc<Shared>,
    start: Instant,
    span: Span,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    quit: AtomicBool,
    /// How it went, once it is over.
    end: Mutex<Option<Result<Run, String>>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Result<Run, String>>> {
        self.end.lock().expect("no thread panics while it holds a record")
    }

    fn quits(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }

    /// Plays from `start` on; `None` when it was told to quit.
    fn play(&self, mut page: Opened, start: Instant, epoch: Epoch) -> Result<Option<Run>> {
        while !self.quits() && epoch.now() < start {
            std::thread::sleep(start.since(epoch.now()).min(SLEEP));
        }
        page.start()?;
        while !self.quits() {
            if let Some(run) = page.outcome()? {
                return Ok(Some(run));
            }
            std::thread::sleep(qoe::POLL);
        }
        Ok(None)
    }
}

impl VideoApp {
    /// Plays a page's clip at its time, on a thread of its own.
    pub(super) fn start(page: Opened, (start, span): (Instant, Span), epoch: Epoch) -> Self {
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let end = its.play(page, start, epoch).map_err(|error| format!("{error:#}"));
            *its.lock() = end.transpose();
        });
        Self { shared, start, span, thread: Some(thread) }
    }

    pub(super) fn is_done(&self) -> bool {
        self.shared.lock().is_some()
    }

    /// Waits for the record, which comes at the page's own limit at the latest.
    pub(super) fn wait(&self) {
        let is_running = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while is_running() {
            std::thread::sleep(SLEEP);
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.shared.lock().as_ref()?.as_ref().err().cloned()
    }

    fn record(&self) -> Option<Run> {
        self.shared.lock().as_ref()?.as_ref().ok().cloned()
    }

    /// What came, by the page's points of every half second.
    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally::new(self.span);
        let Some(run) = self.record() else { return tally };
        let (times, bytes) = (run.series.get("t_s"), run.series.get("bytes"));
        let mut before = 0;
        for (t_s, bytes) in times.into_iter().flatten().zip(bytes.into_iter().flatten()) {
            let (at, bytes) = (self.start + Duration::from_secs_f64(t_s.max(0.0)), *bytes as u64);
            let came = bytes.saturating_sub(before);
            before = before.max(bytes);
            if came > 0 {
                tally.on_goodput(at, came);
                tally.offered_bytes += came;
                tally.measured_offered_bytes += if self.span.holds(at) { came } else { 0 };
            }
        }
        tally
    }

    pub(super) fn observe(&self) -> Observation {
        let video = self.record().as_ref().map(view);
        Observation { video, ..Observation::default() }
    }
}

impl Drop for VideoApp {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// A page's record in the simulator's words.
fn view(run: &Run) -> VideoView {
    let figures = &run.figures;
    VideoView {
        viewing: Viewing {
            initial_load_s: figures.initial_load_s,
            stalls: figures.stalls,
            stalled_s: figures.stalled_s,
            clip_s: run.clip.duration_s,
        },
        buffered_s: figures.all_buffered_s,
        quality_mbit: (figures.bytes > 0).then_some(figures.mean_bitrate_bps / 1e6),
        switches: figures.switches,
        is_finished: run.complete,
    }
}
