//! A video over HTTP: a player fetches a clip's segments one after another over one connection that
//! stays open. See `docs/algorithms/video-player.md`.

use plait_proto::time::{Duration, Instant};

use super::connection::{Ends, ends};
use super::exchange::Exchange;
use super::multipath::flow;
use super::tally::Tally;
use super::viewer_score::Viewing;
use super::{App, Observation, Outbox, Place};
use crate::error::WorldError;
use crate::packet::Packet;
use crate::prng::Prng;
use crate::scenario::app::WebSpec;
use crate::scenario::video::VideoSpec;
use crate::tcp::mptcp::{LocalQueue, MptcpConfig};
use crate::tcp::{Segment, Source};

mod abr;
mod player;

use abr::Abr;
use player::{Player, PlayerConfig};

const REQUEST_BYTES: u64 = WebSpec::REQUEST_BYTES as u64;
/// What comes before the first segment.
const MANIFEST_BYTES: u64 = 4096;

/// What a viewer met, up to the application's end if nothing more arrives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VideoView {
    /// Initial load, stalls and the clip's length; a clip that has not begun has its wait so far,
    /// and a stall that is not over its time so far.
    pub viewing: Viewing,
    /// From the wish to see the clip until all of it had arrived, seconds.
    pub buffered_s: Option<f64>,
    /// Mean rate of the segments that arrived, each weighed with its length, Mbit/s.
    pub quality_mbit: Option<f64>,
    /// Segments of another quality than the one before.
    pub switches: u32,
    /// Whether the clip came to its end.
    pub is_finished: bool,
}

/// A segment that was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Instant,
    quality: usize,
    bytes: u64,
}

/// What carries the clip.
#[derive(Debug)]
enum Carrier {
    Tcp(Ends),
    Mptcp(MptcpConfig, Vec<String>),
}

/// A player, and its server.
#[derive(Debug)]
pub(super) struct Video {
    place: Place,
    spec: VideoSpec,
    carrier: Carrier,
    abr: Box<dyn Abr>,
    /// By segment: its size over that of its rate, in the same proportion in each quality.
    factors: Vec<f64>,
    /// Absent before the page is opened.
    exchange: Option<Exchange>,
    /// Absent before the clip is wanted.
    player: Option<Player>,
    /// Whether the manifest was asked for.
    has_asked: bool,
    /// The segment under way.
    asked: Option<Asked>,
    /// Qualities of the segments that arrived.
    qualities: Vec<usize>,
    buffered: Option<Duration>,
    tally: Tally,
}

impl Video {
    pub(super) fn new(place: Place, spec: &VideoSpec, seed: u64) -> Result<Self, WorldError> {
        let carrier = match &spec.mptcp {
            Some(mptcp) => {
                let config = flow::config(&place, &spec.tcp, mptcp, Source::Written)?;
                Carrier::Mptcp(config, mptcp.subflows.clone())
            }
            None => Carrier::Tcp(ends(&place, &spec.tcp, Source::Written)?),
        };
        Ok(Self {
            carrier,
            abr: abr::build(spec.abr, spec.buffer_max),
            factors: draw_factors(spec, seed),
            exchange: None,
            player: None,
            has_asked: false,
            asked: None,
            qualities: Vec::new(),
            buffered: None,
            tally: Tally::new(place.span),
            spec: spec.clone(),
            place,
        })
    }

    /// When the page is opened: there is nothing before the scenario's start.
    fn opens_at(&self) -> Instant {
        let start = self.place.start.since(self.place.zero);
        self.place.zero + start.saturating_sub(self.spec.page_lead)
    }

    fn open(&mut self, now: Instant, out: &mut Outbox) {
        let exchange = match &self.carrier {
            Carrier::Tcp(ends) => Exchange::tcp(&self.place, 0, *ends),
            Carrier::Mptcp(config, _) => Exchange::mptcp(&self.place, config),
        };
        self.exchange = Some(exchange);
        self.go_on(now, out);
    }

    /// Sends what is to be sent, takes what has come, and asks for what is due.
    fn go_on(&mut self, now: Instant, out: &mut Outbox) {
        let Some(exchange) = &mut self.exchange else { return };
        exchange.drain(now, &mut self.tally, out);
        if exchange.is_waiting() || now < self.place.start {
            return;
        }
        let begin = || Player::new(player_config(&self.spec), self.place.start);
        let player = self.player.get_or_insert_with(begin);
        player.advance(now);
        if let Some(asked) = self.asked.take() {
            player.take_segment(now);
            self.abr.on_segment(asked.bytes, now.since(asked.at));
            self.qualities.push(asked.quality);
            if player.segments() == player_config(&self.spec).segments() {
                self.buffered = Some(now.since(self.place.start));
            }
        }
        let bytes = if !self.has_asked {
            self.has_asked = true;
            MANIFEST_BYTES
        } else if player.next_request().is_some_and(|at| at <= now) {
            let last = self.qualities.last().copied().unwrap_or(0);
            let quality = self.abr.choose(&self.spec.qualities, last, player.buffered());
            let bytes = segment_bytes(&self.spec, &self.factors, player.segments(), quality);
            self.asked = Some(Asked { at: now, quality, bytes });
            bytes
        } else {
            return;
        };
        exchange.ask(now, REQUEST_BYTES, bytes);
        exchange.drain(now, &mut self.tally, out);
    }

