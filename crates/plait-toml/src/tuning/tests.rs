//! What is written is read again; what is out of range is refused.

use plait_proto::congestion::Algorithm as Controller;
use plait_proto::scheduler::Algorithm;

use super::*;
use crate::testing::round_trip;
use crate::{Place, Problems};

proptest::proptest! {
    #[test]
    fn what_is_written_is_read_again(seed: u64) {
        round_trip(seed, SCHEDULER, SchedulerConfig::default());
        round_trip(seed, CONGESTION, Loop::default());
        round_trip(seed, RESEQUENCER, Egress::default());
    }
}

fn told(text: &str) -> Result<Tuning, String> {
    let file = std::path::Path::new("x.toml");
    let table = crate::tree::parse(file, text).unwrap();
    let problems = Problems::default();
    let mut top = Section::top(&problems, Place::Line(file.into(), 1), &table);
    let [first, second, third] =
        ["scheduler", "congestion", "resequencer"].map(|name| top.single(name));
    let tuning = read(first, second, third);
    problems.finish(Some(tuning)).map_err(|errors| errors.to_string())
}

#[test]
fn every_controller_can_be_named_and_the_default_is_as_told() {
    let [algorithm, ..] = CONGESTION else { panic!("it has options") };
    let [_, range, absent] = algorithm.told(&mut Loop::default());
    for controller in Controller::ALL {
        assert!(range.contains(&format!("`{controller}`")), "{controller}");
    }
    for scheduler in Algorithm::ALL {
        let expected = absent.contains(&format!("`{scheduler}`"));
        assert_eq!(scheduler.default_congestion().is_some(), expected, "{scheduler}");
    }
}

#[test]
fn a_tuning_that_is_written_is_read_again() {
    let paper = Tuning {
        order: Order::Bond,
        resequencer: ResequencerConfig::PAPER_002,
        loss_detection: LossDetection::Timer,
        ..SchedulerConfig::from(Algorithm::AdaptiveWrr).into()
    };
    for tuning in [Tuning::default(), paper] {
        let mut text = String::new();
        tuning.write(&mut text, "");
        assert_eq!(told(&text), Ok(tuning));
    }
}

#[test]
fn parameters_of_adaptive_wrr_out_of_range_are_refused() {
    for (line, words) in [
        ("k = -0.1", "k: -0.1 is out of range"),
        ("k = 0", "k: 0 is out of range"),
        ("k = nan", "k: nan is out of range"),
        ("w_fixed = 0", "w_fixed: 0 is out of range"),
        ("w_fixed = 1001", "w_fixed: 1001 is out of range"),
        ("w_max = 65536", "w_max: 65536 is out of range"),
        ("initial_weight = 51", "initial_weight: 51 is out of range"),
        ("t_report_ms = 0", "t_report_ms: 0 is out of range"),
        ("w_maximum = 45", "w_maximum: unknown option"),
        ("w-max = 45", "w-max: unknown option"),
    ] {
        let told = told(&format!("[scheduler]\nalgorithm = \"adaptive-wrr\"\n{line}\n"));
        let told = told.unwrap_err();
        assert!(told.contains(words), "{line}: {told}");
    }
}

#[test]
fn parameters_of_closed_loops_out_of_range_are_refused() {
    for (algorithm, line) in [
        ("earliest-delivery", "delay_cost = -0.1"),
        ("earliest-delivery", "delay_cost = 1.1"),
        ("earliest-delivery", "delay_cost = nan"),
        ("blest", "lambda = 0"),
        ("blest", "lambda = 100.1"),
        ("blest", "lambda = nan"),
        ("blest", "send_window_bytes = 0"),
        ("ecf", "beta = -0.1"),
        ("ecf", "beta = 100.1"),
        ("ecf", "beta = nan"),
    ] {
        let told = told(&format!("[scheduler]\nalgorithm = \"{algorithm}\"\n{line}\n"));
        assert!(told.clone().unwrap_err().contains("out of range"), "{line}: {told:?}");
    }
}

/// Options that a misspelt other option alone makes ineffective are not reported.
#[test]
fn regression_a_misspelt_timer_leaves_the_options_of_the_right_one_alone() {
    let told = told("[resequencer]\ntimer = \"fixd\"\ntimeout_ms = 50\n").unwrap_err();
    assert!(told.contains("did you mean \"fixed\"?"), "{told}");
    assert!(!told.contains("timeout_ms"), "{told}");
}
