//! A link's counters.

/// Counts since the link was made. In packets and in bytes, `in` = `dropped` + `out` + what is
/// still inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// Packets given to the link.
    pub in_packets: u64,
    /// Their bytes.
    pub in_bytes: u64,
    /// Packets that found too few tokens at the entrance, or are longer than a bucket.
    pub dropped_policer_packets: u64,
    /// Packets dropped because the queue was full.
    pub dropped_queue_packets: u64,
    /// Packets that CoDel dropped.
    pub dropped_codel_packets: u64,
    /// Packets that PIE dropped.
    pub dropped_pie_packets: u64,
    /// Packets lost at random.
    pub dropped_loss_packets: u64,
    /// Packets that left the transmitter in an outage.
    pub dropped_outage_packets: u64,
    /// Packets that left the transmitter while the link was cut.
    pub dropped_cut_packets: u64,
    /// Bytes of all packets dropped or lost.
    pub dropped_bytes: u64,
    /// Packets that came out.
    pub out_packets: u64,
    /// Their bytes.
    pub out_bytes: u64,
}

impl LinkCounters {
    /// Packets dropped or lost, for whatever reason.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped_policer_packets
            + self.dropped_queue_packets
            + self.dropped_codel_packets
            + self.dropped_pie_packets
            + self.dropped_loss_packets
            + self.dropped_outage_packets
            + self.dropped_cut_packets
    }
}