    fn view(&self) -> VideoView {
        let mut player =
            self.player.clone().unwrap_or(Player::new(player_config(&self.spec), self.place.start));
        player.advance(self.place.stop);
        let seen = player.seen();
        let config = player_config(&self.spec);
        let length_s = |at: usize| {
            let at = u32::try_from(at).expect("a clip has fewer segments than 2^32");
            (config.end_of(at + 1) - config.end_of(at)).as_secs_f64()
        };
        let bits = |(at, quality): (usize, &usize)| {
            self.spec.qualities[*quality].bits_per_second() as f64 * length_s(at)
        };
        let arrived_s = config.end_of(player.segments()).as_secs_f64();
        let arrived_bits: f64 = self.qualities.iter().enumerate().map(bits).sum();
        let switches = self.qualities.windows(2).filter(|pair| pair[0] != pair[1]).count();
        VideoView {
            viewing: Viewing {
                initial_load_s: seen.initial_load.as_secs_f64(),
                stalls: seen.stalls,
                stalled_s: seen.stalled.as_secs_f64(),
                clip_s: self.spec.clip.as_secs_f64(),
            },
            buffered_s: self.buffered.map(|time| time.as_secs_f64()),
            quality_mbit: (arrived_s > 0.0).then(|| arrived_bits / arrived_s / 1e6),
            switches: u32::try_from(switches).expect("a clip has fewer segments than 2^32"),
            is_finished: seen.is_finished,
        }
    }
}

fn player_config(spec: &VideoSpec) -> PlayerConfig {
    PlayerConfig {
        clip: spec.clip,
        segment: spec.segment,
        start: spec.start,
        resume: spec.resume,
        buffer_max: spec.buffer_max,
    }
}

/// Uniform about one, with a mean of one over the clip: the spread changes no clip's size.
fn draw_factors(spec: &VideoSpec, seed: u64) -> Vec<f64> {
    let mut prng = Prng::new(seed);
    let config = player_config(spec);
    let mut draw = || {
        let uniform = (prng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + spec.size_spread * (2.0 * uniform - 1.0)
    };
    let drawn: Vec<f64> = (0..config.segments()).map(|_| draw()).collect();
    let weighed = (0..).zip(&drawn).map(|(at, factor)| {
        let length = config.end_of(at + 1) - config.end_of(at);
        factor * length.as_secs_f64()
    });
    let mean = weighed.sum::<f64>() / spec.clip.as_secs_f64();
    drawn.into_iter().map(|factor| factor / mean).collect()
}

fn segment_bytes(spec: &VideoSpec, factors: &[f64], segment: u32, quality: usize) -> u64 {
    let config = player_config(spec);
    let length = config.end_of(segment + 1) - config.end_of(segment);
    let bytes = spec.qualities[quality].bytes_in(length) as f64 * factors[segment as usize];
    (bytes.round() as u64).max(1)
}

impl App for Video {
    fn poll_timeout(&self) -> Option<Instant> {
        let timer = match (&self.exchange, &self.player) {
            (Some(exchange), Some(player)) => {
                let request = (!exchange.is_waiting()).then(|| player.next_request()).flatten();
                exchange.poll_timeout().into_iter().chain(request).min()
            }
            (Some(exchange), None) => {
                exchange.poll_timeout().into_iter().chain([self.place.start]).min()
            }
            (None, _) => Some(self.opens_at()),
        };
        timer.filter(|at| *at < self.place.stop)
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        let Some(exchange) = &mut self.exchange else { return self.open(now, out) };
        if exchange.poll_timeout().is_some_and(|at| at <= now) {
            exchange.handle_timeout(now);
        }
        self.go_on(now, out);
    }

    fn handle_packet(&mut self, now: Instant, packet: &Packet, out: &mut Outbox) {
        let Some(exchange) = &mut self.exchange else { return };
        if exchange.counts(packet) {
            self.tally.on_received(now, packet.sent_at);
        }
        if now >= self.place.stop {
            return;
        }
        exchange.handle_packet(now, packet);
        self.go_on(now, out);
    }

    fn segment(&self, packet: &Packet) -> Option<Segment> {
        self.exchange.as_ref()?.segment(packet)
    }

    fn replace(&mut self, now: Instant, stream: u32, segment: Segment) -> Option<Packet> {
        self.exchange.as_mut()?.replace(now, stream, segment)
    }

    fn sees_links(&self) -> bool {
        let flow = self.exchange.as_ref().and_then(Exchange::responses_flow);
        flow.is_some_and(flow::Flow::sees_links)
    }

    fn see_link(&mut self, subflow: usize, queue: LocalQueue) {
        if let Some(flow) = self.exchange.as_mut().and_then(Exchange::responses_flow_mut) {
            flow.see_link(subflow, queue);
        }
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn observe(&self) -> Observation {
        let mut observation = Observation { video: Some(self.view()), ..Observation::default() };
        let segment_bytes = match &self.carrier {
            Carrier::Tcp(ends) => ends.sender.segment_bytes,
            Carrier::Mptcp(config, links) => {
                let segment_bytes = config.sender.segment_bytes;
                let flow = self.exchange.as_ref().and_then(Exchange::responses_flow);
                let flows = flow.map_or(&[][..], core::slice::from_ref);
                observation.multipath = Some(flow::view(flows, links, segment_bytes, false));
                observation.recovery = Some(flow::recovery(flows));
                segment_bytes
            }
        };
        if let Some(exchange) = &self.exchange {
            exchange.count(&mut observation);
        }
        let window = self.exchange.as_ref().map_or(0, Exchange::window_bytes);
        observation.cwnd_segments = Some(window as f64 / segment_bytes as f64);
        observation
    }
}
