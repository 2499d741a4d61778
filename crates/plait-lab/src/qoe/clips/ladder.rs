//! Which clips there are, and how ffmpeg is told to make them.

use std::borrow::Cow;

use super::FRAME_RATE;
use crate::qoe::catalogue::Size;

/// How long a clip is, and which qualities it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// 66 s, with 004's sizes.
    Paper,
    /// 8 s, small: for tests.
    Short,
    /// As a scenario wants it.
    Given {
        seconds: u32,
        /// The qualities' rates, rising.
        kbit: Vec<u64>,
    },
}

impl Kind {
    /// Length, in seconds.
    pub(crate) fn seconds(&self) -> u32 {
        match self {
            Self::Paper => 66,
            Self::Short => 8,
            Self::Given { seconds, .. } => *seconds,
        }
    }
}

/// How the picture is coded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Codec {
    /// H.264, which pads to its rate exactly.
    H264,
    /// VP9, which only comes near it.
    Vp9,
}

impl Codec {
    /// As lists show it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::H264 => "H.264",
            Self::Vp9 => "VP9",
        }
    }
}

/// A clip that is to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub(crate) kind: Kind,
    pub(crate) codec: Codec,
    /// The size of picture that the rates are for, instead of a small one padded to them.
    pub(crate) real_size: bool,
    /// Length of a segment, in seconds.
    pub(crate) segment_s: u32,
}

/// A quality.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rung {
    pub(crate) name: Cow<'static, str>,
    pub(crate) rate_bps: u64,
    pub(crate) stands_for: Size,
}

const fn rung(name: &'static str, rate_bps: u64, width: u32, height: u32) -> Rung {
    Rung { name: Cow::Borrowed(name), rate_bps, stands_for: Size { width, height } }
}

/// 004's clips have 131 MB and 50 MB in 66 s; the two below them are for the player that adapts.
const PAPER: [Rung; 4] = [
    rung("480p", 1_000_000, 854, 480),
    rung("1080p", 3_000_000, 1920, 1080),
    rung("2K", 50_000_000 * 8 / 66, 2560, 1440),
    rung("4K", 131_000_000 * 8 / 66, 3840, 2160),
];
const SHORT: [Rung; 2] = [rung("480p", 400_000, 854, 480), rung("1080p", 1_200_000, 1920, 1080)];
/// The picture of a padded clip: any machine decodes it with ease.
const SMALL: Size = Size { width: 640, height: 360 };
/// A group of pictures, and so the shortest segment, in seconds.
const GROUP_S: u32 = 2;
/// The size of picture that a rate is usual for: up to so many kbit/s.
const USUAL: [(u64, Size); 3] = [
    (2_000, Size { width: 854, height: 480 }),
    (4_500, Size { width: 1920, height: 1080 }),
    (10_000, Size { width: 2560, height: 1440 }),
];
const LARGEST: Size = Size { width: 3840, height: 2160 };

/// A quality of a rate that a scenario wants.
fn given(kbit: u64) -> Rung {
    let usual = USUAL.iter().find(|(most, _)| kbit <= *most).map(|(_, size)| *size);
    let name = Cow::Owned(format!("{kbit}k"));
    Rung { name, rate_bps: kbit * 1000, stands_for: usual.unwrap_or(LARGEST) }
}

impl Wanted {
    /// Name and folder of the clip.
    pub(crate) fn id(&self) -> String {
        format!("{}-{}s", self.encoding(), self.segment_s)
    }

    /// What clips of the same encodings have in common.
    pub(crate) fn encoding(&self) -> String {
        let kind = match &self.kind {
            Kind::Paper => "paper",
            Kind::Short => "short",
            Kind::Given { seconds, kbit } => {
                let kbit: Vec<String> = kbit.iter().map(u64::to_string).collect();
                &format!("given-{seconds}s-{}", kbit.join("-"))
            }
        };
        let codec = if self.codec == Codec::Vp9 { "-vp9" } else { "" };
        let size = if self.real_size { "-real" } else { "" };
        format!("{kind}{codec}{size}")
    }

    pub(crate) fn title(&self) -> String {
        let kind = match self.kind {
            Kind::Paper => "Test picture with 004's sizes",
            Kind::Short => "Short test picture",
            Kind::Given { .. } => "Test picture of a scenario",
        };
        format!("{kind}{}", if self.real_size { ", true to size" } else { "" })
    }

