//! What every scheduler that looks at windows keeps to, over random sequences of views.

use proptest::prelude::*;

use super::delivery::{INTERACTIVE_WAIT_MAX, WAIT_BOUND_MIN, smoothed_rtt};
use super::*;

const MINDING_WINDOWS: [Algorithm; 5] = [
    Algorithm::MinRtt,
    Algorithm::EarliestDelivery,
    Algorithm::CheapestFirst,
    Algorithm::Blest,
    Algorithm::Ecf,
];

#[derive(Clone, Debug)]
struct Step {
    now: Instant,
    paths: Vec<PathView>,
    packet: PacketInfo,
}

fn millis(range: core::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

/// A path's figures; its pacer's time counts from now on.
fn any_path() -> impl Strategy<Value = PathView> {
    let times = (
        prop::option::of(millis(0..2000)),
        prop::option::of(millis(0..2000)),
        prop::option::of(millis(0..500)),
        prop::option::of(millis(0..500)),
    );
    let amounts = (0_u64..60_000, 0_u64..60_000, 0_u64..200, 0_u64..20_000, 0_u16..300);
    (0_u8..6, 0_u8..3, times, amounts).prop_map(|(id, price, times, amounts)| {
        let (srtt, latest_rtt, min_rtt, rtt_variation) = times;
        let (in_flight_bytes, window_bytes, mbit, ready_in_us, loss_permille) = amounts;
        PathView {
            id: PathId(id),
            price,
            order: id,
            weight: 1,
            srtt,
            latest_rtt,
            min_rtt,
            in_flight_bytes,
            delivery_rate: Rate::from_mbit(mbit),
            delivered_bytes: 0,
            sent_packets: 0,
            rtt_variation,
            window_bytes: Some(window_bytes),
            capacity: Rate::from_mbit(mbit),
            // Half of the pacers let a packet go at once.
            ready_at: Instant::from_nanos(ready_in_us.saturating_sub(10_000) * 1000),
            is_starting: false,
            loss_permille,
        }
    })
}

fn any_packet() -> impl Strategy<Value = PacketInfo> {
    (40_u64..1500, any::<bool>(), prop::sample::select(vec![0, 1500, 20_000, 1 << 20])).prop_map(
        |(bytes, is_bulk, queued_bytes)| {
            let class = if is_bulk { FlowClass::Bulk } else { FlowClass::Interactive };
            PacketInfo { bytes, class, queued_bytes, load: BulkLoad::default() }
        },
    )
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u64..200, prop::collection::vec(any_path(), 1..6), any_packet(), any::<bool>());
    prop::collection::vec(step, 1..40).prop_map(|steps| {
        let mut now = Instant::ZERO;
        let steps = steps.into_iter().map(|(pause_ms, mut paths, packet, is_closed)| {
            now += Duration::from_millis(pause_ms);
            paths.sort_by_key(|path| (path.price, path.order));
            let mut seen = PathSet::default();
            paths.retain(|path| {
                let is_new = !seen.contains(path.id);
                seen.insert(path.id);
                is_new
            });
            for path in &mut paths {
                path.ready_at = now + path.ready_at.since(Instant::ZERO);
                if !is_closed {
                    (path.window_bytes, path.ready_at) = (None, Instant::ZERO);
                }
            }
            Step { now, paths, packet }
        });
        steps.collect()
    })
}

fn run(algorithm: Algorithm, steps: &[Step]) -> Vec<Decision> {
    let mut scheduler = SchedulerConfig::from(algorithm).build();
    let decide =
        |step: &Step| scheduler.pick(&View { now: step.now, paths: &step.paths }, &step.packet);
    steps.iter().map(decide).collect()
}

fn check(algorithm: Algorithm, step: &Step, decision: Decision) {
    let Step { now, paths, packet } = step;
    let has_room = |id: PathId| {
        let path = paths.iter().find(|path| path.id == id).expect("the path is in the view");
        path.has_room(*now, packet.bytes)
    };
    let any_room = paths.iter().any(|path| path.has_room(*now, packet.bytes));
    match decision {
        Decision::Send(path) => assert!(has_room(path), "{path:?} has no room"),
        Decision::Copies(set) => {
            assert!(set.iter().count() >= 2 && set.iter().all(has_room), "{set:?}");
        }
        Decision::Wait { until } => {
            let longest = paths.iter().map(smoothed_rtt).max().expect("there are paths");
            let mut bound = longest.max(WAIT_BOUND_MIN);
            if algorithm == Algorithm::EarliestDelivery && packet.class == FlowClass::Interactive {
                bound = bound.min(INTERACTIVE_WAIT_MAX);
            }
            assert!(until > *now && until.since(*now) <= bound, "waits {:?}", until.since(*now));
            assert!(any_room, "without room anywhere it is blocked");
            assert!(paths.iter().any(|path| path.window_bytes.is_some()), "an open loop waits");
        }
        Decision::Blocked => assert!(!any_room, "blocked although a path has room"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn decisions_keep_to_the_contract(steps in any_steps()) {
        for algorithm in MINDING_WINDOWS {
            let decisions = run(algorithm, &steps);
            for (step, decision) in steps.iter().zip(&decisions) {
                check(algorithm, step, *decision);
            }
            prop_assert_eq!(&decisions, &run(algorithm, &steps), "{} is deterministic", algorithm);
        }
    }
}

#[test]
fn who_minds_windows_says_so() {
    for algorithm in Algorithm::ALL {
        let minds = SchedulerConfig::from(algorithm).build().respects_windows();
        assert_eq!(minds, MINDING_WINDOWS.contains(&algorithm), "{algorithm}");
    }
}
