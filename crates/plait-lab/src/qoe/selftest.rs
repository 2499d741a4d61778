//! The lab's own tests of the measuring application: the whole page in headless Chromium, in a
//! namespace without a route out, and a clip over an emulated link that is too slow for it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;
use serde_json::{Value, json};

use super::QoeError;
use super::app;
use super::browser::{Browser, Start};
use super::catalogue::Clip;
use super::clips::{self, Codec, Kind, Wanted};
use super::play::{Player, play};
use super::record::Run;
use super::server::{Folders, Limits, Server};
use crate::output::Output;
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, SERVER_BARE_V4, Topology, new_netns};

mod keyboard;

/// For a clip of 8 s.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// Widths that the page is looked at with: a desk's and a phone's.
const WIDTHS: [u32; 2] = [1280, 420];
const HEIGHT: u32 = 900;
/// A folder for pictures of the page; without it none are made.
const PICTURES_ENV: &str = "PLAIT_QOE_PICTURES";
const IS_WIDE: &str = "document.documentElement.scrollWidth > innerWidth";

/// A server with the short clip, in a folder of its own.
struct Stand {
    scratch: Scratch,
    clip: Clip,
}

impl Stand {
    fn new() -> Result<Self> {
        ensure!(app::is_there(), QoeError::NotBuilt);
        let scratch = Scratch::on_disk("qoe")?;
        let wanted =
            Wanted { kind: Kind::Short, codec: Codec::H264, real_size: false, segment_s: 2 };
        let clip = clips::make(&wanted, scratch.path())?;
        Ok(Self { scratch, clip })
    }

    fn serve(&self, netns: &NetNs, address: Ipv4Addr) -> Result<Server> {
        let listener = netns.run_in(|| TcpListener::bind((address, 0)))??;
        let clips = self.scratch.path();
        let runs = clips.join("runs");
        let folders = Folders { clips, runs: &runs, youtube_key: None };
        Ok(Server::start(listener, folders, Limits::default())?)
    }
}

/// The page as a whole.
pub(crate) fn page(output: &Output) -> Result<()> {
    let run = walk_page()?;
    output.line(format!(
        "score {:.2}, initial load {:.2} s",
        run.figures.mos, run.figures.initial_load_s
    ))
}

/// Everything that the page can do, by keys, on wide and narrow screens; gives the run that was
/// played. An error says what the page did wrong.
pub(crate) fn walk_page() -> Result<Run> {
    let stand = Stand::new()?;
    let netns = new_netns("plait-qoe")?;
    let server = stand.serve(&netns, Ipv4Addr::LOCALHOST)?;
    let url = format!("http://{}/", server.address());
    let start = Start {
        netns: Some(&netns),
        hosts: vec![Ipv4Addr::LOCALHOST.to_string()],
        proxy: None,
        width: WIDTHS[0],
        height: HEIGHT,
    };
    let mut browser = Browser::start(&start)?;
    open_as(&mut browser, &url, WIDTHS[0], "light")?;
    keyboard::walk(&mut browser)?;
    keyboard::search(&mut browser)?;
    let run = run_by_keys(&mut browser)?;
    ensure!(run.complete, "the clip did not play to its end: {run:?}");
    ensure!(run.figures.stalls == 0 && run.figures.mos > 3.2, "{:?}", run.figures);
    ensure!(run.figures.bytes > 100_000, "{:?}", run.figures);
    keyboard::cut_short(&mut browser)?;
    // Another run, of the other protocol and of a fixed quality, as programs ask for it.
    let quality = stand.clip.qualities.last().context("a clip has qualities")?;
    let player = Player {
        netns: Some(&netns),
        quality: Some(&quality.name),
        protocol: "hls",
        limit: RUN_LIMIT,
        ..Player::new(&url, &stand.clip.id)
    };
    let fixed = play(&player)?;
    let low = quality.bytes * 9 / 10;
    ensure!((low..quality.bytes * 11 / 10).contains(&fixed.figures.bytes), "{:?}", fixed.figures);
    ensure!(fixed.figures.switches == 0, "{:?}", fixed.figures);
    for width in WIDTHS {
        for scheme in ["light", "dark"] {
            open_as(&mut browser, &url, width, scheme)?;
            keyboard::compare_all(&mut browser)?;
            fits(&mut browser, width, &format!("runs-{width}-{scheme}"))?;
        }
    }
    let log = std::fs::read_to_string(stand.scratch.path().join("runs/cmcd.jsonl"))?;
    ensure!(log.contains(&fixed.id) || log.contains("\"sid\""), "players say nothing: {log}");
    Ok(run)
}

