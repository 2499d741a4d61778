//! install.6: a kill switch lets nothing out beside the bond, whatever becomes of the gateway; and
//! where it is wanted, traffic goes past a bond that is down, and back.

mod asker;
mod network;

use std::time::Duration;

use anyhow::Result;
use plait_toml::value::WhenDown;

use super::super::{Effort, Figure};
use crate::figure::Value;
use crate::output::Progress;
use asker::{Asker, By};
use network::Network;

const SOURCE: &str = "install.6";
/// The longest silence of a stream when the bond goes down, and when it comes back.
const SILENCE_MAX_MS: f64 = 2000.0;
/// The bond carries traffic again so soon after its provider is back.
const RETURN_MAX_MS: f64 = 8000.0;
/// Durations for the progress display.
const BLOCK: Duration = Duration::from_secs(20);
const BYPASS: Duration = Duration::from_secs(25);

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let runs = effort.runs();
    let steps = [(BLOCK, "block"), (BYPASS, "bypass"), (BYPASS, "bypass, dsl dead")];
    let mut progress = Progress::new(3 * runs, (BLOCK + 2 * BYPASS) * runs as u32);
    let mut figures = Vec::new();
    for _ in 0..runs {
        for (at, (time, name)) in steps.iter().enumerate() {
            let _step = progress.step(name, *time);
            let more = match at {
                0 => blocked()?,
                _ => bypassed(at == 2)?,
            };
            keep_worst(&mut figures, more);
        }
    }
    Ok(figures)
}

/// Of each figure the run that is furthest from passing.
fn keep_worst(figures: &mut Vec<Figure>, more: Vec<Figure>) {
    for new in more {
        match figures.iter_mut().find(|known| known.name == new.name) {
            None => figures.push(new),
            Some(known) if is_worse(&new, known) => *known = new,
            Some(_) => {}
        }
    }
}

fn is_worse(new: &Figure, known: &Figure) -> bool {
    match (&new.value, &known.value) {
        (Value::Number(new), Value::Number(old)) if known.high.is_some() => new > old,
        (Value::Number(new), Value::Number(old)) => new < old,
        _ => false,
    }
}

/// Everybody asks all the time; what leaves over the links is captured.
fn blocked() -> Result<Vec<Figure>> {
    let mut network = Network::build(WhenDown::Block)?;
    let _askers = network.ask_everywhere()?;
    let pause = || std::thread::sleep(Duration::from_secs(2));
    let mut figures = Vec::new();
    let mut count = |network: &Network, phase: &str| {
        let (outside, captured) = network.outside();
        let name = format!("block: packets outside the bond, {phase}");
        figures.push(Figure::none(name, outside, SOURCE));
        captured
    };
    network.start_provider()?;
    network.start_customer()?;
    network.wait_until_blocked()?;
    network.begin_capture();
    network.wait_until_up(2)?;
    pause();
    let captured = count(&network, "start and run");
    network.begin_capture();
    network.provider()?.kill()?;
    pause();
    count(&network, "provider killed");
    network.begin_capture();
    network.customer()?.kill()?;
    pause();
    count(&network, "gateway killed");
    network.begin_capture();
    network.restart()?;
    network.wait_until_up(2)?;
    pause();
    count(&network, "started again");
    let through = network.answers_through_the_bond()?;
    network.customer()?.stop()?;
    network.begin_capture();
    pause();
    let (outside, _) = network.outside();
    figures.push(
        Figure::count("block: captured packets of the bond", captured)
            .at_least(100.0, "the capture sees the links"),
    );
    figures.push(
        Figure::count("block: answers to the LAN host through the bond, of 20", through)
            .at_least(18.0, "the bond carries beside the kill switch"),
    );
    figures.push(
        Figure::count("block: packets outside after an orderly stop", outside)
            .at_least(20.0, "what was kept in wanted out"),
    );
    Ok(figures)
}

/// The provider is killed while streams run, and comes back; with `dead` the link that the host
/// prefers carries nothing all along.
fn bypassed(dead: bool) -> Result<Vec<Figure>> {
    let mut network = Network::build(WhenDown::Bypass)?;
    if dead {
        network.cut_preferred();
    }
    network.start_provider()?;
    network.start_customer()?;
    network.wait_until_up(if dead { 1 } else { 2 })?;
    let askers = network.ask_everywhere()?;
    let told = if dead { "bypass, preferred link dead" } else { "bypass" };
    std::thread::sleep(Duration::from_secs(2));
    let died = askers[0].now();
    network.provider()?.kill()?;
    std::thread::sleep(Duration::from_secs(5));
    let came = askers[0].now();
    network.restart_provider()?;
    std::thread::sleep(Duration::from_secs(9));
    let mut figures = Vec::new();
    for asker in askers {
        let Asker { name, by, .. } = asker;
        let seen = asker.stop();
        let stays = |by| if by == By::Udp { "UDP stream" } else { "TCP connections" };
        let figure = |what: &str, value: f64| {
            Figure::number(format!("{told}: {what}, {} of {name}", stays(by)), value, "ms")
        };
        let out = seen.first_from(|source| !network.is_inside(source), died);
        figures.push(figure("to the bare link", out).at_most(SILENCE_MAX_MS, SOURCE));
        let silence = seen.longest_silence(died, came);
        figures.push(
            figure("silence when the provider died", silence).at_most(SILENCE_MAX_MS, SOURCE),
        );
        let back = seen.first_from(|source| network.is_inside(source), came);
        figures.push(figure("back in the bond", back).at_most(RETURN_MAX_MS, SOURCE));
        let silence = seen.longest_silence_to_end(came);
        figures.push(figure("silence when it came back", silence).at_most(SILENCE_MAX_MS, SOURCE));
        let strays = seen.count_after(|source| !network.is_inside(source), came + back_time(back));
        let name = format!("{told}: answers outside after the return, {} of {name}", stays(by));
        figures.push(Figure::none(name, strays, SOURCE));
    }
    Ok(figures)
}

/// A moment after the return, in which answers to earlier questions arrive.
fn back_time(back_ms: f64) -> Duration {
    Duration::from_millis(300) + Duration::from_secs_f64((back_ms / 1e3).clamp(0.0, 60.0))
}
