//! The record of a run, as the page makes it and the server keeps it.

use std::collections::BTreeMap;

use plait_sim::app::viewer_score::Viewing;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most bytes of a record: a clip of an hour with a point every half second has a quarter of it.
pub(crate) const BYTES_MAX: usize = 4 << 20;
/// Two computations of a score agree to this.
const MOS_ERROR_MAX: f64 = 1e-4;

/// Why a text is no record of a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoRecord {
    #[error("not a record: {0}")]
    Form(#[from] serde_json::Error),
    #[error("a record of version {0}, and this is version {VERSION}; reload the page")]
    Version(u32),
    #[error("{0} is no name of a run: use a to z, 0 to 9 and -, 64 at most")]
    Name(String),
    #[error("{name} is {value}, which cannot be")]
    Value { name: &'static str, value: f64 },
    #[error("the score is {given}, and the figures give {computed} (004, Eq. 1)")]
    Score { given: f64, computed: f64 },
    #[error("the series are not of one length")]
    Series,
}

/// The version that is read and written.
const VERSION: u32 = 1;

/// A run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) version: u32,
    /// Under which the server keeps it.
    pub(crate) id: String,
    /// When it began.
    pub(crate) at: jiff::Timestamp,
    pub(crate) provider: String,
    pub(crate) player: String,
    pub(crate) browser: String,
    pub(crate) clip: ClipPlayed,
    pub(crate) settings: Settings,
    /// Whether the clip played to its end.
    pub(crate) complete: bool,
    pub(crate) figures: Figures,
    pub(crate) stalls: Vec<Stall>,
    /// Values over time, by name; all of one length.
    pub(crate) series: BTreeMap<String, Vec<f64>>,
    /// Input for an ITU-T P.1203 implementation, and the display: passed on as they are.
    #[serde(flatten)]
    pub(crate) more: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ClipPlayed {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) duration_s: f64,
    pub(crate) segment_s: f64,
    pub(crate) codec: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) protocol: String,
    /// `None` when the player adapted.
    pub(crate) quality: Option<String>,
    pub(crate) rebuffering_goal_s: f64,
    pub(crate) buffering_goal_s: f64,
    pub(crate) stall_least_s: f64,
    pub(crate) limit_s: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Stall {
    pub(crate) media_s: f64,
    pub(crate) start_s: f64,
    pub(crate) length_s: f64,
}

/// What the viewer met.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) initial_load_s: f64,
    pub(crate) stalls: u32,
    /// All stalls together.
    pub(crate) stalled_s: f64,
    pub(crate) mean_stall_s: f64,
    /// Stalls per second of the clip.
    pub(crate) stall_frequency_hz: f64,
    /// 004, Eq. 1.
    pub(crate) mos: f64,
    /// When the whole clip was there, if it ever was.
    pub(crate) all_buffered_s: Option<f64>,
    /// Of media that were fetched.
    pub(crate) bytes: u64,
    pub(crate) mean_bitrate_bps: f64,
    /// Changes of the encoding.
    pub(crate) switches: u32,
    pub(crate) decoded_frames: u64,
    pub(crate) dropped_frames: u64,
    /// Position in the clip at the end.
    pub(crate) played_s: f64,
    pub(crate) elapsed_s: f64,
    /// Samples that came so late that the bounds of a stall are known less well.
    pub(crate) late_samples: u32,
    #[serde(flatten)]
    pub(crate) more: BTreeMap<String, Value>,
}

/// Whether a run can be kept under this name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let first = name.bytes().next().is_some_and(is_part);
    first && name.len() <= 64 && name.bytes().all(|byte| is_part(byte) || byte == b'-')
}

impl Run {
    /// Reads a record, and checks that it can be true.
    ///
    /// # Errors
    ///
    /// [`NoRecord`], each with what is wrong.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, NoRecord> {
        let run: Self = serde_json::from_slice(text)?;
        run.check()?;
        Ok(run)
    }

    fn check(&self) -> Result<(), NoRecord> {
        if self.version != VERSION {
            return Err(NoRecord::Version(self.version));
        }
        if !is_name(&self.id) {
            return Err(NoRecord::Name(self.id.chars().take(70).collect()));
        }
        let Figures { initial_load_s, stalls, stalled_s, mos, .. } = self.figures;
        let clip_s = self.clip.duration_s;
        for (name, value) in [
            ("the clip's duration", clip_s),
            ("the initial load", initial_load_s),
            ("the time stalled", stalled_s),
            ("the time that passed", self.figures.elapsed_s),
        ] {
            // A day is more than any run takes.
            if !(0.0..=86_400.0).contains(&value) || name == "the clip's duration" && value == 0.0 {
                return Err(NoRecord::Value { name, value });
            }
        }
        if self.stalls.len() != stalls as usize {
            return Err(NoRecord::Value { name: "the number of stalls", value: stalls.into() });
        }
        let computed = Viewing { initial_load_s, stalls, stalled_s, clip_s }.mos();
        let differs = (computed - mos).abs() > MOS_ERROR_MAX;
        if differs {
            return Err(NoRecord::Score { given: mos, computed });
        }
        let mut lengths = self.series.values().map(Vec::len);
        let first = lengths.next();
        if lengths.any(|length| Some(length) != first) {
            return Err(NoRecord::Series);
        }
        Ok(())
    }
}

