//! The egress: takes sealed datagrams from paths and gives inner packets to the host in order.
//!
//! A packet's way in, stage by stage:
//! 1. parse: header, session, path (`open`);
//! 2. `open`: expands the number, checks the replay window, decrypts; nothing before this has
//!    effect;
//! 3. `account`: what arrived, when, what is missing;
//! 4. `check`: the inner source, marks of routers and the MSS of SYNs; a refused packet goes on as
//!    an empty one;
//! 5. `resequence`: waits for the predecessor, or not, or no longer (`passage`);
//! 6. deliver: packets leave through `poll_deliver` (`resequence`).

mod account;
mod check;
mod delivery_watch;
mod open;
mod passage;
mod resequence;

pub use account::ReceiveCounters;
use account::{Arrival, ReceivePath};
use delivery_watch::DeliveryWatch;
use open::Plain;
pub use open::ReceiveSession;
use passage::Passage;
use resequence::{delay_spread, releases_known_lost, resequencer_config};

use crate::allowed_ips::Sources;
use crate::config::{BondConfig, LossDetection};
use crate::drop_reason::{DropCounters, DropReason};
use crate::output::DeliverQueue;
use crate::path::gaps::PathGapCounter;
use crate::path::map::PathMap;
use crate::resequencer::delay_spread::DelaySpread;
use crate::resequencer::{Resequencer, ResequencerConfig, ResequencerStats};
use crate::seq::PathId;
use crate::time::{Duration, Instant};
use crate::wire::Kind;
use crate::wire::control::{Discards, Frame};
use crate::wire::ecn::{self, Ecn};
use crate::wire::sealed::{ControlPrefix, DataPrefix, Header};

/// What a datagram turned out to be.
#[derive(Debug)]
pub enum Opened {
    /// Data; it is on its way to the host.
    Data,
    /// Frames for the bond to act on.
    Control(Vec<Frame>),
}

/// The receiving half of a bond.
#[derive(Debug)]
pub struct Egress {
    sessions: Vec<ReceiveSession>,
    paths: PathMap<ReceivePath>,
    gaps: PathGapCounter,
    passage: Passage,
    delay_spread: Option<DelaySpread>,
    /// How long a gap takes to be filled by the peer: a round trip of the slowest path.
    repair_time: Duration,
    /// How long the first repair of a gap takes at the least, and half of that again.
    first_repair: Duration,
    resequencer: Resequencer,
    watch: DeliveryWatch,
    /// The peer sends again what was lost: it is waited for.
    peer_repairs: bool,
    loss_detection: LossDetection,
    reject_after: Duration,
    report_interval: Duration,
    report_due: Option<Instant>,
    /// The earliest `ack_due` of any path.
    first_ack_due: Option<Instant>,
    queue: DeliverQueue,
    /// The largest inner packet that this side sends, in bytes.
    inner_mtu: u16,
    /// Inner packets given to the host.
    pub delivered_packets: u64,
    /// Inner bytes given to the host.
    pub delivered_bytes: u64,
    /// Drops after opening: bad inner packets and sources that are not allowed.
    pub drops: DropCounters,
}

/// The way in.
impl Egress {
    /// Takes one datagram on its whole way. `sources` are the peer's inner addresses.
    ///
    /// # Errors
    /// Why the datagram was dropped; it had no effect then.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        header: Header,
        ip_bytes: u32,
        ecn: Ecn,
        sources: Sources<'_>,
        datagram: &mut [u8],
    ) -> Result<Opened, DropReason> {
        let Plain { session, number, text } = self.open(now, header, datagram)?;
        let arrival = Arrival { now, session, path: header.path, number, ip_bytes };
        match header.kind {
            Kind::Data => {
                let (prefix, packet) = DataPrefix::read(text).ok_or(DropReason::BadInnerPacket)?;
                let ecn = self.paths.get(header.path).map_or(ecn, |path| path.believed(now, ecn));
                // As good as lost: it is not acknowledged, so that the path's health shows it.
                ecn::check(packet, ecn)?;
                self.account(&arrival, prefix.sent, true);
                self.follow_delay(now, header.path, prefix.sent);
                let packet = self.check(ecn, sources, packet);
                self.resequence(now, header.path, prefix, packet);
                Ok(Opened::Data)
            }
            _ => {
                let (prefix, frames) = ControlPrefix::read(text).ok_or(DropReason::BadControl)?;
                let frames = Frame::read_all(frames).ok_or(DropReason::BadControl)?;
                self.account(&arrival, prefix.sent, false);
                if let Some(path) = self.paths.get_mut(header.path) {
                    path.note_control(now, frames.is_empty());
                    if ecn == Ecn::Ce {
                        path.marked_control_at = Some(now);
                    }
                }
                self.follow_delay(now, header.path, prefix.sent);
                let next = prefix.next_seq.expand(self.resequencer.expected_next());
                self.passage.show(now, header.path, next);
                self.release_passed(now);
                Ok(Opened::Control(frames))
            }
        }
    }

    /// Whether [`Self::poll_deliver`] has something.
    pub fn has_delivery(&self) -> bool {
        self.queue.has_more()
    }

    /// The next packet for the host; valid until the next call.
    pub fn poll_deliver(&mut self) -> Option<&[u8]> {
        self.queue.poll()
    }
}

