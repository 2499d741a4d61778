//! `kind = "video"`: a clip, its qualities, and how a player buffers it.

use plait_proto::time::Duration;
use plait_proto::units::Rate;
use plait_toml::{Bounds, Node, Problem, Section, Value};

use super::app::TcpKind;
use super::multipath::MptcpSpec;

/// A clip that a player fetches segment by segment.
#[derive(Clone, PartialEq, Debug)]
pub struct VideoSpec {
    /// Length of the clip.
    pub clip: Duration,
    /// Length of a segment.
    pub segment: Duration,
    /// The rates that it is encoded at, rising.
    pub qualities: Vec<Rate>,
    /// How far a segment's size may differ from that of its rate, below 1.
    pub size_spread: f64,
    /// The player begins with more than that buffered.
    pub start: Duration,
    /// It plays on after a stall with more than that buffered.
    pub resume: Duration,
    /// It asks for nothing while more is buffered.
    pub buffer_max: Duration,
    /// Which quality comes next.
    pub abr: AbrName,
    /// How long before the clip is wanted the page is opened, and its connection with it.
    pub page_lead: Duration,
    /// The server's TCP; with MPTCP that of each subflow.
    pub tcp: TcpKind,
    /// With MPTCP what that has beside.
    pub mptcp: Option<MptcpSpec>,
}

/// An algorithm that chooses qualities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AbrName {
    /// `throughput`: what recent downloads allow.
    #[default]
    Throughput,
    /// `buffer`: what is buffered (BBA-0).
    Buffer,
}

/// An hour of clip, which is enough.
const CLIP: Bounds = Bounds::new(0.1, 3600.0, "seconds");
/// No player has shorter or longer ones.
const SEGMENT: Bounds = Bounds::new(0.1, 60.0, "seconds");
const BUFFER: Bounds = Bounds::new(0.0, 3600.0, "seconds");
const PAGE: Bounds = Bounds::new(0.0, 60.0, "seconds");
const KBIT: Bounds = Bounds::new(1.0, 1e6, "kbit/s");

/// 004's clips.
const CLIP_S: f64 = 66.0;
const SEGMENT_S: f64 = 4.0;
/// shaka-player's `rebufferingGoal` and `bufferingGoal`.
const START_S: f64 = 2.0;
const BUFFER_S_MAX: f64 = 10.0;
/// Who chooses a clip has the page that it is chosen on.
const PAGE_S: f64 = 1.0;

/// Reads what `kind = "video"` has beside the options of TCP and MPTCP. `None` when it is not
/// known how much there is to fetch.
pub(super) fn read(
    section: &mut Section<'_>,
    tcp: TcpKind,
    mptcp: Option<MptcpSpec>,
) -> Option<VideoSpec> {
    let seconds = |section: &mut Section<'_>, key, bounds: Bounds, default: f64| {
        Duration::from_secs_f64(section.number(key, bounds).unwrap_or(default))
    };
    let clip = seconds(section, "clip_s", CLIP, CLIP_S);
    let segment = seconds(section, "segment_s", SEGMENT, SEGMENT_S);
    if segment > clip {
        let text = format!("a clip of {} s has no whole segment", clip.as_secs_f64());
        let key = if section.holds_any(&["segment_s"]) { "segment_s" } else { "clip_s" };
        section.problem(key, Problem::new(text, "let a segment be no longer than the clip"));
    }
    let buffer_max = seconds(section, "buffer_s_max", BUFFER, BUFFER_S_MAX);
    let start = seconds(section, "buffer_s_start", BUFFER, START_S.min(buffer_max.as_secs_f64()));
    let resume = seconds(section, "buffer_s_resume", BUFFER, start.as_secs_f64());
    for (key, needed) in [("buffer_s_start", start), ("buffer_s_resume", resume)] {
        if needed > buffer_max && section.holds_any(&[key]) {
            let (needed, most) = (needed.as_secs_f64(), buffer_max.as_secs_f64());
            let text = format!("it would wait for {needed} s and stop to ask at {most} s");
            let help = "write no more than buffer_s_max, or raise that";
            section.problem(key, Problem::new(text, help));
        }
    }
    let page_lead = seconds(section, "page_s", PAGE, PAGE_S);
    let size_spread = section.number("size_spread", Bounds::new(0.0, 0.95, "")).unwrap_or(0.0);
    let qualities = read_qualities(section);
    if qualities.as_ref().is_some_and(|rates| rates.len() == 1) {
        section.no_effect(&["abr"], "one quality", "several rates in kbit");
    }
    let names = [("throughput", AbrName::Throughput), ("buffer", AbrName::Buffer)];
    let abr = section.choice("abr", &names).unwrap_or_default();
    let qualities = qualities?;
    let (start, resume) = (start.min(buffer_max), resume.min(buffer_max));
    Some(VideoSpec {
        clip,
        segment,
        qualities,
        size_spread,
        start,
        resume,
        buffer_max,
        abr,
        page_lead,
        tcp,
        mptcp,
    })
}

/// One rate, or several in rising order.
fn read_qualities(section: &mut Section<'_>) -> Option<Vec<Rate>> {
    let kbit: Vec<u64> = match section.get("kbit") {
        None => {
            section.missing("kbit", "kbit = 6060");
            return None;
        }
        Some(Node { value: Value::List(_), .. }) => section.integers("kbit", KBIT)?,
        Some(_) => vec![section.integer("kbit", (1, 1_000_000), "kbit/s")?],
    };
    if kbit.is_empty() {
        let problem = Problem::new("a clip without a quality", "name one rate at least");
        section.problem("kbit", problem);
        return None;
    }
    if let Some(pair) = kbit.windows(2).find(|pair| pair[1] <= pair[0]) {
        let text = format!("{} follows {}", pair[1], pair[0]);
        section.problem("kbit", Problem::new(text, "write the rates in rising order"));
        return None;
    }
    Some(kbit.into_iter().map(|kbit| Rate::from_bits_per_second(kbit * 1000)).collect())
}