/// What a list of runs says of one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) at: jiff::Timestamp,
    /// The clip's title.
    pub(crate) clip: String,
    pub(crate) quality: Option<String>,
    pub(crate) protocol: String,
    pub(crate) complete: bool,
    pub(crate) figures: Figures,
}

impl From<Run> for Entry {
    fn from(run: Run) -> Self {
        let Run { id, at, clip, settings, complete, figures, .. } = run;
        let Settings { quality, protocol, .. } = settings;
        Self { id, at, clip: clip.title, quality, protocol, complete, figures }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A record as the page makes it.
    pub(crate) fn sample(id: &str) -> Value {
        serde_json::json!({
            "version": 1, "id": id, "at": "2026-01-02T03:04:05.678Z", "provider": "local",
            "player": "shaka-player", "browser": "none",
            "display": {"width": 1280, "height": 720, "pixel_ratio": 1},
            "clip": {"id": "a", "title": "A", "duration_s": 66.0, "segment_s": 2, "codec": "avc1"},
            "settings": {"protocol": "dash", "quality": "4K", "rebuffering_goal_s": 2,
                "buffering_goal_s": 120, "stall_least_s": 0.25, "limit_s": 0},
            "complete": true,
            "figures": {"initial_load_s": 0.4, "stalls": 1, "stalled_s": 3.5, "mean_stall_s": 3.5,
                "stall_frequency_hz": 0.01515, "mos": 3.3148,
                "levels": {"initial_load": 1, "frequency": 1, "length": 1},
                "all_buffered_s": null, "bytes": 131_000_000, "mean_bitrate_bps": 15.9e6,
                "switches": 0, "decoded_frames": 1584, "dropped_frames": 3, "played_s": 66,
                "elapsed_s": 70, "late_samples": 0},
            "stalls": [{"media_s": 10, "start_s": 10.4, "length_s": 3.5}],
            "series": {"t_s": [0, 0.5], "buffer_s": [0, 1.5]},
            "p1203": {"I23": {"stalling": [[0, 0.4], [10, 3.5]]}}
        })
    }

    fn parsed(value: &Value) -> Result<Run, NoRecord> {
        Run::parse(value.to_string().as_bytes())
    }

    #[test]
    fn a_record_is_read_and_written_whole() {
        let value = sample("run-1");
        let run = parsed(&value).unwrap();
        assert_eq!(run.figures.stalls, 1);
        let again = serde_json::to_value(&run).unwrap();
        assert_eq!(again["p1203"], value["p1203"]);
        assert_eq!(again["figures"]["levels"], value["figures"]["levels"]);
        assert_eq!(parsed(&again).unwrap(), run);
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        for (pointer, wrong, told) in [
            ("/version", 2.into(), "version 2"),
            ("/id", "../x".into(), "no name"),
            ("/id", "".into(), "no name"),
            ("/figures/mos", 4.2.into(), "Eq. 1"),
            ("/figures/stalls", 2.into(), "number of stalls"),
            ("/figures/stalls", (-1).into(), "not a record"),
            ("/figures/initial_load_s", (-1).into(), "initial load"),
            ("/clip/duration_s", 0.into(), "duration"),
            ("/series/t_s", serde_json::json!([0]), "one length"),
            ("/at", "yesterday".into(), "not a record"),
        ] {
            let mut value = sample("run-1");
            *value.pointer_mut(pointer).unwrap() = wrong;
            let error = parsed(&value).unwrap_err().to_string();
            assert!(error.contains(told), "{pointer}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _either = Run::parse(&bytes);
        }

        #[test]
        fn a_broken_record_is_read_or_refused(at in 0..2000_usize, byte in any::<u8>()) {
            let mut bytes = sample("run-1").to_string().into_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(run) = Run::parse(&bytes) {
                prop_assert!(is_name(&run.id) && run.figures.initial_load_s >= 0.0);
            }
        }
    }
}
