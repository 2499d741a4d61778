//! Pages over TCP: a few connections fetch each page's objects one after another, with a request
//! for each object. Each page has new connections.

use std::collections::{BTreeMap, VecDeque};

use plait_proto::time::Instant;

use super::connection::{Ends, ends, is_tallied};
use super::exchange::Exchange;
use super::tally::Tally;
use super::{App, Observation, Outbox, Place};
use crate::error::WorldError;
use crate::packet::Packet;
use crate::prng::Prng;
use crate::scenario::app::WebSpec;
use crate::tcp::{Segment, Source};

const REQUEST_BYTES: u64 = WebSpec::REQUEST_BYTES as u64;

#[derive(Debug)]
struct Page {
    started_at: Instant,
    objects: VecDeque<u64>,
    /// By the first of their streams.
    fetchers: BTreeMap<u32, Exchange>,
}

/// A reader of pages, and their server.
#[derive(Debug)]
pub(super) struct Web {
    place: Place,
    spec: WebSpec,
    ends: Ends,
    prng: Prng,
    page: Option<Page>,
    next_page_at: Instant,
    next_stream: u32,
    counted: Observation,
    tally: Tally,
}

impl Web {
    pub(super) fn new(place: Place, spec: &WebSpec, seed: u64) -> Result<Self, WorldError> {
        Ok(Self {
            ends: ends(&place, &spec.tcp, Source::Written)?,
            spec: spec.clone(),
            prng: Prng::new(seed),
            page: None,
            next_page_at: place.start,
            next_stream: 0,
            counted: Observation::default(),
            tally: Tally::new(place.span),
            place,
        })
    }

    fn start_page(&mut self, now: Instant, out: &mut Outbox) {
        let objects =
            (0..self.spec.objects).map(|_| self.spec.draw_object(&mut self.prng)).collect();
        let mut page = Page { started_at: now, objects, fetchers: BTreeMap::new() };
        for _ in 0..self.spec.connections {
            let Some(object_bytes) = page.objects.pop_front() else { break };
            let stream = self.next_stream;
            // Streams of pages long finished are reused.
            self.next_stream = (stream + Exchange::TCP_STREAMS) % Packet::STREAMS_MAX;
            let mut fetcher = Exchange::tcp(&self.place, stream, self.ends);
            fetcher.ask(now, REQUEST_BYTES, object_bytes);
            fetcher.drain(now, &mut self.tally, out);
            page.fetchers.insert(stream, fetcher);
        }
        self.page = Some(page);
    }

    fn drain(&mut self, now: Instant, stream: u32, out: &mut Outbox) {
        let Some(page) = &mut self.page else { return };
        let Some(fetcher) = page.fetchers.get_mut(&stream) else { return };
        fetcher.drain(now, &mut self.tally, out);
        if fetcher.is_waiting() {
            return;
        }
        if let Some(object_bytes) = page.objects.pop_front() {
            fetcher.ask(now, REQUEST_BYTES, object_bytes);
            fetcher.drain(now, &mut self.tally, out);
        } else if !page.fetchers.values().any(Exchange::is_waiting) {
            self.finish_page(now);
        }
    }

    fn finish_page(&mut self, now: Instant) {
        let Some(page) = self.page.take() else { return };
        if self.tally.span().holds(now) {
            self.counted.page_loads_s.push(now.since(page.started_at).as_secs_f64());
        }
        for fetcher in page.fetchers.values() {
            fetcher.count(&mut self.counted);
        }
        self.next_page_at = now + self.spec.think;
    }
}

/// The first stream of a stream's exchange.
fn first_of(stream: u32) -> u32 {
    stream / Exchange::TCP_STREAMS * Exchange::TCP_STREAMS
}

impl App for Web {
    fn poll_timeout(&self) -> Option<Instant> {
        let timer = match &self.page {
            None => Some(self.next_page_at),
            Some(page) => page.fetchers.values().filter_map(Exchange::poll_timeout).min(),
        };
        timer.filter(|at| *at < self.place.stop)
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        let Some(page) = &mut self.page else { return self.start_page(now, out) };
        let is_due = |fetcher: &Exchange| fetcher.poll_timeout().is_some_and(|at| at <= now);
        let due = page.fetchers.iter_mut().filter(|(_, fetcher)| is_due(fetcher));
        let streams: Vec<u32> = due
            .map(|(stream, fetcher)| {
                fetcher.handle_timeout(now);
                *stream
            })
            .collect();
        for stream in streams {
            self.drain(now, stream, out);
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: &Packet, out: &mut Outbox) {
        let stream = first_of(packet.stream);
        let page = self.page.as_mut();
        let fetcher = page.and_then(|page| page.fetchers.get_mut(&stream));
        // A response's packet counts when its page is long finished, too.
        let is_response = packet.stream >= stream + Exchange::TCP_STREAMS / 2;
        if is_response && is_tallied(packet) {
            self.tally.on_received(now, packet.sent_at);
        }
        let Some(fetcher) = fetcher.filter(|_| now < self.place.stop) else { return };
        fetcher.handle_packet(now, packet);
        self.drain(now, stream, out);
    }

    fn segment(&self, packet: &Packet) -> Option<Segment> {
        self.page.as_ref()?.fetchers.get(&first_of(packet.stream))?.segment(packet)
    }

    fn replace(&mut self, now: Instant, stream: u32, segment: Segment) -> Option<Packet> {
        self.page.as_mut()?.fetchers.get_mut(&first_of(stream))?.replace(now, stream, segment)
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn observe(&self) -> Observation {
        let mut observation = self.counted.clone();
        let page = self.page.iter();
        let fetchers = || page.clone().flat_map(|page| page.fetchers.values());
        fetchers().for_each(|fetcher| fetcher.count(&mut observation));
        let bytes: u64 = fetchers().map(Exchange::window_bytes).sum();
        observation.cwnd_segments = Some(bytes as f64 / self.ends.sender.segment_bytes as f64);
        observation
    }
}
