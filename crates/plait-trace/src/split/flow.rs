//! One TCP connection, or one subflow of an MPTCP connection.

use std::net::SocketAddr;

use super::report::{Ended, SubflowReport, WayReport};
use crate::bins::{Bins, Width};
use crate::ranges::{Ranges, unwrap};
use crate::segment::Segment;

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// Sequence number of its SYN.
    first_seq: Option<u32>,
    seen: Ranges,
    bins: Bins,
    bytes: u64,
    repeated_bytes: u64,
    segments: u64,
    /// When payload was first and last seen.
    data_ns: Option<(u64, u64)>,
    has_ended: bool,
}

/// A flow: both of its directions.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) client: SocketAddr,
    pub(super) server: SocketAddr,
    /// Which connection it is part of.
    pub(super) connection: usize,
    pub(super) is_join: bool,
    /// Its client is its connection's server.
    pub(super) is_reversed: bool,
    was_reset: bool,
    span_ns: Option<(u64, u64)>,
    /// From the client, from the server.
    ways: [Way; 2],
}

/// Where sequence numbers begin to be counted: far enough from 0 for numbers before the first.
const BASE: u64 = 1 << 33;

impl Flow {
    pub(super) fn new(client: SocketAddr, server: SocketAddr, connection: usize) -> Self {
        Self {
            client,
            server,
            connection,
            is_join: false,
            is_reversed: false,
            was_reset: false,
            span_ns: None,
            ways: Default::default(),
        }
    }

    /// Whether a SYN begins another connection between the same ends.
    pub(super) fn is_before(&self, syn: &Segment) -> bool {
        let way = &self.ways[usize::from(syn.from != self.client)];
        let is_over = self.was_reset || self.ways.iter().any(|way| way.has_ended);
        is_over || way.segments > 0 && way.first_seq != Some(syn.seq)
    }

    pub(super) fn halve(&mut self) {
        self.ways.iter_mut().for_each(|way| way.bins.halve());
    }

    /// Takes a segment; gives how many of its bytes are new.
    pub(super) fn take(&mut self, at_ns: u64, width: Width, segment: &Segment, way: usize) -> u64 {
        let way = &mut self.ways[way];
        let (first, last) = self.span_ns.unwrap_or((at_ns, at_ns));
        self.span_ns = Some((first.min(at_ns), last.max(at_ns)));
        self.was_reset |= segment.rst;
        way.has_ended |= segment.fin;
        way.segments += 1;
        if segment.syn {
            way.first_seq = Some(segment.seq);
        }
        if segment.payload_bytes == 0 {
            return 0;
        }
        let length = u64::from(segment.payload_bytes);
        let seq = segment.seq.wrapping_add(u32::from(segment.syn));
        let start = unwrap(seq, way.seen.end().unwrap_or(BASE));
        let new = way.seen.add(start, start.saturating_add(length));
        way.bytes += new;
        way.repeated_bytes += length.saturating_sub(new);
        way.bins.add(width.bin(at_ns), new);
        let (first, last) = way.data_ns.unwrap_or((at_ns, at_ns));
        way.data_ns = Some((first.min(at_ns), last.max(at_ns)));
        new
    }

    /// The result; `carried` is what all of the connection's subflows carried, by way.
    pub(super) fn report(&self, carried: [u64; 2], width: Width) -> SubflowReport {
        let (first, last) = self.span_ns.unwrap_or_default();
        let order = if self.is_reversed { [1, 0] } else { [0, 1] };
        let way = |at: usize| self.ways[order[at]].report(carried[at], width);
        let all_ended = self.ways.iter().all(|way| way.has_ended);
        SubflowReport {
            client: self.client,
            server: self.server,
            joined: self.is_join,
            reversed: self.is_reversed,
            start_s: first as f64 / 1e9,
            end_s: last as f64 / 1e9,
            ended: match (self.was_reset, all_ended) {
                (true, _) => Ended::Reset,
                (false, true) => Ended::Whole,
                (false, false) => Ended::Open,
            },
            out: way(0),
            back: way(1),
        }
    }

    /// Bytes carried in the connection's directions.
    pub(super) fn carried(&self) -> [u64; 2] {
        let [one, other] = [self.ways[0].bytes, self.ways[1].bytes];
        if self.is_reversed { [other, one] } else { [one, other] }
    }
}

impl Way {
    fn report(&self, carried: u64, width: Width) -> WayReport {
        let (first, sums) = self.bins.parts();
        let data_s = self.data_ns.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9);
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        WayReport {
            bytes: self.bytes,
            repeated_bytes: self.repeated_bytes,
            segments: self.segments,
            mbps: ratio(self.bytes as f64 * 8.0 / 1e6, data_s),
            share: ratio(self.bytes as f64, carried as f64),
            first_bin_s: first as f64 * width.seconds(),
            bins: sums.to_vec(),
        }
    }
}
