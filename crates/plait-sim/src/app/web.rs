//! Pages over TCP: a few connections fetch each page's objects one after another, with a request
//! for each object. Each page has new connections.

use std::collections::{BTreeMap, VecDeque};

use plait_proto::time::Instant;

use super::connection::{Connection, Ends, ends, is_tallied};
use super::tally::Tally;
use super::{App, Observation, Outbox, Place};
use crate::error::WorldError;
use crate::packet::Packet;
use crate::prng::Prng;
use crate::scenario::app::WebSpec;
use crate::tcp::{Segment, Source};

const REQUEST_BYTES: u64 = WebSpec::REQUEST_BYTES as u64;

/// A client and a server, as two connections of the model: requests and responses.
#[derive(Debug)]
struct Fetcher {
    requests: Connection,
    responses: Connection,
    /// The requested object.
    object_bytes: u64,
    /// Bytes of the request that the server does not have yet.
    request_left: u64,
    /// Bytes of the object that the client does not have yet; zero when it waits for none.
    object_left: u64,
}

#[derive(Debug)]
struct Page {
    started_at: Instant,
    objects: VecDeque<u64>,
    /// By the first of their four streams.
    fetchers: BTreeMap<u32, Fetcher>,
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
    /// Counts of requests, which are not goodput.
    requests_tally: Tally,
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
            requests_tally: Tally::new(place.span),
            place,
        })
    }

    fn start_page(&mut self, now: Instant, out: &mut Outbox) {
        let objects =
            (0..self.spec.objects).map(|_| self.spec.draw_object(&mut self.prng)).collect();
        let mut page = Page { started_at: now, objects, fetchers: BTreeMap::new() };
        let (app, data_to) = (self.place.app, self.place.data_to);
        for _ in 0..self.spec.connections {
            let Some(object_bytes) = page.objects.pop_front() else { break };
            let stream = self.next_stream;
            // Streams of pages long finished are reused.
            self.next_stream = (stream + 4) % Packet::STREAMS_MAX;
            let mut fetcher = Fetcher {
                requests: Connection::new(app, stream, data_to.other(), self.ends),
                responses: Connection::new(app, stream + 2, data_to, self.ends),
                object_bytes: 0,
                request_left: 0,
                object_left: 0,
            };
            fetcher.ask(object_bytes);
            fetcher.requests.drain(now, &mut self.requests_tally, out);
            fetcher.responses.drain(now, &mut self.tally, out);
            page.fetchers.insert(stream, fetcher);
        }
        self.page = Some(page);
    }

    fn drain(&mut self, now: Instant, stream: u32, out: &mut Outbox) {
        let Some(page) = &mut self.page else { return };
        let Some(fetcher) = page.fetchers.get_mut(&stream) else { return };
        let asked = fetcher.requests.drain(now, &mut self.requests_tally, out);
        if fetcher.request_left > 0 {
            fetcher.request_left -= asked;
            if fetcher.request_left == 0 {
                fetcher.responses.write(fetcher.object_bytes);
            }
        }
        let bytes = fetcher.responses.drain(now, &mut self.tally, out);
        self.tally.on_goodput(now, bytes);
        fetcher.object_left -= bytes;
        if fetcher.object_left > 0 {
            return;
        }
        if let Some(object_bytes) = page.objects.pop_front() {
            fetcher.ask(object_bytes);
            fetcher.requests.drain(now, &mut self.requests_tally, out);
        } else if page.fetchers.values().all(|fetcher| fetcher.object_left == 0) {
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

impl Fetcher {
    fn ask(&mut self, object_bytes: u64) {
        self.object_bytes = object_bytes;
        self.object_left = object_bytes;
        self.request_left = REQUEST_BYTES;
        self.requests.write(REQUEST_BYTES);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let timers = [self.requests.poll_timeout(), self.responses.poll_timeout()];
        timers.into_iter().flatten().min()
    }

    fn count(&self, observation: &mut Observation) {
        let counters = self.responses.sender().counters();
        observation.segments += counters.segments_sent;
        observation.retransmits += counters.retransmits;
        observation.timeouts += counters.rtos;
    }
}

impl App for Web {
    fn poll_timeout(&self) -> Option<Instant> {
        let timer = match &self.page {
            None => Some(self.next_page_at),
            Some(page) => page.fetchers.values().filter_map(Fetcher::poll_timeout).min(),
        };
        timer.filter(|at| *at < self.place.stop)
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        let Some(page) = &mut self.page else { return self.start_page(now, out) };
        let is_due = |fetcher: &Fetcher| fetcher.poll_timeout().is_some_and(|at| at <= now);
        let due = page.fetchers.iter_mut().filter(|(_, fetcher)| is_due(fetcher));
        let streams: Vec<u32> = due
            .map(|(stream, fetcher)| {
                fetcher.requests.handle_timeout(now);
                fetcher.responses.handle_timeout(now);
                *stream
            })
            .collect();
        for stream in streams {
            self.drain(now, stream, out);
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: &Packet, out: &mut Outbox) {
        let is_response = packet.stream % 4 >= 2;
        if is_response && is_tallied(packet) {
            self.tally.on_received(now, packet.sent_at);
        }
        if now >= self.place.stop {
            return;
        }
        let stream = packet.stream / 4 * 4;
        let page = self.page.as_mut();
        let Some(fetcher) = page.and_then(|page| page.fetchers.get_mut(&stream)) else { return };
        if is_response {
            fetcher.responses.handle_packet(now, packet);
        } else {
            fetcher.requests.handle_packet(now, packet);
        }
        self.drain(now, stream, out);
    }

    fn segment(&self, packet: &Packet) -> Option<Segment> {
        let fetcher = self.page.as_ref()?.fetchers.get(&(packet.stream / 4 * 4))?;
        let is_response = packet.stream % 4 >= 2;
        let connection = if is_response { &fetcher.responses } else { &fetcher.requests };
        connection.segment(packet)
    }

    fn replace(&mut self, now: Instant, stream: u32, segment: Segment) -> Option<Packet> {
        let fetcher = self.page.as_mut()?.fetchers.get_mut(&(stream / 4 * 4))?;
        let is_response = stream % 4 >= 2;
        let connection = if is_response { &mut fetcher.responses } else { &mut fetcher.requests };
        Some(connection.replace(now, stream, segment))
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn observe(&self) -> Observation {
        let mut observation = self.counted.clone();
        let page = self.page.iter();
        let fetchers = || page.clone().flat_map(|page| page.fetchers.values());
        fetchers().for_each(|fetcher| fetcher.count(&mut observation));
        let window = |fetcher: &Fetcher| fetcher.responses.sender().window_bytes();
        let bytes: u64 = fetchers().map(window).sum();
        observation.cwnd_segments = Some(bytes as f64 / self.ends.sender.segment_bytes as f64);
        observation
    }
}
