//! A capture split into subflows and connections: what each carried, and when.
//!
//! - `flow`: one TCP connection or subflow; [`report`]: the result

mod flow;
pub mod report;

use std::collections::HashMap;
use std::net::SocketAddr;

use self::flow::Flow;
use self::report::{CaptureReport, ConnectionReport, Report};
use crate::bins::Width;
use crate::filter::Filter;
use crate::ranges::{Ranges, unwrap};
use crate::segment::{Dsn, Mapping, Segment, Skipped};

/// Connections and subflows that are told apart at most; what the others carried is summed up.
pub const FLOWS_MAX: usize = 8192;
/// Bins begin this wide.
const FIRST_BIN_NANOS: u64 = 100_000_000;

/// Both ends of a flow, the lower one first, so that both directions find it.
type Key = (SocketAddr, SocketAddr);

/// Several subflows that carry one stream of data, or one plain connection.
#[derive(Debug, Default)]
struct Connection {
    /// Tokens of the client and of the server, as far as they were seen.
    tokens: [Option<u32>; 2],
    /// Data numbers seen, from the client and from the server.
    data: [Ranges; 2],
    data_bytes: [u64; 2],
    is_mptcp: bool,
    flows: Vec<usize>,
}

/// Takes segments in the order of the capture.
#[derive(Debug)]
pub struct Splitter {
    filter: Filter,
    width: Width,
    begun_ns: Option<u64>,
    last_ns: u64,
    capture: CaptureReport,
    flows: Vec<Flow>,
    /// The present flow between two ends.
    known: HashMap<Key, usize>,
    connections: Vec<Connection>,
    /// Connections by a token, and the end that it belongs to: 0 the client, 1 the server.
    by_token: HashMap<u32, (usize, usize)>,
}

