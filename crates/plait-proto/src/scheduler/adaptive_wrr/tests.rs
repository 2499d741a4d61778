use super::super::testing::{INTERACTIVE, PACKET, picks, plain_paths, tally, view};
use super::*;

/// A report of one path.
fn report(path: u8, lost_packets: u64, sent_packets: u64) -> PathReport {
    PathReport { path: PathId(path), lost_packets, sent_packets }
}

/// A scheduler and its paths, which are alike.
struct Case {
    scheduler: AdaptiveWrr,
    count: u8,
}

impl Case {
    fn new(config: AdaptiveWrrConfig, count: u8) -> Self {
        Self { scheduler: AdaptiveWrr::new(config), count }
    }

    fn report(&mut self, reports: &[PathReport]) -> &mut Self {
        self.scheduler.on_report(&view(&plain_paths(self.count)), reports);
        self
    }

    fn loss_free(&mut self, reports: u32) -> &mut Self {
        for _ in 0..reports {
            self.report(&[report(0, 0, 300)]);
        }
        self
    }

    fn weights(&self) -> Vec<u32> {
        let weights = self.scheduler.weights(&view(&plain_paths(self.count)));
        weights.into_iter().map(|(_, weight)| weight).collect()
    }
}

fn config() -> AdaptiveWrrConfig {
    AdaptiveWrrConfig::default()
}

#[test]
fn all_traffic_starts_on_the_fixed_path() {
    let mut case = Case::new(config(), 2);
    assert_eq!(picks(&mut case.scheduler, &plain_paths(2), 3), [0, 0, 0]);
}

#[test]
fn iwi_raises_by_the_packets_lost() {
    let mut case = Case::new(config(), 2);
    assert_eq!(case.report(&[report(0, 7, 300)]).weights(), [50, 7]);
}

#[test]
fn awi_raises_by_the_loss_ratio() {
    let mut case = Case::new(config(), 2);
    case.report(&[report(0, 1, 300)]);
    // 0.5 · 60/300 · 50 = 5.
    assert_eq!(case.report(&[report(0, 60, 300)]).weights(), [50, 6]);
}

#[test]
fn awi_keeps_the_ratio_within_one() {
    let mut case = Case::new(config(), 2);
    case.report(&[report(0, 1, 300)]);
    assert_eq!(case.report(&[report(0, 900, 300)]).weights(), [50, 26]);
    assert_eq!(case.report(&[report(0, 1, 0)]).weights(), [50, 50], "nothing sent counts as one");
}

#[test]
fn weights_stay_within_w_max() {
    let mut case = Case::new(AdaptiveWrrConfig { w_max: 45, ..config() }, 2);
    assert_eq!(case.report(&[report(0, 500, 300)]).weights(), [50, 45]);
}

#[test]
fn rounding_decides_about_fractions() {
    for (weight_rounding, expected) in
        [(WeightRounding::Round, 4), (WeightRounding::Truncate, 3), (WeightRounding::Float, 4)]
    {
        let mut case = Case::new(AdaptiveWrrConfig { weight_rounding, ..config() }, 2);
        case.report(&[report(0, 1, 300)]);
        // 0.5 · 30/300 · 50 = 2.5.
        case.report(&[report(0, 30, 300)]);
        assert_eq!(case.weights(), [50, expected], "{weight_rounding:?}");
        case.report(&[report(0, 30, 300)]);
        let twice = if weight_rounding == WeightRounding::Float { 6 } else { expected * 2 - 1 };
        assert_eq!(case.weights(), [50, twice], "{weight_rounding:?}");
    }
}

#[test]
fn fractional_weights_share_traffic() {
    let float = AdaptiveWrrConfig { weight_rounding: WeightRounding::Float, k: 0.1, ..config() };
    let mut case = Case::new(float, 2);
    case.report(&[report(0, 2, 300)]);
    // 0.1 · 30/300 · 50 = 0.5 makes 2.5.
    case.report(&[report(0, 30, 300)]);
    assert_eq!(tally(&picks(&mut case.scheduler, &plain_paths(2), 1050)), [1000, 50]);
}

#[test]
fn dwd_lowers_by_one_per_t_dwd() {
    let mut case = Case::new(config(), 2);
    case.report(&[report(0, 7, 300)]);
    assert_eq!(case.loss_free(4).weights(), [50, 7]);
    assert_eq!(case.loss_free(1).weights(), [50, 6]);
    assert_eq!(case.loss_free(4).weights(), [50, 6]);
    assert_eq!(case.loss_free(1).weights(), [50, 5]);
    assert_eq!(case.loss_free(100).weights(), [50, 0]);
}

#[test]
fn dwd_per_report_goes_on_once_it_has_begun() {
    let mut case = Case::new(AdaptiveWrrConfig { dwd_mode: DwdMode::PerReport, ..config() }, 2);
    case.report(&[report(0, 7, 300)]);
    assert_eq!(case.loss_free(4).weights(), [50, 7]);
    assert_eq!(case.loss_free(3).weights(), [50, 4]);
}

#[test]
fn loss_restarts_the_wait() {
    let mut case = Case::new(config(), 2);
    case.report(&[report(0, 7, 300)]);
    case.loss_free(4).report(&[report(0, 1, 300)]);
    assert_eq!(case.loss_free(4).weights(), [50, 7]);
    assert_eq!(case.loss_free(1).weights(), [50, 6]);
}

#[test]
fn t_dwd_is_rounded_up_to_reports() {
    for (t_dwd_ms, reports) in [(0, 1), (50, 1), (51, 2), (250, 5), (260, 6)] {
        let config = AdaptiveWrrConfig { t_dwd_ms, ..config() };
        assert_eq!(config.reports_per_t_dwd(), reports, "{t_dwd_ms} ms");
    }
}

