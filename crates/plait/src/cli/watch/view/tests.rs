use plait_proto::stats::PathState;

use super::super::testing::{answer, path, peer};
use super::*;

const UNICODE: Look = Look { unicode: true, colour: true };

#[test]
fn short_rates_fit_their_column() {
    let texts =
        [0.0, 640.0, 64_200.0, 642_000.0, 999_999.0, 48.24e6, 999.9e6, 2.5e9].map(short_rate);
    assert_eq!(texts, ["0", "0.6 k", "64.2 k", "642 k", "1.0 M", "48.2 M", "1.0 G", "2.5 G"]);
    let mut bps = 1.0;
    while bps < 1e12 {
        assert!(short_rate(bps).len() <= layout::RATE, "{bps}");
        bps *= 1.01;
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut long = path("a-name-of-many-characters", 0, 0, 0);
    long.reason = "lost 21 % of 340 packets; ".repeat(5);
    long.state = PathState::Lossy;
    let mut model = Model::default();
    model.answered(Duration::ZERO, answer(vec![peer(vec![long]), peer(vec![])], 100));
    model.failed(Duration::from_secs(3), "cannot ask the gateway behind its socket".into());
    for width in 46..160 {
        for line in lines(&model, Duration::from_secs(4), width, UNICODE) {
            assert!(line.width() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_state_is_told_by_word_sign_and_colour() {
    let mut standby = path("lte", 0, 0, 0);
    standby.standby = true;
    standby.in_use = false;
    let mut silent = path("dsl", 1, 0, 0);
    silent.state = PathState::Silent;
    silent.in_use = false;
    let mut model = Model::default();
    model.answered(Duration::ZERO, answer(vec![peer(vec![standby, silent])], 100));
    let lines = lines(&model, Duration::ZERO, 80, UNICODE);
    for (name, sign, word, mood) in
        [("lte", "○ ", "standby", Mood::Resting), ("dsl", "✗ ", "silent", Mood::Bad)]
    {
        let line = lines.iter().find(|line| line.to_string().contains(name)).unwrap();
        let spans = &line.spans;
        assert_eq!((&*spans[0].content, spans[2].content.trim()), (sign, word));
        assert_eq!((spans[0].style, spans[2].style), (UNICODE.style(mood), UNICODE.style(mood)));
    }
}

#[test]
fn the_reason_is_never_cut() {
    let reason = "nothing came back for 214 ms although 31 packets were on their way";
    let mut silent = path("dsl", 1, 0, 0);
    silent.reason = reason.into();
    let mut model = Model::default();
    model.answered(Duration::ZERO, answer(vec![peer(vec![silent])], 100));
    for width in [30, 60, 80] {
        let lines = lines(&model, Duration::ZERO, width, UNICODE);
        let text: String = lines.iter().map(|line| format!(" {line}")).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(reason), "{width}: {text}");
    }
}

#[test]
fn what_fits_after_the_reason_is_told_too() {
    let mut lte = path("lte", 0, 0, 0);
    lte.metered = true;
    lte.rescued_packets = 31;
    let mut model = Model::default();
    model.answered(Duration::ZERO, answer(vec![peer(vec![lte])], 100));
    let reason = |width| {
        let lines = lines(&model, Duration::ZERO, width, UNICODE);
        let texts = lines.iter().map(ToString::to_string);
        texts.filter(|text| text.starts_with("    answers")).collect::<String>()
    };
    let most = "    answers; to 192.0.2.1:7788, mtu 1500, metered";
    assert_eq!(reason(80), format!("{most}, 31 packets rescued"));
    assert_eq!(reason(60), most);
}

#[test]
fn before_the_first_answer_there_is_one_line() {
    let lines = lines(&Model::default(), Duration::ZERO, 80, UNICODE);
    assert_eq!(lines, [Line::from("asking the gateway")]);
}
