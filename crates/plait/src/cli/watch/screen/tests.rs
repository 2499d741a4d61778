use plait_proto::stats::PathState;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::testing::{answer, path, peer};
use super::*;

const UNICODE: Look = Look { unicode: true, colour: true };
const ASCII: Look = Look { unicode: false, colour: false };

/// A gateway watched for a minute: one path at full rate, one that falls silent half way, a bond
/// that is not there yet.
fn watched() -> Model {
    let mut model = Model::default();
    let (mut dsl_bytes, mut lte_bytes) = (0, 0);
    for s in 0..=60 {
        let mut lte = path("lte", 1, lte_bytes, 0);
        lte.metered = true;
        if s > 30 {
            lte.state = PathState::Silent;
            lte.reason = "nothing came back for a while; probed every second".into();
            lte.in_use = false;
        }
        let mut down = peer(Vec::new());
        down.public_key = "other-peer-key-in-base64-of-44-characters===".into();
        down.state = "connecting".into();
        down.session_age_s = None;
        down.scheduler = String::new();
        down.resequencer = Default::default();
        let mut bond = peer(vec![path("dsl", 0, dsl_bytes, dsl_bytes / 40), lte]);
        bond.resequencer.released.in_order += s * 70;
        model.answered(Duration::from_secs(s), answer(vec![bond, down], 3700 + s));
        dsl_bytes += 125_000 * (10 + s);
        lte_bytes += if s < 30 { 1_000_000 } else { 0 };
    }
    model
}

fn shown(model: &Model, choice: &mut Choice, look: Look, size: (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let now = Duration::from_secs(60);
    let drawn = terminal
        .draw(|frame| draw(model, now, choice, look, frame.area(), frame.buffer_mut()))
        .unwrap();
    let row = |y| {
        let cells = (0..size.0).map(|x| drawn.buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..size.1).map(row).collect()
}

#[test]
fn eighty_columns_hold_a_whole_bond() {
    let rows = shown(&watched(), &mut Choice::default(), UNICODE, (80, 24));
    let expected = "\
plait0, up for 1 h 2 min, key own-key-in-base64-of-forty-four-characters==

● peer peer-key-in-base64-of-fo…  up  1 min 15 s, AES-256-GCM, earliest-delivery
  path state         out     in rtt ms jitter loss % share       last minute
● dsl  up         69.0 M  1.7 M   13.2    0.8    0.5 100 % █████ ▂▂▃▃▄▄▅▅▆▆▇▇███
    answers; to 192.0.2.1:7788, mtu 1500
✗ lte  silent          0      0   13.2    0.8    0.5   0 %       ███████▄·······
    nothing came back for a while; probed every second; to 192.0.2.1:7788
  all             69.0 M  1.7 M                                  ▃▃▄▄▅▅▆▆▆▆▇▇███
  waiting 12 packets, 14.4 kB; released: 70 in order
  since start: 4270 in order, 3 timer; given up 2, duplicates 0

◌ peer other-peer-key-in-base64-of-44-characters===  connecting  no session
  no paths

drops since start (+ while watching): bad-tag 3760 (+60)







q end  ? help";
    assert_eq!(rows.join("\n"), expected, "\n{}", rows.join("\n"));
}

#[test]
fn a_narrow_ascii_terminal_shows_the_least() {
    let rows = shown(&watched(), &mut Choice::default(), ASCII, (40, 14));
    let expected = "\
plait0, up for 1 h 2 min, key
  own-key-in-base64-of-forty-four-charac

* peer peer-key-~  up, earliest-delivery
  path state         out     in rtt ms
* dsl  up         69.0 M  1.7 M   13.2
    answers; to 192.0.2.1:7788, mtu 1500
x lte  silent          0      0   13.2
    nothing came back for a while;
      probed every second; mtu 1500
  all             69.0 M  1.7 M
  waiting 12 packets, 14.4 kB;
    released: 70 in order
q end  ? help  8 lines below";
    assert_eq!(rows.join("\n"), expected, "\n{}", rows.join("\n"));
    assert!(rows.iter().all(|row| row.is_ascii()));
}

#[test]
fn a_silent_gateway_is_shown_with_its_last_figures() {
    let mut model = watched();
    model.failed(Duration::from_secs(48), "no gateway".into());
    let rows = shown(&model, &mut Choice::default(), UNICODE, (80, 24));
    assert_eq!(rows[0], "✗ no gateway");
    assert_eq!(rows[1], "  asked again every interval, for 12 s now");
    assert_eq!(rows[2], "what it said 0 s ago:");
    assert!(rows[3].starts_with("plait0, up for 1 h 2 min"), "{}", rows[3]);
}

fn press(code: KeyCode, choice: &mut Choice) -> Asked {
    react(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)), choice)
}

#[test]
fn scrolling_ends_at_the_last_line() {
    let (model, mut choice) = (watched(), Choice::default());
    let rows = shown(&model, &mut choice, UNICODE, (80, 10));
    assert!(rows[9].contains("lines below") && !rows[9].contains("above"), "{}", rows[9]);
    for _ in 0..5 {
        assert_eq!(press(KeyCode::PageDown, &mut choice), Asked::Redraw);
    }
    let rows = shown(&model, &mut choice, UNICODE, (80, 10));
    assert!(rows[8].starts_with("drops since start"), "{}", rows[8]);
    assert!(rows[9].contains("lines above") && !rows[9].contains("below"), "{}", rows[9]);
    let scrolled = choice.scroll;
    press(KeyCode::Up, &mut choice);
    assert_eq!(choice.scroll, scrolled - 1, "one line back at once, not from far below");
    press(KeyCode::Home, &mut choice);
    assert_eq!(choice.scroll, 0);
}

#[test]
fn help_comes_and_goes() {
    let (model, mut choice) = (watched(), Choice::default());
    press(KeyCode::Char('?'), &mut choice);
    let rows = shown(&model, &mut choice, UNICODE, (80, 24));
    assert!(rows.iter().any(|row| row.starts_with("q ends, ? hides this help")), "{rows:?}");
    assert!(rows[0].starts_with("plait0"));
    press(KeyCode::Char('?'), &mut choice);
    assert_eq!(shown(&model, &mut choice, UNICODE, (80, 24))[23], FOOTER);
}

#[test]
fn keys_that_end_end() {
    let mut choice = Choice::default();
    assert_eq!(press(KeyCode::Char('q'), &mut choice), Asked::End);
    assert_eq!(press(KeyCode::Esc, &mut choice), Asked::End);
    let control = |c| Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    assert_eq!(react(&control('c'), &mut choice), Asked::End);
    assert_eq!(react(&control('l'), &mut choice), Asked::DrawAnew);
    assert_eq!(press(KeyCode::Char('x'), &mut choice), Asked::Nothing);
    assert_eq!(react(&Event::Resize(1, 1), &mut choice), Asked::Redraw);
}

#[test]
fn no_size_is_too_small() {
    for size in [(1, 1), (2, 1), (5, 3), (20, 2), (300, 100)] {
        shown(&watched(), &mut Choice { scroll: 3, help: true }, UNICODE, size);
        shown(&watched(), &mut Choice::default(), ASCII, size);
    }
}
