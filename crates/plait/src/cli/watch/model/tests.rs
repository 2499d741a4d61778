use super::super::testing::{answer, path, peer};
use super::*;

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn watched(steps: &[(u64, u64, Vec<PathStatus>)]) -> Model {
    let mut model = Model::default();
    for (at_s, uptime_s, paths) in steps {
        model.answered(seconds(*at_s), answer(vec![peer(paths.clone())], *uptime_s));
    }
    model
}

fn first_peer(model: &Model) -> &Peer {
    &model.gateway.as_ref().unwrap().peers[0]
}

#[test]
fn rates_are_differences_over_the_time_that_passed() {
    let model = watched(&[
        (0, 10, vec![path("dsl", 0, 1000, 500), path("lte", 1, 0, 0)]),
        (2, 12, vec![path("dsl", 0, 4000, 1500), path("lte", 1, 0, 0)]),
    ]);
    let peer = first_peer(&model);
    let expected = Rates { out_bps: 12_000.0, in_bps: 4000.0 };
    assert_eq!(peer.paths[0].rates, Some(expected));
    assert_eq!(peer.rates, Some(expected), "the idle path adds nothing");
    assert_eq!(peer.paths[0].share, Some(1.0));
    assert_eq!(peer.paths[1].share, Some(0.0));
    assert_eq!(peer.paths[0].history.columns(seconds(2), 30)[29], Some(16_000.0));
    assert_eq!(peer.history.columns(seconds(2), 30)[29], Some(16_000.0));
}

#[test]
fn a_first_answer_and_a_new_path_have_no_rates() {
    let model = watched(&[(0, 10, vec![path("dsl", 0, 1000, 0)])]);
    assert_eq!(first_peer(&model).rates, None);
    let model = watched(&[
        (0, 10, vec![path("dsl", 0, 1000, 0)]),
        (1, 11, vec![path("dsl", 0, 1000, 0), path("lte", 1, 5000, 0)]),
    ]);
    let peer = first_peer(&model);
    assert_eq!(peer.paths[1].rates, None, "its bytes are not of this second alone");
    assert_eq!(peer.rates, Some(Rates::default()));
    assert_eq!(peer.paths[0].share, None, "nothing flowed");
}

#[test]
fn a_path_that_rejoined_keeps_its_history_and_counts_anew() {
    let model = watched(&[
        (0, 10, vec![path("lte", 1, 0, 0)]),
        (1, 11, vec![path("lte", 1, 1000, 0)]),
        (2, 12, vec![path("lte", 7, 9000, 0)]),
    ]);
    let lte = &first_peer(&model).paths[0];
    assert_eq!(lte.rates, None);
    assert_eq!(lte.history.columns(seconds(2), 60)[58..], [Some(8000.0), None]);
}

#[test]
fn paths_of_one_name_are_told_apart_by_id() {
    let model = watched(&[
        (0, 10, vec![path("any", 0, 0, 0), path("any", 1, 0, 0)]),
        (1, 11, vec![path("any", 1, 100, 0), path("any", 0, 200, 0)]),
    ]);
    let rates: Vec<_> =
        first_peer(&model).paths.iter().map(|path| path.rates.unwrap().out_bps).collect();
    assert_eq!(rates, [800.0, 1600.0]);
}

#[test]
fn a_restart_is_noticed_even_when_counters_have_grown() {
    let step = |at_s, uptime_s, sent| (at_s, uptime_s, vec![path("dsl", 0, sent, 0)]);
    let model = watched(&[step(0, 5, 0), step(60, 50, 1_000_000)]);
    assert_eq!(model.restarts, 1);
    assert_eq!(first_peer(&model).rates, None);
    assert_eq!(model.gateway.as_ref().unwrap().new_drops("bad-tag"), 0);
    let model = watched(&[step(0, 5, 0), step(60, 64, 1_000_000)]);
    assert_eq!(model.restarts, 0, "whole seconds round");
    assert!(first_peer(&model).rates.is_some());
    assert_eq!(model.gateway.as_ref().unwrap().new_drops("bad-tag"), 59);
}

#[test]
fn counters_that_went_back_give_no_rate() {
    let model =
        watched(&[(0, 10, vec![path("dsl", 0, 1000, 0)]), (1, 11, vec![path("dsl", 0, 10, 0)])]);
    assert_eq!(first_peer(&model).paths[0].rates, None);
}

#[test]
fn releases_are_counted_from_answer_to_answer() {
    let mut later = peer(vec![]);
    later.resequencer.released.timer += 4;
    let mut model = Model::default();
    model.answered(seconds(0), answer(vec![peer(vec![])], 10));
    assert_eq!(first_peer(&model).released, None);
    model.answered(seconds(1), answer(vec![later], 11));
    let released = Released { timer: 4, ..Released::default() };
    assert_eq!(first_peer(&model).released, Some(released));
}

#[test]
fn peers_are_found_by_key_when_their_order_changes() {
    let named = |key: &str, sent| {
        let mut peer = peer(vec![path("dsl", 0, sent, 0)]);
        peer.public_key = key.into();
        peer
    };
    let mut model = Model::default();
    model.answered(seconds(0), answer(vec![named("a", 0), named("b", 1000)], 10));
    model.answered(seconds(1), answer(vec![named("b", 1000), named("a", 500)], 11));
    let out = |index: usize| model.gateway.as_ref().unwrap().peers[index].rates.unwrap().out_bps;
    assert_eq!((out(0), out(1)), (0.0, 4000.0));
}

#[test]
fn silence_is_timed_from_its_first_failure_and_ends_with_an_answer() {
    let mut model = watched(&[(0, 10, vec![])]);
    assert!(model.all_up());
    model.failed(seconds(1), "gone".into());
    model.failed(seconds(5), "refused".into());
    let failure = model.failure.as_ref().unwrap();
    assert_eq!((failure.what.as_str(), failure.since), ("refused", seconds(1)));
    assert!(!model.all_up());
    model.answered(seconds(6), answer(vec![], 16));
    assert!(model.failure.is_none() && model.restarts == 0);
    assert!(!Model::default().all_up(), "unknown is not up");
}