#[test]
fn losses_of_the_mobile_path_neither_raise_nor_restart_the_wait() {
    let mut case = Case::new(config(), 2);
    case.report(&[report(0, 7, 300)]);
    for _ in 0..5 {
        case.report(&[report(0, 0, 300), report(1, 9, 40)]);
    }
    assert_eq!(case.weights(), [50, 6]);
}

#[test]
fn with_three_paths_the_next_dearer_one_with_room_is_raised() {
    let mut case = Case::new(AdaptiveWrrConfig { w_max: 10, ..config() }, 3);
    case.report(&[report(0, 12, 300)]);
    assert_eq!(case.weights(), [50, 10, 0]);
    case.report(&[report(0, 4, 300)]);
    assert_eq!(case.weights(), [50, 10, 4], "the second is full");
    case.report(&[report(1, 3, 30)]);
    assert_eq!(case.weights(), [50, 10, 7], "0.5 · 3/30 · 50 = 2.5, halves up");
    assert_eq!(case.loss_free(35).weights(), [50, 10, 0], "the dearest falls first");
    assert_eq!(case.loss_free(5).weights(), [50, 9, 0]);
}

#[test]
fn when_the_fixed_path_is_gone_the_next_takes_its_place() {
    let mut scheduler = AdaptiveWrr::new(config());
    let paths = plain_paths(3);
    scheduler.on_path_gone(PathId(0));
    assert_eq!(picks(&mut scheduler, &paths[1..], 3), [1, 1, 1]);
    scheduler.on_report(&view(&paths[1..]), &[report(1, 5, 100)]);
    assert_eq!(tally(&picks(&mut scheduler, &paths[1..], 55)), [0, 50, 5]);
}

#[test]
fn packets_of_the_mobile_path_lie_apart() {
    let mut case = Case::new(config(), 2);
    case.report(&[report(0, 25, 300)]);
    assert_eq!(picks(&mut case.scheduler, &plain_paths(2), 6), [0, 1, 0, 0, 1, 0]);
}

#[test]
fn shares_hold_when_runs_are_sent_without_asking() {
    let mut case = Case::new(config(), 2);
    case.report(&[report(0, 25, 300)]);
    let paths = plain_paths(2);
    let mut sent = [0; 2];
    for _ in 0..150 {
        let path = picks(&mut case.scheduler, &paths, 1)[0];
        for _ in 0..4 {
            case.scheduler.on_run(&view(&paths), PathId(path), 1500);
        }
        sent[usize::from(path)] += 5;
    }
    assert_eq!(sent, [500, 250]);
}

#[test]
fn one_path_alone_takes_everything() {
    let mut case = Case::new(config(), 1);
    case.report(&[report(0, 5, 100)]).loss_free(10);
    assert_eq!(picks(&mut case.scheduler, &plain_paths(1), 3), [0, 0, 0]);
}

#[test]
fn byte_weights_share_bytes_whatever_the_packets_sizes() {
    let mut case = Case::new(AdaptiveWrrConfig { weight_unit: WeightUnit::Bytes, ..config() }, 2);
    case.report(&[report(0, 25, 300)]);
    let paths = plain_paths(2);
    let mut sent = [0; 2];
    for number in 0..3000 {
        let bytes = if number % 3 == 0 { 1500 } else { 100 };
        let Decision::Send(path) =
            case.scheduler.pick(&view(&paths), &PacketInfo { bytes, ..PACKET })
        else {
            panic!("both paths have a weight");
        };
        sent[usize::from(path.0)] += bytes;
    }
    let share = sent[1] as f64 / sent[0] as f64;
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

#[test]
fn where_both_adapt_a_dearer_paths_losses_lower_its_own_weight() {
    let both = AdaptiveWrrConfig { weights_adapt: WeightsAdapt::Both, ..config() };
    for (config, expected) in [(config(), [40, 40, 40]), (both, [36, 35, 0])] {
        let mut case = Case::new(config, 2);
        case.report(&[report(0, 40, 300)]);
        // 0.5 · 60/300 · 40 = 4; 0.5 · 3/300 · 36 = 0.2, which counts as 1.
        for (lost, weight) in [60, 3].into_iter().zip(expected) {
            case.report(&[report(0, 0, 300), report(1, lost, 300)]);
            assert_eq!(case.weights(), [50, weight]);
        }
        (0..40).for_each(|_| {
            case.report(&[report(0, 1, 300), report(1, 1, 300)]);
        });
        assert_eq!(case.weights(), [50, expected[2]], "both lost packets: the fixed one added 0");
    }
}

#[test]
fn small_flows_stay_on_the_cheapest_path_and_count_as_its_share() {
    let cheapest = AdaptiveWrrConfig { small_flows: SmallFlows::Cheapest, ..config() };
    for (config, apart) in [(config(), false), (cheapest, true)] {
        let mut case = Case::new(config, 2);
        assert_eq!(case.scheduler.tells_flows_apart(), apart);
        case.report(&[report(0, 50, 300)]);
        let paths = plain_paths(2);
        let (mut small, mut all) = ([0; 2], [0; 2]);
        for number in 0..1000 {
            let packet = if number % 5 == 0 { INTERACTIVE } else { PACKET };
            let Decision::Send(path) = case.scheduler.pick(&view(&paths), &packet) else {
                panic!("both paths have a weight");
            };
            all[usize::from(path.0)] += 1;
            small[usize::from(path.0)] += usize::from(packet.class == FlowClass::Interactive);
        }
        assert_eq!(all, [500, 500], "shares are as the weights say");
        assert_eq!(small[1] == 0, apart);
    }
}
