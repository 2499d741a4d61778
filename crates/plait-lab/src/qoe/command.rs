//! `plait-lab qoe`: serve, clips, play.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::catalogue::{self, Catalogue, Clip};
use super::clips::{self, Codec, Kind, Wanted};
use super::play::{Player, play};
use super::record::{Figures, Run};
use super::server::{Folders, Limits, Server};
use super::youtube::Key;
use super::{QoeError, app};
use crate::cli::qoe::{ClipsArgs, Coding, PlayArgs, QoeArgs, QoeCommand, ServeArgs};
use crate::figure::{Figure, Summary};
use crate::output::{self, Align, Output, Table, Verdict};

/// The folder of runs in a folder of clips.
const RUNS: &str = "runs";

pub(crate) fn run(args: &QoeArgs, output: &Output) -> Result<Verdict> {
    match &args.command {
        QoeCommand::Serve(args) => serve(args, output),
        QoeCommand::Clips(args) => make_clips(args, output),
        QoeCommand::Play(args) => play_runs(args, output),
    }
}

fn folder_or_default(folder: Option<&Path>) -> Result<PathBuf, QoeError> {
    folder.map_or_else(catalogue::default_folder, |folder| Ok(folder.to_owned()))
}

/// Starts a server over a folder that has a catalogue.
fn start_server(
    listen: SocketAddr,
    clips: &Path,
    runs: Option<&Path>,
    youtube_key: Option<Key>,
) -> Result<Server, QoeError> {
    if !app::is_there() {
        return Err(QoeError::NotBuilt);
    }
    Catalogue::read(clips)?;
    if youtube_key.is_some() && !listen.ip().is_loopback() {
        return Err(QoeError::KeyForAll(listen));
    }
    let default = clips.join(RUNS);
    let runs = runs.unwrap_or(&default);
    let listener =
        TcpListener::bind(listen).map_err(|source| QoeError::Listen { address: listen, source })?;
    let folders = Folders { clips, runs, youtube_key };
    Server::start(listener, folders, Limits::default())
        .map_err(|source| QoeError::Folder { path: runs.to_owned(), source })
}

fn serve(args: &ServeArgs, output: &Output) -> Result<Verdict> {
    let clips = folder_or_default(args.catalogue.as_deref())?;
    let key = args.youtube_key.as_deref().map(Key::read).transpose()?;
    let server = start_server(args.listen, &clips, args.runs_folder.as_deref(), key)?;
    let address = server.address();
    output.line(format!("Open http://{address}/ in a browser. Ctrl-C ends the server."))?;
    output.record("serving", &json!({ "url": format!("http://{address}/") }))?;
    server.wait();
    Ok(Verdict::Good)
}

fn make_clips(args: &ClipsArgs, output: &Output) -> Result<Verdict> {
    let folder = folder_or_default(args.folder.as_deref())?;
    let kind = if args.short { Kind::Short } else { Kind::Paper };
    let codec = match args.codec {
        Coding::H264 => Codec::H264,
        Coding::Vp9 => Codec::Vp9,
    };
    let ClipsArgs { real_size, segment, .. } = *args;
    let clip = clips::make(&Wanted { kind, codec, real_size, segment_s: segment }, &folder)?;
    output.line(format!("{}: {}, in {}", clip.id, clip.title, folder.display()))?;
    output.line("")?;
    output.lines(table_of(&clip).lines())?;
    output.line("\nWatch it: plait-lab qoe serve")?;
    output.record("clip", &clip)?;
    let more = json!({ "folder": folder });
    output.record("summary", &Summary::new("qoe clips", &[], more))?;
    Ok(Verdict::Good)
}

fn table_of(clip: &Clip) -> Table {
    let mut table = Table::of_numbers(&["quality", "MB", "Mbit/s", "picture"]);
    for quality in &clip.qualities {
        table.row([
            quality.name.clone(),
            format!("{:.1}", quality.bytes as f64 / 1e6),
            format!("{:.2}", quality.bandwidth_bps as f64 / 1e6),
            format!("{}x{}", quality.width, quality.height),
        ]);
    }
    table
}

