//! Which players Chromium can be, and how long their scenarios take in real time.

use std::time::Duration;

use plait_sim::scenario::app::{Traffic, Via};
use plait_sim::scenario::video::{AbrName, VideoSpec};
use plait_sim::scenario::{AppSpec, Scenario};

use super::error::NetnsError;

/// Less is no picture of the size that clips have, and ffmpeg would overdraw it.
const KBIT_MIN: u64 = 300;
/// The page waits for no less.
const BUFFER_MIN: Duration = Duration::from_secs(1);
/// What a scenario does before its player starts, so that its links are in their state.
const LEAD: Duration = Duration::from_secs(1);
/// For how much longer than its clip a player may need, as an estimate for people.
const STALLED_SHARE: f64 = 0.5;

/// The players.
pub(super) fn videos(scenario: &Scenario) -> impl Iterator<Item = (&AppSpec, &VideoSpec)> {
    scenario.apps.iter().filter_map(|app| match &app.traffic {
        Traffic::Video(video) => Some((app, video)),
        _ => None,
    })
}

/// Whether Chromium on the lab's page can be an application's player.
pub(super) fn check_video(
    scenario: &Scenario,
    app: &AppSpec,
    video: &VideoSpec,
) -> Result<(), NetnsError> {
    let refused = |what: &str, help| {
        let (app, what) = (app.name.clone(), what.to_owned());
        Err(NetnsError::Video { app, what, help })
    };
    let is_whole = |time: Duration| time.subsec_nanos() == 0;
    if video.tcp.is_quic() {
        return refused("no video comes over QUIC", "choose a recovery of TCP");
    }
    if !is_whole(video.clip) || !is_whole(video.segment) {
        return refused("clips have whole seconds", "write whole numbers as clip_s and segment_s");
    }
    if video.size_spread > 0.0 {
        return refused("segments have the sizes of their rate", "take size_spread out");
    }
    if video.start != video.resume {
        let help = "write the same for buffer_s_start and buffer_s_resume";
        return refused("a clip begins and goes on with one buffer", help);
    }
    if video.buffer_max < BUFFER_MIN {
        return refused("a player buffers 1 s at least", "write more as buffer_s_max");
    }
    if video.page_lead < LEAD {
        return refused("Chromium has its page a second before the clip", "take page_s out");
    }
    if video.qualities.len() > 1 && video.abr == AbrName::Buffer {
        return refused("the player chooses by throughput", "take abr out");
    }
    if kbit(video).any(|kbit| kbit < KBIT_MIN) {
        return refused("a clip has 300 kbit/s at least", "write more as kbit");
    }
    check_mptcp(scenario, app, video)
}

/// Whether two proxies and the kernel's MPTCP between them are as the application wants it.
fn check_mptcp(scenario: &Scenario, app: &AppSpec, video: &VideoSpec) -> Result<(), NetnsError> {
    let (Via::Mptcp, Some(mptcp)) = (&app.via, &video.mptcp) else { return Ok(()) };
    let others = scenario.apps.iter().filter(|other| other.via == Via::Mptcp).count();
    if others > 1 {
        let what = "a player over MPTCP leads the kernel's to its own primary link".to_owned();
        let help = "give the other applications another `via`";
        return Err(NetnsError::Video { app: app.name.clone(), what, help });
    }
    // The kernel's first subflow follows the route that is made for the primary.
    let is_each = scenario.links.keys().all(|name| mptcp.subflows.contains(name));
    let strange = if is_each && mptcp.subflows.len() == scenario.links.len() {
        mptcp.beyond_linux(mptcp.subflows.iter())
    } else {
        mptcp.beyond_linux(scenario.links.keys())
    };
    match strange {
        Some((option, value)) => Err(NetnsError::Mptcp { app: app.name.clone(), option, value }),
        None => Ok(()),
    }
}

/// The rates in kbit/s.
pub(super) fn kbit(video: &VideoSpec) -> impl Iterator<Item = u64> {
    video.qualities.iter().map(|rate| rate.bits_per_second() / 1000)
}

/// How much of a scenario is left out: whatever comes before its only player, which would be an
/// hour's wait where each seed draws its own time of the links.
pub(super) fn silence(scenario: &Scenario) -> Duration {
    let is_video = |app: &AppSpec| matches!(app.traffic, Traffic::Video(_));
    if scenario.apps.is_empty() || !scenario.apps.iter().all(is_video) {
        return Duration::ZERO;
    }
    let starts = scenario.apps.iter().map(|app| app.start);
    let first = starts.chain(scenario.events.iter().map(|event| event.at)).min();
    first.unwrap_or_default().saturating_sub(LEAD)
}

/// About how long a scenario of a single player takes.
pub(super) fn play_time(scenario: &Scenario) -> Option<Duration> {
    let (_, video) = videos(scenario).next().filter(|_| scenario.apps.len() == 1)?;
    Some(LEAD + video.clip.mul_f64(1.0 + STALLED_SHARE))
}