/// A clip over a link that is slower than it.
pub(crate) fn link(output: &Output) -> Result<()> {
    let stand = Stand::new()?;
    let topology = Topology::build(&[LinkSpec::new("slow", 1, 20, 20)])?;
    let server = stand.serve(&topology.server, SERVER_BARE_V4)?;
    let url = format!("http://{}/", server.address());
    let player = Player {
        netns: Some(&topology.customer().netns),
        quality: Some("1080p"),
        // Less than a segment: it begins with the first one, and waits for each of the others.
        rebuffering_goal_s: 1.0,
        limit: RUN_LIMIT,
        ..Player::new(&url, &stand.clip.id)
    };
    let run = play(&player)?;
    ensure!(run.complete, "the clip did not play to its end: {:?}", run.figures);
    ensure!(run.figures.stalls >= 1 && run.figures.stalled_s > 0.3, "{:?}", run.figures);
    ensure!(run.figures.initial_load_s > 1.0, "{:?}", run.figures);
    // How the page shows it, seen from the server's side of the link.
    let netns = Some(&topology.server);
    let hosts = vec![SERVER_BARE_V4.to_string()];
    let mut browser =
        Browser::start(&Start { netns, hosts, proxy: None, width: WIDTHS[0], height: HEIGHT })?;
    open_as(&mut browser, &url, WIDTHS[0], "light")?;
    browser.evaluate("document.querySelector('#runs-body input').click()")?;
    browser.wait_for("document.querySelectorAll('#compare-charts svg').length === 4", RUN_LIMIT)?;
    fits(&mut browser, WIDTHS[0], "link-1280-light")?;
    output.line(format!(
        "score {:.2}, {} stalls of {:.2} s together",
        run.figures.mos, run.figures.stalls, run.figures.stalled_s
    ))
}

fn open_as(browser: &mut Browser, url: &str, width: u32, scheme: &str) -> Result<()> {
    let metrics =
        json!({ "width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": false });
    browser.call("Emulation.setDeviceMetricsOverride", metrics)?;
    // A picture leaves no room for them, and the page does.
    browser.call("Emulation.setScrollbarsHidden", json!({ "hidden": true }))?;
    let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
    browser.call("Emulation.setEmulatedMedia", json!({ "features": [feature] }))?;
    browser.open(url)?;
    browser.wait_for("document.querySelectorAll('#clips input').length > 0", RUN_LIMIT)?;
    fits(browser, width, &format!("start-{width}-{scheme}"))
}

/// Plays by the keyboard alone, and looks at the page meanwhile.
fn run_by_keys(browser: &mut Browser) -> Result<Run> {
    keyboard::press(browser, "p", "KeyP", 80)?;
    browser.wait_for("window.plait.state === 'running'", RUN_LIMIT)?;
    browser.wait_for("document.querySelector('#stage').dataset.phase === 'playing'", RUN_LIMIT)?;
    std::thread::sleep(Duration::from_secs(4));
    fits(browser, WIDTHS[0], "playing-1280-light")?;
    browser.wait_for("['kept', 'failed'].includes(window.plait.state)", RUN_LIMIT)?;
    let told = browser.evaluate("JSON.stringify([window.plait.error, window.plait.record])")?;
    let told: Value = serde_json::from_str(told.as_str().unwrap_or_default())?;
    ensure!(told[0].is_null(), "the page says {}", told[0]);
    let strangers = browser.evaluate(
        "performance.getEntriesByType('resource').map((entry) => entry.name)\
         .filter((name) => !name.startsWith(location.origin)).join(' ')",
    )?;
    ensure!(strangers == "", "the page asked others than its server: {strangers}");
    Ok(Run::parse(told[1].to_string().as_bytes())?)
}

/// The page is no wider than the window; a picture is made of it where that is wanted.
fn fits(browser: &mut Browser, width: u32, name: &str) -> Result<()> {
    picture(browser, name)?;
    ensure!(browser.evaluate(IS_WIDE)? == false, "{name}: the page is wider than {width} pixels");
    Ok(())
}

fn picture(browser: &mut Browser, name: &str) -> Result<()> {
    use base64::Engine as _;
    let Some(folder) = std::env::var_os(PICTURES_ENV).map(PathBuf::from) else { return Ok(()) };
    browser.evaluate("scrollTo(0, 0)")?;
    let asked = json!({ "format": "png", "captureBeyondViewport": true });
    let answer = browser.call("Page.captureScreenshot", asked)?;
    let data = answer["data"].as_str().context("a picture has data")?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data)?;
    std::fs::write(folder.join(format!("{name}.png")), bytes)?;
    Ok(())
}
