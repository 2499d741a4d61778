//! Writes packets to an offloading device: coalesce, write, and fall back when the device refuses
//! what it agreed to.

use std::io;

use super::TunCounters;
use super::coalesce::{Aggregate, Candidate, Coalescer};
use super::segment::split_super_packet;
use super::vnet::{VNET_HEADER_LEN, VnetHeader};
use crate::batch::PacketBatch;

/// One write of a packet behind its vnet header.
pub(crate) trait RawDevice {
    fn write(&self, header: &[u8; VNET_HEADER_LEN], packet: &[u8]) -> io::Result<()>;
}

/// The open aggregate and which protocols may still be joined.
#[derive(Debug)]
pub(crate) struct AggregateWriter {
    coalescer: Coalescer,
    /// Some kernels accept vnet headers and then refuse aggregates; known after the first refusal.
    joins_tcp: bool,
    joins_udp: bool,
    segments: PacketBatch,
}

impl AggregateWriter {
    pub(crate) fn new(joins_tcp: bool, joins_udp: bool) -> Self {
        let coalescer = Coalescer::new();
        Self { coalescer, joins_tcp, joins_udp, segments: PacketBatch::new() }
    }

    /// Keeps a copy of `packet` or writes it, never before packets sent earlier.
    pub(crate) fn send(
        &mut self,
        device: &impl RawDevice,
        packet: &[u8],
        counters: &mut TunCounters,
    ) -> io::Result<()> {
        let candidate = Candidate::examine(packet)
            .filter(|candidate| if candidate.is_udp() { self.joins_udp } else { self.joins_tcp });
        let Some(candidate) = candidate else {
            self.flush(device, counters)?;
            return write_single(device, packet, counters);
        };
        if !self.coalescer.append(&candidate) {
            self.flush(device, counters)?;
            self.coalescer.open(&candidate);
        }
        if self.coalescer.is_closed() { self.flush(device, counters) } else { Ok(()) }
    }

    /// Writes the open aggregate.
    pub(crate) fn flush(
        &mut self,
        device: &impl RawDevice,
        counters: &mut TunCounters,
    ) -> io::Result<()> {
        let Some(aggregate) = self.coalescer.take() else { return Ok(()) };
        if aggregate.packets == 1 {
            return write_single(device, aggregate.packet, counters);
        }
        match device.write(&aggregate.vnet.emit(), aggregate.packet) {
            Ok(()) => {
                counters.written_aggregates += 1;
                counters.written_packets += aggregate.packets as u64;
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                counters.refused_aggregates += 1;
                if aggregate.is_udp {
                    self.joins_udp = false;
                } else {
                    self.joins_tcp = false;
                }
                write_segments(device, &aggregate, &mut self.segments, counters)
            }
            Err(error) => count_drop(error, aggregate.packets as u64, counters),
        }
    }
}

fn write_segments(
    device: &impl RawDevice,
    aggregate: &Aggregate<'_>,
    segments: &mut PacketBatch,
    counters: &mut TunCounters,
) -> io::Result<()> {
    segments.clear();
    split_super_packet(&aggregate.vnet, aggregate.packet, aggregate.identification, segments)
        .expect("invariant: what the coalescer joined can be split");
    segments.iter().try_for_each(|packet| write_single(device, packet, counters))
}

fn write_single(
    device: &impl RawDevice,
    packet: &[u8],
    counters: &mut TunCounters,
) -> io::Result<()> {
    match device.write(&VnetHeader::PLAIN.emit(), packet) {
        Ok(()) => {
            counters.written_packets += 1;
            Ok(())
        }
        Err(error) => count_drop(error, 1, counters),
    }
}

/// A full device and a packet that is not IP count as drops; all other errors go to the caller.
pub(crate) fn count_drop(
    error: io::Error,
    packets: u64,
    counters: &mut TunCounters,
) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => counters.dropped_full += packets,
        Some(libc::EINVAL) => counters.dropped_invalid += packets,
        _ => return Err(error),
    }
    Ok(())
}