impl Splitter {
    /// A splitter for the connections that a filter takes.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            width: Width::new(FIRST_BIN_NANOS),
            begun_ns: None,
            last_ns: 0,
            capture: CaptureReport::default(),
            flows: Vec::new(),
            known: HashMap::new(),
            connections: Vec::new(),
            by_token: HashMap::new(),
        }
    }

    /// Counts a packet that is no segment.
    pub fn skip(&mut self, at_ns: u64, why: Skipped) {
        self.passed(at_ns);
        match why {
            Skipped::NotTcp => self.capture.not_tcp += 1,
            Skipped::Fragment => self.capture.fragments += 1,
            Skipped::Unreadable => self.capture.unreadable += 1,
        }
    }

    /// Takes the next segment.
    pub fn segment(&mut self, at_ns: u64, segment: &Segment) {
        let at_ns = self.passed(at_ns);
        if !self.filter.takes_ends(segment.from, segment.to) {
            self.capture.filtered += 1;
            return;
        }
        for _ in 0..self.width.doublings_for(at_ns) {
            self.width = self.width.doubled();
            self.flows.iter_mut().for_each(Flow::halve);
        }
        let Some(index) = self.flow_of(segment) else {
            self.capture.beyond_segments += 1;
            self.capture.beyond_bytes += u64::from(segment.payload_bytes);
            return;
        };
        let is_back = segment.from != self.flows[index].client;
        let flow = &mut self.flows[index];
        let new_bytes = flow.take(at_ns, self.width, segment, usize::from(is_back));
        self.learn(index, segment, usize::from(is_back), new_bytes);
    }

    /// Notes the time of a packet; gives it since the capture's first one. Captures of several
    /// interfaces may go back a little.
    fn passed(&mut self, at_ns: u64) -> u64 {
        self.capture.packets += 1;
        let since = at_ns.saturating_sub(*self.begun_ns.get_or_insert(at_ns));
        self.last_ns = self.last_ns.max(since);
        since
    }

    /// The flow of a segment, a new one where it begins one. None when there are too many.
    fn flow_of(&mut self, segment: &Segment) -> Option<usize> {
        let key = (segment.from.min(segment.to), segment.from.max(segment.to));
        let begins = segment.syn && !segment.ack;
        if let Some(&index) = self.known.get(&key)
            && !(begins && self.flows[index].is_before(segment))
        {
            return Some(index);
        }
        if self.flows.len() >= FLOWS_MAX {
            return None;
        }
        // The answer to a SYN comes from the server.
        let is_answer = segment.syn && segment.ack;
        let (client, server) =
            if is_answer { (segment.to, segment.from) } else { (segment.from, segment.to) };
        let index = self.flows.len();
        let connection = self.connection_of(segment, begins);
        self.connections[connection].flows.push(index);
        self.flows.push(Flow::new(client, server, connection));
        self.known.insert(key, index);
        Some(index)
    }

    /// The connection of a new flow: by the token of its MP_JOIN, else one of its own.
    fn connection_of(&mut self, segment: &Segment, begins: bool) -> usize {
        let index = self.connections.len();
        let Some(token) = segment.mptcp.join_token.filter(|_| begins) else {
            self.connections.push(Connection::default());
            return index;
        };
        if let Some(&(known, _)) = self.by_token.get(&token) {
            return known;
        }
        // Begun before the capture: the token is that of whoever is joined.
        let tokens = [None, Some(token)];
        self.connections.push(Connection { tokens, is_mptcp: true, ..Connection::default() });
        self.by_token.insert(token, (index, 1));
        index
    }

    /// What a segment tells of its connection.
    fn learn(&mut self, index: usize, segment: &Segment, way: usize, new_bytes: u64) {
        let flow = &mut self.flows[index];
        let connection = &mut self.connections[flow.connection];
        flow.is_join |= segment.mptcp.join_token.is_some();
        if segment.mptcp.is_there && !segment.syn {
            connection.is_mptcp = true;
        }
        for (identity, end) in segment.mptcp.capable.iter().zip([way, 1 - way]) {
            // The first one counts: a connection has one key at each end.
            if let (Some(identity), None) = (identity, connection.tokens[end]) {
                connection.tokens[end] = Some(identity.token);
                self.by_token.insert(identity.token, (flow.connection, end));
            }
        }
        // Whoever joins from the server's side names the client's token, and is its client.
        let data_way = match flow.is_join && self.joins_client(index, segment) {
            true => 1 - way,
            false => way,
        };
        let connection = &mut self.connections[self.flows[index].connection];
        match segment.mptcp.mapping {
            Some(mapping) if mapping.length > 0 => connection.map(data_way, mapping),
            // Fallen back to plain TCP: what the subflow carries is the data.
            Some(_) => connection.data_bytes[data_way] += new_bytes,
            None => {}
        }
    }

    /// Whether a subflow was begun by the connection's server.
    fn joins_client(&mut self, index: usize, segment: &Segment) -> bool {
        if let Some(token) = segment.mptcp.join_token {
            let end = self.by_token.get(&token).map(|(_, end)| *end);
            self.flows[index].is_reversed = end == Some(0);
        }
        self.flows[index].is_reversed
    }

    /// The result so far.
    pub fn report(&self) -> Report {
        let mut capture = self.capture.clone();
        capture.seconds = self.last_ns as f64 / 1e9;
        capture.bin_seconds = self.width.seconds();
        let connections = self.connections.iter().filter(|connection| {
            let tokens: Vec<u32> = connection.tokens.iter().flatten().copied().collect();
            self.filter.takes_tokens(&tokens)
        });
        let connections = connections.map(|one| one.report(&self.flows, self.width)).collect();
        Report { capture, connections }
    }
}

impl Connection {
    fn map(&mut self, way: usize, mapping: Mapping) {
        let start = match mapping.dsn {
            Dsn::Whole(dsn) => dsn,
            // The first one has nothing to be near to; only differences count.
            Dsn::Low(dsn) => unwrap(dsn, self.data[way].end().unwrap_or(1 << 32)),
        };
        let length = u64::from(mapping.length);
        // A mapping's bytes come in several segments, each with the same mapping: it counts once.
        let end = start.saturating_add(length);
        self.data_bytes[way] += self.data[way].add(start, end);
    }

    fn report(&self, flows: &[Flow], width: Width) -> ConnectionReport {
        let own = || self.flows.iter().map(|index| &flows[*index]);
        let carried = own().map(Flow::carried).fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
        let [out, back] = if self.is_mptcp { self.data_bytes } else { carried };
        let [client, server] = self.tokens.map(|token| token.map(|token| format!("{token:08x}")));
        ConnectionReport {
            mptcp: self.is_mptcp,
            client_token: client.filter(|_| self.is_mptcp),
            server_token: server.filter(|_| self.is_mptcp),
            data_out_bytes: out,
            data_back_bytes: back,
            subflows: own().map(|flow| flow.report(carried, width)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
