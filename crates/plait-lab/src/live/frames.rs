//! What ffmpeg tells of a stream's frames, at the encoder and at the server, and what follows from
//! it: how far the server is behind, and what it never got.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Of a packet's flags in FFmpeg (`AV_PKT_FLAG_CORRUPT`).
const CORRUPT: u64 = 2;

/// A frame as a reader tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    /// Counted from the stream's first.
    pub(super) number: u64,
    /// Whether a part of it is missing.
    pub(super) is_damaged: bool,
}

/// Reads the lines of FFmpeg's muxer `framecrc`: heads, then a line per packet of
/// `stream, dts, pts, duration, size, checksum`, with `F=` flags where it is not a whole key frame.
#[derive(Debug)]
pub(super) struct Lines {
    frame_rate: u64,
    /// Seconds per unit of the timestamps, as a fraction.
    base: Option<(u64, u64)>,
}

impl Lines {
    pub(super) fn new(frame_rate: u64) -> Self {
        Self { frame_rate, base: None }
    }

    /// The frame that a line tells of, if it tells of one.
    pub(super) fn read(&mut self, line: &str) -> Option<Frame> {
        if let Some(base) = line.strip_prefix("#tb 0: ") {
            let (numerator, denominator) = base.trim().split_once('/')?;
            self.base = Some((numerator.parse().ok()?, denominator.parse().ok()?));
            return None;
        }
        let mut fields = line.split(',').map(str::trim);
        if fields.next() != Some("0") {
            return None;
        }
        let pts: u64 = fields.nth(1)?.parse().ok()?;
        let flags = fields.find_map(|field| field.strip_prefix("F=0x"));
        let flags = flags.map_or(Some(0), |flags| u64::from_str_radix(flags, 16).ok())?;
        let (numerator, denominator) = self.base.filter(|(_, denominator)| *denominator > 0)?;
        let frames = pts as f64 * numerator as f64 * self.frame_rate as f64 / denominator as f64;
        Some(Frame { number: frames.round() as u64, is_damaged: flags & CORRUPT != 0 })
    }
}

/// Frames with the time at which they were told of.
pub(super) type Told = Vec<(Instant, Frame)>;

/// What became of a stream.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Fate {
    /// Frames of the encoder that count.
    pub(super) frames: u64,
    /// Those that the server never had.
    pub(super) never_came: u64,
    /// Those that it had with a part missing.
    pub(super) damaged: u64,
    /// From the encoder's output to the server's, over the frames that came; none came without.
    pub(super) behind_median_s: Option<f64>,
    pub(super) behind_max_s: Option<f64>,
    /// Of the last frame that came.
    pub(super) behind_last_s: Option<f64>,
    /// The longest time without a new frame at the server.
    pub(super) silence_max_s: f64,
}

/// Compares what an encoder gave with what a server had, of the frames that count.
pub(super) fn fate(
    given: &[(Instant, Frame)],
    came: &[(Instant, Frame)],
    counted: &Range<u64>,
) -> Fate {
    let given: BTreeMap<u64, Instant> = first_of_each(given, counted);
    let times: BTreeMap<u64, Instant> = first_of_each(came, counted);
    let behind = given.iter().filter_map(|(number, out)| {
        times.get(number).map(|at| at.saturating_duration_since(*out).as_secs_f64())
    });
    let behind: Vec<f64> = behind.collect();
    let mut sorted = behind.clone();
    sorted.sort_by(f64::total_cmp);
    let is_damaged = |frame: &Frame| frame.is_damaged && times.contains_key(&frame.number);
    let damaged = came.iter().filter(|(_, frame)| is_damaged(frame));
    let mut arrivals: Vec<Instant> = times.values().copied().collect();
    arrivals.sort();
    let silences = arrivals.windows(2).map(|pair| pair[1] - pair[0]);
    Fate {
        frames: given.len() as u64,
        never_came: (given.len() - behind.len()) as u64,
        damaged: damaged.count() as u64,
        behind_median_s: sorted.get(sorted.len() / 2).copied(),
        behind_max_s: sorted.last().copied(),
        behind_last_s: behind.last().copied(),
        silence_max_s: silences.max().unwrap_or(Duration::ZERO).as_secs_f64(),
    }
}