    /// From the lowest to the highest.
    pub(crate) fn rungs(&self) -> Vec<Rung> {
        match &self.kind {
            Kind::Paper => PAPER.to_vec(),
            Kind::Short => SHORT.to_vec(),
            Kind::Given { kbit, .. } => kbit.iter().map(|kbit| given(*kbit)).collect(),
        }
    }

    /// A group of pictures: a segment begins with one.
    fn group_s(&self) -> u32 {
        match self.kind {
            Kind::Paper | Kind::Short => GROUP_S,
            Kind::Given { .. } => self.segment_s,
        }
    }

    /// The picture of a quality.
    pub(crate) fn size(&self, rung: &Rung) -> Size {
        if self.real_size { rung.stands_for } else { SMALL }
    }

    /// ffmpeg's input: a moving test picture.
    pub(crate) fn source(&self, rung: &Rung) -> Vec<String> {
        let Size { width, height } = self.size(rung);
        let seconds = self.kind.seconds();
        let picture =
            format!("testsrc2=size={width}x{height}:rate={FRAME_RATE}:duration={seconds}");
        // VP9 has no padding: only a picture that is hard to code needs the rate.
        let noise = if self.codec == Codec::Vp9 { ",noise=alls=40:allf=t" } else { "" };
        // All qualities of a clip must have one shape, and 854x480 is a little off.
        ["-f", "lavfi", "-i", &format!("{picture}{noise},setdar=16/9")].map(str::to_owned).into()
    }

    /// ffmpeg's encoder.
    pub(crate) fn encoder(&self, rung: &Rung) -> Vec<String> {
        let rate = rung.rate_bps.to_string();
        let group = (self.group_s() * FRAME_RATE).to_string();
        let bounds = ["-b:v", &rate, "-minrate", &rate, "-maxrate", &rate, "-bufsize", &rate];
        let groups = ["-g", &group, "-keyint_min", &group, "-pix_fmt", "yuv420p"];
        let x264 = "nal-hrd=cbr:force-cfr=1:scenecut=0";
        let own: &[&str] = match self.codec {
            Codec::H264 => &["-c:v", "libx264", "-preset", "veryfast", "-x264-params", x264],
            Codec::Vp9 => {
                &["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-row-mt", "1"]
            }
        };
        own.iter().chain(&bounds).chain(&groups).map(|word| (*word).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PADDED: Wanted =
        Wanted { kind: Kind::Paper, codec: Codec::H264, real_size: false, segment_s: 2 };

    #[test]
    fn the_papers_clips_have_its_rates() {
        let mbit: Vec<f64> =
            PAPER.iter().map(|rung| (rung.rate_bps as f64 / 1e5).round() / 10.0).collect();
        assert_eq!(mbit, [1.0, 3.0, 6.1, 15.9]);
        assert_eq!(PADDED.id(), "paper-2s");
        let real = Wanted { real_size: true, codec: Codec::Vp9, segment_s: 4, ..PADDED };
        assert_eq!(real.id(), "paper-vp9-real-4s");
    }

    #[test]
    fn a_scenarios_clip_is_named_after_what_it_wants() {
        let kind = Kind::Given { seconds: 24, kbit: vec![1000, 15879] };
        let wanted = Wanted { kind, segment_s: 3, ..PADDED };
        assert_eq!(wanted.id(), "given-24s-1000-15879-3s");
        let rungs = wanted.rungs();
        assert_eq!((rungs[0].name.as_ref(), rungs[1].rate_bps), ("1000k", 15_879_000));
        assert_eq!((rungs[0].stands_for.height, rungs[1].stands_for.height), (480, 2160));
        assert!(wanted.encoder(&rungs[0]).join(" ").contains("-g 72"));
    }

    #[test]
    fn ffmpeg_is_told_to_pad() {
        let words = PADDED.encoder(&PAPER[3]).join(" ");
        assert!(words.contains("nal-hrd=cbr:force-cfr=1") && words.contains("-b:v 15878787"));
        assert!(words.contains("-g 48"), "{words}");
        assert!(PADDED.source(&PAPER[3]).join(" ").contains("640x360"));
    }
}