/// What it is made of, and what it tells of itself.
impl Egress {
    /// An egress that has received nothing.
    pub fn new(config: &BondConfig) -> Self {
        let resequencer = resequencer_config(config, false);
        let delay_spread = delay_spread(config);
        Self {
            sessions: Vec::new(),
            paths: PathMap::default(),
            gaps: PathGapCounter::new(),
            passage: Passage::default(),
            delay_spread,
            repair_time: Duration::ZERO,
            first_repair: Duration::ZERO,
            resequencer: Resequencer::new(resequencer),
            watch: DeliveryWatch::default(),
            peer_repairs: false,
            loss_detection: config.loss_detection,
            reject_after: config.rekey.reject_after,
            report_interval: config.report_interval,
            report_due: None,
            first_ack_due: None,
            queue: DeliverQueue::default(),
            inner_mtu: config.inner_mtu,
            delivered_packets: 0,
            delivered_bytes: 0,
            drops: DropCounters::default(),
        }
    }

    /// Goes on under another configuration; what waits goes on waiting, by the new rules.
    pub fn reconfigure(&mut self, old: &BondConfig, new: &BondConfig) {
        let resequencer = resequencer_config(new, self.peer_repairs);
        if resequencer != resequencer_config(old, self.peer_repairs) {
            self.resequencer.reconfigure(resequencer);
        }
        self.loss_detection = new.loss_detection;
        if old.resequencer.timer != new.resequencer.timer {
            self.delay_spread = delay_spread(new);
        }
        self.report_interval = new.report_interval;
        self.reject_after = new.rekey.reject_after;
    }

    /// Says whether the peer sends again what its paths lose.
    pub fn set_peer_repairs(&mut self, peer_repairs: bool) {
        if peer_repairs != self.peer_repairs {
            self.peer_repairs = peer_repairs;
            self.gaps.set_leaves_out(peer_repairs);
            let config = self.resequencer.config();
            let release_known_lost = releases_known_lost(self.loss_detection, peer_repairs);
            self.resequencer.reconfigure(ResequencerConfig { release_known_lost, ..config });
        }
    }

    /// Says whether the path may still bring something.
    pub fn set_live(&mut self, now: Instant, path: PathId, live: bool) {
        self.passage.set_live(now, path, live);
        if !live && let Some(spread) = &mut self.delay_spread {
            spread.remove(path);
        }
    }

    /// Tells the largest inner packet that this side sends: the host's TCP connections are held to
    /// it by the MSS of the SYNs they are given (spec M-5).
    pub fn set_mss_limit(&mut self, inner_mtu: u16) {
        self.inner_mtu = inner_mtu;
    }

    /// Forgets a path.
    pub fn remove_path(&mut self, path: PathId) {
        self.paths.remove(path);
        self.follow_repair_time();
        self.find_first_ack_due();
        self.passage.remove(path);
        self.gaps.remove(path);
        if let Some(spread) = &mut self.delay_spread {
            spread.remove(path);
        }
    }

    /// How much later a path delivers than the quickest one; `None` when that is not measured.
    pub fn delay_excess(&self, now: Instant, path: PathId) -> Option<Duration> {
        self.delay_spread.as_ref()?.excess(now, path)
    }

    /// Whether nearly all that arrives is thrown away (spec R-7).
    pub fn discards(&self, now: Instant) -> Option<Discards> {
        self.watch.found(now)
    }

    /// The same, once a second.
    pub fn tell_discards(&mut self, now: Instant) -> Option<Discards> {
        self.watch.tell(now)
    }

    /// Paths of which anything is kept, beyond their replay windows.
    #[cfg(test)]
    pub(crate) fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// The lowest number that may still be delivered, and the one after the highest that arrived.
    #[cfg(feature = "simulation")]
    pub fn position(&self) -> (crate::seq::BondSeq, crate::seq::BondSeq) {
        (self.resequencer.floor(), self.resequencer.expected_next())
    }

    /// Places in the sequence that were looked at one after the other, since the start.
    pub fn slots_walked(&self) -> u64 {
        self.resequencer.slots_walked()
    }

    /// What waited, how long, and why it was released.
    pub fn resequencer_stats(&self) -> ResequencerStats {
        self.resequencer.stats()
    }
}