fn play_runs(args: &PlayArgs, output: &Output) -> Result<Verdict> {
    // The server that is started ends with this command.
    let (url, _server) = match &args.url {
        Some(url) => (url.clone(), None),
        None => {
            let clips = folder_or_default(args.catalogue.as_deref())?;
            let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let server = start_server(listen, &clips, None, None)?;
            (format!("http://{}/", server.address()), Some(server))
        }
    };
    let player = Player {
        quality: args.quality.as_deref(),
        protocol: args.protocol.name(),
        rebuffering_goal_s: args.rebuffering_goal,
        buffering_goal_s: args.buffering_goal,
        proxy: args.proxy.as_deref(),
        limit: Duration::from_secs(args.limit),
        ..Player::new(&url, &args.clip)
    };
    let mut runs = Vec::new();
    for number in 1..=args.runs {
        if args.runs > 1 {
            output::note(format!("run {number} of {}", args.runs));
        }
        let run = play(&player)?;
        output.record("run", &run)?;
        runs.push(run);
    }
    output.lines(table_of_runs(&runs).lines())?;
    let figures = means(&runs);
    output.records("figure", &figures)?;
    let more = json!({ "clip": args.clip, "quality": args.quality, "runs": runs.len() });
    let summary = Summary::new("qoe play", &figures, more);
    output.record("summary", &summary)?;
    Ok(Verdict::of(summary.ok))
}

fn table_of_runs(runs: &[Run]) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("run", Align::Left),
        right("score"),
        right("initial load s"),
        right("stalls"),
        right("stalled s"),
        right("all buffered s"),
        right("Mbit/s"),
        right("switches"),
        right("MB"),
        right("dropped"),
        ("", Align::Left),
    ]);
    for run in runs {
        let Figures { bytes, dropped_frames, decoded_frames, .. } = run.figures;
        let figures = &run.figures;
        table.row([
            run.id.clone(),
            format!("{:.2}", figures.mos),
            format!("{:.2}", figures.initial_load_s),
            figures.stalls.to_string(),
            format!("{:.2}", figures.stalled_s),
            figures.all_buffered_s.map_or_else(|| "-".into(), |time| format!("{time:.1}")),
            format!("{:.2}", figures.mean_bitrate_bps / 1e6),
            figures.switches.to_string(),
            format!("{:.1}", bytes as f64 / 1e6),
            format!("{dropped_frames} of {decoded_frames}"),
            if run.complete { String::new() } else { "cut".into() },
        ]);
    }
    if runs.len() > 1 {
        let mean = |value: fn(&Figures) -> f64| format!("{:.2}", mean(runs, value));
        table.row([
            "mean".to_owned(),
            mean(|figures| figures.mos),
            mean(|figures| figures.initial_load_s),
            mean(|figures| figures.stalls.into()),
            mean(|figures| figures.stalled_s),
        ]);
    }
    table
}

fn mean(runs: &[Run], value: fn(&Figures) -> f64) -> f64 {
    runs.iter().map(|run| value(&run.figures)).sum::<f64>() / runs.len().max(1) as f64
}

/// Means over the runs; the score is the mean of scores, as 004's errata want it.
fn means(runs: &[Run]) -> Vec<Figure> {
    let cut = runs.iter().filter(|run| !run.complete).count();
    let number = |name, value: fn(&Figures) -> f64, unit: &'static str| {
        Figure::number(name, mean(runs, value), unit)
    };
    vec![
        number("mean score", |figures| figures.mos, "MOS"),
        number("mean initial load", |figures| figures.initial_load_s, "s"),
        number("mean number of stalls", |figures| figures.stalls.into(), "stalls"),
        number("mean time stalled", |figures| figures.stalled_s, "s"),
        Figure::none("runs that were cut", cut as u64, "a clip plays to its end"),
    ]
}