/// When each frame that counts was first told of.
fn first_of_each(told: &[(Instant, Frame)], counted: &Range<u64>) -> BTreeMap<u64, Instant> {
    let mut times = BTreeMap::new();
    for (at, frame) in told.iter().filter(|(_, frame)| counted.contains(&frame.number)) {
        times.entry(frame.number).or_insert(*at);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As FFmpeg 5.1 prints it: a reader of RTMP, in milliseconds.
    const RTMP: &str = "\
#extradata 0:       49, 0x76ca0f09
#software: Lavf59.27.100
#tb 0: 1/1000
#media_type 0: video
0,       1000,       1000,       40,    25004, 0xa5e6c921
0,       1040,       1040,       40,    25003, 0xc1df5bae, F=0x0
0,       1080,       1080,       40,    25003, 0x88e878af, F=0x2, S=1,        1
1, 1, 1, 1, 1, 0x1
";

    #[test]
    fn frames_are_read_by_number_whatever_counts_their_time() {
        let read = |text: &str| {
            let mut lines = Lines::new(25);
            text.lines().filter_map(|line| lines.read(line)).collect::<Vec<_>>()
        };
        let frame = |number, is_damaged| Frame { number, is_damaged };
        assert_eq!(read(RTMP), [frame(25, false), frame(26, false), frame(27, true)]);
        let srt = "#tb 0: 1/90000\n0, 93600, 93600, 3600, 25006, 0x85315bb0, F=0x0, S=1, 1\n";
        assert_eq!(read(srt), [frame(26, false)]);
        let encoder = "#tb 0: 1/25\n0, 147, 147, 1, 25000, 0x846ce65c, F=0x0, S=1, 8\n";
        assert_eq!(read(encoder), [frame(147, false)]);
    }

    #[test]
    fn what_is_no_frame_is_left_out() {
        let mut lines = Lines::new(25);
        // Without a unit nothing is known of time.
        assert_eq!(lines.read("0, 147, 147, 1, 25000, 0x846ce65c"), None);
        assert_eq!(lines.read("#tb 0: 1/0"), None);
        assert_eq!(lines.read("0, 147, 147, 1, 25000, 0x846ce65c"), None);
        assert_eq!(lines.read("#tb 0: 1/25"), None);
        for line in ["", "0", "0, 1", "0, 1, NOPTS, 1", "0, 1, -4, 1", "0, 1, 1, 1, 1, 1, F=0xz"] {
            assert_eq!(lines.read(line), None, "{line}");
        }
    }

    #[test]
    fn a_fate_tells_lag_losses_damage_and_silence() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let told = |list: &[(u64, u64, bool)]| -> Told {
            let frame = |&(ms, number, is_damaged): &(u64, u64, bool)| {
                (at(ms), Frame { number, is_damaged })
            };
            list.iter().map(frame).collect()
        };
        let given = told(&[(0, 0, false), (40, 1, false), (80, 2, false), (120, 3, false)]);
        // 0 does not count, 2 never came, 1 came twice, and 9 was never given.
        let came = told(&[(5, 0, true), (50, 1, true), (60, 1, false), (3120, 3, false)]);
        let fate = fate(&given, &came, &(1..9));
        assert_eq!((fate.frames, fate.never_came, fate.damaged), (3, 1, 1));
        assert_eq!(fate.behind_last_s, Some(3.0));
        assert_eq!((fate.behind_median_s, fate.behind_max_s), (Some(3.0), Some(3.0)));
        assert!((fate.silence_max_s - 3.07).abs() < 1e-9, "{fate:?}");
    }

    #[test]
    fn of_a_stream_that_never_came_nothing_is_behind() {
        let given = vec![(Instant::now(), Frame { number: 1, is_damaged: false })];
        let fate = fate(&given, &Vec::new(), &(0..9));
        assert_eq!((fate.frames, fate.never_came, fate.behind_max_s), (1, 1, None));
    }
}
