//! Segments between the two ends.

/// Bytes of sequence space from `start` up to, not including, `end`. Sequence numbers count from 0
/// and do not wrap; SYN takes none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SeqRange {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

impl SeqRange {
    /// The range of `len` bytes from `start`.
    pub const fn new(start: u64, len: u64) -> Self {
        Self { start, end: start + len }
    }

    /// Its length in bytes.
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether it holds no byte.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether `other` lies wholly inside.
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The SACK option (RFC 2018), with a duplicate report (RFC 2883) told apart. At most
/// [`SackOption::BLOCKS_MAX`] blocks in all, the most that fit beside timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackOption {
    dsack: Option<SeqRange>,
    blocks: [SeqRange; Self::BLOCKS_MAX],
    count: u8,
}

impl SackOption {
    /// Blocks that fit beside the timestamps option.
    pub const BLOCKS_MAX: usize = 3;

    /// An option with a duplicate report, if any, and as many of `blocks`, most recent first, as
    /// fit.
    pub fn new(dsack: Option<SeqRange>, blocks: impl IntoIterator<Item = SeqRange>) -> Self {
        let mut option = Self { dsack, ..Self::default() };
        let room = Self::BLOCKS_MAX - usize::from(dsack.is_some());
        for (slot, block) in option.blocks.iter_mut().take(room).zip(blocks) {
            *slot = block;
            option.count += 1;
        }
        option
    }

    /// The range that arrived twice.
    pub const fn dsack(&self) -> Option<SeqRange> {
        self.dsack
    }

    /// Ranges that arrived beyond a gap, most recent first.
    pub fn blocks(&self) -> &[SeqRange] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Length of the option with its padding; zero when it is absent.
    fn bytes(&self) -> u64 {
        let blocks = u64::from(self.count) + u64::from(self.dsack.is_some());
        if blocks == 0 { 0 } else { 4 + 8 * blocks }
    }
}

/// A segment's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// Opens the connection.
    pub syn: bool,
    /// The acknowledgement fields are valid.
    pub ack: bool,
}

/// One segment. Data itself is not modelled, only its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Sequence number of the first data byte.
    pub seq: u64,
    /// Data bytes.
    pub len: u64,
    /// The next byte expected from the other side.
    pub ack: u64,
    /// What arrived beyond `ack`.
    pub sack: SackOption,
    /// Bytes beyond `ack` that the receiver has room for; scaling is exact in the model.
    pub window: u64,
    /// Its flags.
    pub flags: Flags,
    /// When it left, in milliseconds of the sender's clock (RFC 7323 TSval; Linux's resolution).
    pub ts_ms: u64,
    /// The timestamp that it echoes (TSecr).
    pub ts_echo_ms: u64,
    /// With `quic`, the packet's number for data, counted from 1; for an acknowledgement the
    /// highest number that had arrived. Else 0.
    pub number: u64,
}

/// IPv4 and TCP without options.
const HEADERS_BYTES: u64 = 40;
/// Timestamps, padded.
const TIMESTAMPS_BYTES: u64 = 12;
/// MSS, SACK permitted, timestamps, window scale, padded.
const SYN_OPTIONS_BYTES: u64 = 20;

impl Segment {
    /// The data's range.
    pub const fn range(&self) -> SeqRange {
        SeqRange::new(self.seq, self.len)
    }

    /// Length at the IP layer (IPv4).
    pub fn ip_bytes(&self) -> u64 {
        if self.flags.syn {
            return HEADERS_BYTES + SYN_OPTIONS_BYTES;
        }
        HEADERS_BYTES + TIMESTAMPS_BYTES + self.sack.bytes() + self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_headers_and_options() {
        let data = Segment { len: 1448, ..Segment::default() };
        assert_eq!(data.ip_bytes(), 1500);
        let syn = Segment { flags: Flags { syn: true, ack: false }, ..Segment::default() };
        assert_eq!(syn.ip_bytes(), 60);
        let blocks = [SeqRange::new(10, 5), SeqRange::new(20, 5), SeqRange::new(30, 5)];
        let ack = Segment { sack: SackOption::new(None, blocks), ..Segment::default() };
        assert_eq!(ack.ip_bytes(), 52 + 28);
    }

    #[test]
    fn a_duplicate_report_takes_the_place_of_a_block() {
        let blocks = [SeqRange::new(10, 5), SeqRange::new(20, 5), SeqRange::new(30, 5)];
        let sack = SackOption::new(Some(SeqRange::new(0, 5)), blocks);
        assert_eq!(sack.blocks(), &blocks[..2]);
        assert_eq!(sack.bytes(), 28);
    }
}
