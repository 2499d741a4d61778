//! How a valid scenario is read.

use plait_proto::config::{LossDetection, Order};
use plait_proto::congestion::Algorithm::{CubicLinux, Edinburgh, Gauge, Lia, WhiteHaul};
use plait_proto::congestion::{Adv, ControllerConfig, Repair, SlowStart, WhiteHaulConfig};
use plait_proto::resequencer::Timer;
use plait_proto::scheduler::{Algorithm, DwdMode};
use plait_proto::time::Instant;
use plait_proto::units::Rate;

use super::*;
use crate::link::{Access, Bucket, Discipline, Grants, Room};
use crate::ratio::Ratio;
use crate::scenario::app::{Traffic, Via};
use crate::scenario::check::CheckKind;
use crate::scenario::link::{Capacity, LossSpec, QueueSpec};
use crate::scenario::rate::{Layer, Shape};

fn sound(text: &str, settings: &[&str]) -> Experiment {
    load(text, settings).unwrap_or_else(|errors| panic!("\n{}", words(&errors)))
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn queue(discipline: Discipline, bytes: u64) -> QueueSpec {
    QueueSpec { discipline, room: Room::Bytes(bytes) }
}

#[test]
fn what_is_left_out_has_its_default() {
    let Experiment { scenario, cells } = sound(SOUND, &[]);
    assert_eq!((scenario.duration, scenario.warmup), (ms(10_000), ms(0)));
    assert_eq!(scenario.backends, [Backend::Sim]);
    let lte = &scenario.links["lte"];
    assert_eq!(lte.up, lte.down);
    assert_eq!((lte.up.delay, lte.up.jitter, lte.mtu), (ms(12) + ms(1) / 2, ms(10), 1600));
    assert_eq!(lte.up.queue, queue(Discipline::DropTail, 375_000));
    assert_eq!(lte.up.loss, LossSpec::Bernoulli(Ratio::ZERO));
    let bond = scenario.bond.as_ref().unwrap();
    assert_eq!(bond.scheduler, Algorithm::AdaptiveWrr.into());
    assert_eq!((bond.order, bond.loss_detection), (Order::Flow, LossDetection::Known));
    assert_eq!((bond.report_interval, bond.inner_mtu), (ms(50), 1500));
    let app = &scenario.apps[0];
    assert_eq!((app.start, app.stop, &app.via), (ms(0), ms(10_000), &Via::Bond));
    let Traffic::Udp(udp) = &app.traffic else { panic!("{app:?}") };
    assert_eq!(udp.told_at, Layer::Wire);
    // 1460 bytes of payload travel in 1548.
    let offered = Rate::from_bits_per_second(47_157_623);
    assert_eq!(udp.shape.at(ms(5)), offered);
    assert_eq!((cells.len(), cells[0].name.as_str()), (1, "base"));
    assert_eq!(cells[0].scenario, scenario);
}

#[test]
fn a_sender_is_told_how_its_controller_behaves() {
    let app = |more: &str| {
        let text = format!("{SOUND}[[app]]\nname = \"t\"\nkind = \"tcp\"\n{more}");
        let Experiment { scenario, .. } = sound(&text, &[]);
        let Traffic::Tcp(tcp) = scenario.apps[1].traffic.clone() else { panic!("{more}") };
        tcp.tcp
    };
    let plain = app("");
    assert_eq!((&*plain.controller, plain.congestion), ("cubic-linux", CubicLinux.into()));
    assert_eq!(app("controller = \"bbr\"").congestion, Gauge.into());
    let whitehaul = app("controller = \"whitehaul\"\nrepairs = [\"latch\", \"delay\"]\n\
                         delay_ms = 12.5\nadv = 200\nslow_start = \"hystart++\"\n");
    let mut expected = ControllerConfig::from(WhiteHaul);
    expected.slow_start = Some(SlowStart::HyStartPlusPlus);
    expected.whitehaul = WhiteHaulConfig {
        adv: Adv::Segments(200),
        delay: Duration::from_micros(12_500),
        repairs: [Repair::Latch, Repair::Delay].into_iter().collect(),
    };
    assert_eq!(whitehaul.congestion, expected);
    let edinburgh = app("controller = \"edinburgh\"\nadv = \"auto\"\ndelay_ms = 20\n");
    let mut expected = ControllerConfig::from(Edinburgh);
    expected.edinburgh.adv = Adv::Auto;
    expected.edinburgh.delay = ms(20);
    assert_eq!(edinburgh.congestion, expected);
    assert_eq!(app("controller = \"lia\"").congestion, Lia.into());
}

#[test]
fn a_check_is_repeated_for_each_value_of_its_axes() {
    let text = format!(
        "{SOUND}[[sweep]]\nkey = \"links.dsl.rtt_ms\"\nname = \"rtt\"\nvalues = [10, 20]\n\
         [[sweep]]\nkey = \"links.lte.rtt_ms\"\nname = \"far\"\nvalues = [30, 40]\n\
         [[sweep]]\nkey = \"links.lte.rate_mbit\"\nname = \"rate\"\nvalues = [5, 6]\n\
         [[check]]\nname = \"{{rtt}} and {{far}}\"\neach = [\"rtt\", \"far\"]\n\
         required_of = {{ far = 40 }}\nkind = \"best\"\nmetric = \"loss_percent\"\n\
         where = {{ rate = 5 }}\nto = {{ rate = 6, far = 30 }}\nsource = \"s\"\n"
    );
    let told = |check: &Check| {
        let CheckKind::Best { to } = &check.kind else { panic!("{check:?}") };
        let cells = format!("{} over {}", check.cells.describe(), to.describe());
        (check.name.clone(), cells, check.required)
    };
    let all: Vec<_> = sound(&text, &[]).scenario.checks.iter().map(told).collect();
    let of = |rtt: u8, far: u8, required| {
        let cells = format!("far={far}, rate=5, rtt={rtt} over far=30, rate=6, rtt={rtt}");
        (format!("{rtt} and {far}"), cells, required)
    };
    assert_eq!(all, [of(10, 30, false), of(10, 40, true), of(20, 30, false), of(20, 40, true)]);
    let narrowed = sound(&text, &["rtt=20"]).scenario;
    assert_eq!(narrowed.checks.len(), 2, "only what is run is checked");
}

#[test]
fn a_seed_draws_one_start_for_all_cells() {
    let spread = "app.flow.start_s=[1, 3]";
    let scenario = |other: &str| sound(SOUND, &[spread, other]).scenario;
    let start = |scenario: &Scenario, seed| {
        let drawn = scenario.drawn(seed);
        assert_eq!(drawn.apps[0].start, drawn.apps[0].start_latest);
        drawn.apps[0].start
    };
    let scenarios = [scenario("links.lte.loss=0.1"), scenario("links.lte.loss=0.2")];
    let mut starts: Vec<Duration> = (1..=20).map(|seed| start(&scenarios[0], seed)).collect();
    assert!((1..=20).zip(&starts).all(|(seed, drawn)| start(&scenarios[1], seed) == *drawn));
    starts.sort();
    assert!(starts[0] >= ms(1000) && starts[0] < ms(1500), "{starts:?}");
    assert!(starts[19] <= ms(3000) && starts[19] > ms(2500), "{starts:?}");
    starts.dedup();
    assert_eq!(starts.len(), 20);
    assert_eq!(sound(SOUND, &[]).scenario.drawn(1).apps[0].start, ms(0));
}

#[test]
fn settings_of_the_paper_are_taken() {
    let file = root().join("002/table-loss.toml");
    let none: [&str; 0] = [];
    let Experiment { scenario, cells } = Experiment::load(&file, &none, &read_file).unwrap();
    let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "k=0.1,t_dwd_ms=50",
            "k=0.1,t_dwd_ms=250",
            "k=0.1,t_dwd_ms=500",
            "k=0.5,t_dwd_ms=50",
            "k=0.5,t_dwd_ms=250",
            "k=0.5,t_dwd_ms=500",
            "k=1,t_dwd_ms=50",
            "k=1,t_dwd_ms=250",
            "k=1,t_dwd_ms=500",
        ]
    );
    for cell in &cells {
        let bond = cell.scenario.bond.as_ref().unwrap();
        let wrr = bond.scheduler.adaptive_wrr;
        assert_eq!(Toml::Float(wrr.k), cell.settings["k"]);
        assert_eq!(Toml::Integer(wrr.t_dwd_ms.into()), cell.settings["t_dwd_ms"]);
        assert_eq!((wrr.w_max, wrr.dwd_mode), (45, DwdMode::PerTdwd));
        assert_eq!((bond.order, bond.loss_detection), (Order::Bond, LossDetection::Timer));
        assert_eq!(bond.resequencer.timer, Timer::Fixed(ms(50)));
        assert!(!bond.resequencer.count_known_lost && !bond.resequencer.release_known_lost);
        let printed = scenario.paper.values.iter().filter(|value| value.at.chooses(&cell.settings));
        assert_eq!(printed.count(), 1, "{}", cell.name);
    }
    let Traffic::Udp(udp) = &scenario.apps[0].traffic else { panic!("a ramp") };
    let Shape::Ramp(ramp) = &udp.shape else { panic!("{:?}", udp.shape) };
    assert_eq!((ramp.length(), ramp.step), (scenario.duration, ms(200)));
}

#[test]
fn directions_differ_where_they_say_so() {
    let text = SOUND.replace(
        "[links.lte]\n",
        "up = { rate_mbit = 10, queue_bytes = 3000, delay_ms = [1, 3] }\n\
         down = { loss = { p_good_bad = 0.01, p_bad_good = 0.3, bad = 0.5 } }\n[links.lte]\n\
         queue = \"codel\"\nreorder = true\noutages_s = [[1, 2], [4, 4.5]]\n",
    );
    let scenario = sound(&text, &[]).scenario;
    let (up, down) = (&scenario.links["dsl"].up, &scenario.links["dsl"].down);
    assert_eq!(up.capacity, Capacity::Fixed(Rate::from_mbit(10)));
    assert_eq!((up.delay, up.jitter), (ms(1), ms(2)));
    assert_eq!(up.queue, queue(Discipline::DropTail, 3000));
    assert_eq!(down.capacity, Capacity::Fixed(Rate::from_mbit(64)));
    assert_eq!(down.queue, queue(Discipline::DropTail, 400_000));
    let ppm = Ratio::from_ppm;
    let chain = LossSpec::GilbertElliott {
        good_to_bad: ppm(10_000),
        bad_to_good: ppm(300_000),
        loss_good: ppm(0),
        loss_bad: ppm(500_000),
    };
    assert_eq!((down.loss, up.loss), (chain, LossSpec::Bernoulli(Ratio::ZERO)));
    let lte = &scenario.links["lte"].down;
    assert_eq!(lte.queue, queue(Discipline::CoDel, 7_500_000));
    assert!(lte.reorder && lte.outages.len() == 2);
    assert_eq!(lte.outages[1], Span { start: ms(4000), end: ms(4500) });
}

#[test]
fn a_link_has_what_limits_real_ones() {
    let text = SOUND.replace(
        "rtt_ms = 13\n",
        "rtt_ms = 13\nshaper = { rate_mbit = 40, burst_bytes = 9000 }\nqueue_ms = 100\n\
         up = { rate_mbit = 8, rate_steps = [[2, 4], [4, 16]], rate_repeat_s = 5, shaper = false,\n\
         queue_scales = true, queue = \"pie\", grants = { gap_ms = [10, 100] } }\n\
         down = { queue_packets = 300, aggregation = { packets = 10 } }\n",
    );
    let link = sound(&text, &[]).scenario.links["dsl"].clone();
    let (up, down) = (&link.up, &link.down);
    let mbit = Rate::from_mbit;
    let shaper = Bucket { rate: mbit(40), burst_bytes: 9000 };
    assert_eq!((down.shaper, up.shaper, down.policer), (Some(shaper), None, None));
    assert_eq!(up.queue, QueueSpec { discipline: Discipline::Pie, room: Room::Time(ms(100)) });
    let room = Room::Packets(300);
    assert_eq!(down.queue, QueueSpec { discipline: Discipline::DropTail, room });
    let Capacity::Steps { steps, mean } = &up.capacity else { panic!("{up:?}") };
    let at = |ms| steps.at(Instant::from_millis(ms)).0;
    assert_eq!([0, 2000, 4999, 5000].map(at), [8, 4, 16, 8].map(mbit));
    // 2 s at 8, 2 s at 4 and 1 s at 16 Mbit/s.
    assert_eq!((*mean, up.mean_rate(), down.capacity.mean_rate()), (mbit(8), mbit(8), mbit(64)));
    let grants = Grants { gap_min: ms(10), gap_max: ms(100), peak_percent: 400 };
    assert_eq!(up.access, Access::Granted(grants));
    let Access::Contended(aggregation) = down.access else { panic!("{down:?}") };
    assert_eq!((aggregation.packets_max, aggregation.air_max), (10, ms(4)));
    // Ten packets at 40 Mbit/s take 3 ms, and access to the medium takes 0.2 ms.
    assert_eq!(down.mean_rate(), Rate::from_bits_per_second(37_500_000));
    assert_eq!(down.longest_wait(), down.mean_rate().time_for(300 * 1600) + ms(4) + ms(3) / 10);
}

#[test]
fn a_shared_link_bounds_the_packets_of_those_behind_it() {
    let core = "[links.core]\nrate_mbit = 9\nrtt_ms = 1\nmtu = 1000\n[bond]";
    let text = SOUND
        .replace("rtt_ms = 13", "rtt_ms = 13\nthrough = \"core\"")
        .replace("[bond]", core)
        .replace("1460", "900");
    let scenario = sound(&text, &[]).scenario;
    assert_eq!(scenario.links["dsl"].through.as_deref(), Some("core"));
    assert_eq!(scenario.bond.unwrap().inner_mtu, 940);
    assert!(load(&text.replace("900", "913"), &[]).is_err());
}

#[test]
fn a_link_may_begin_from_named_conditions_and_a_trace() {
    let text = SOUND.replace("rate_mbit = 64\n", "like = \"links/a.toml\"\nqueue_ms = 10\n");
    let conditions = "title = \"A\"\ntrace = \"a.mahi\"\nrtt_ms = 99\nqueue_bytes = 7\nmtu = 1700\n\
                      up = { rate_mbit = 1, reorder = true }\n";
    let beside = [("links/a.toml", conditions), ("links/a.mahi", "5\n10\n")];
    let own = text.replace("queue_ms = 10\n", "queue_ms = 10\nup = { rate_mbit = 2 }\n");
    for (text, up_mbit) in [(&text, 1), (&own, 2)] {
        let scenario = load_beside(text, &[], &beside).unwrap().scenario;
        let link = &scenario.links["dsl"];
        assert_eq!((link.title.as_str(), link.mtu), ("A", 1700));
        let Capacity::Trace(trace) = &link.down.capacity else { panic!("{link:?}") };
        assert_eq!(trace.opportunities_ms(), [5, 10]);
        assert_eq!(link.down.queue, queue(Discipline::DropTail, 3000));
        assert_eq!(link.down.delay, ms(6) + ms(1) / 2);
        assert_eq!(link.up.capacity, Capacity::Fixed(Rate::from_mbit(up_mbit)));
        assert!(link.up.reorder && !link.down.reorder);
    }
}

#[test]
fn settings_replace_values_and_narrow_sweeps() {
    let swept = format!(
        "{SOUND}[[sweep]]\nkey = \"bond.scheduler.k\"\nvalues = [0.1, 1]\n[[sweep]]\n\
         name = \"size\"\nkey = \"app.flow.payload_bytes\"\nvalues = [100, 200]\n\
         labels = [\"small\", \"large\"]\n"
    );
    let names = |settings: &[&str]| {
        let cells = sound(&swept, settings).cells;
        cells.into_iter().map(|cell| cell.name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&[]), "k=0.1,size=small k=0.1,size=large k=1,size=small k=1,size=large");
    assert_eq!(names(&["k=2", "size=50"]), "k=2,size=50");
    assert_eq!(names(&["k=2", "size=large"]), "k=2,size=large");
    assert_eq!(names(&["bond.scheduler.k=[3.0,4]", "size=50"]), "k=3,size=50 k=4,size=50");
    let experiment = sound(
        SOUND,
        &[
            "bond.scheduler.w_max=45",
            "links.dsl.rate_mbit = 32",
            "app.flow.name=other",
            "bond.resequencer.order=none",
        ],
    );
    let bond = experiment.scenario.bond.as_ref().unwrap();
    assert_eq!((bond.scheduler.adaptive_wrr.w_max, bond.order), (45, Order::None));
    let dsl = &experiment.scenario.links["dsl"].up.capacity;
    assert_eq!(*dsl, Capacity::Fixed(Rate::from_mbit(32)));
    assert_eq!(experiment.scenario.apps[0].name, "other");
}

#[test]
fn a_sweep_may_vary_whole_sections() {
    let text = SOUND.replace("[bond.scheduler]\nalgorithm = \"adaptive-wrr\"\n", "").to_owned()
        + "[[sweep]]\nkey = \"bond.scheduler\"\nlabels = [\"wrr\", \"rtt\"]\nvalues = [\n\
           { algorithm = \"adaptive-wrr\", k = 2 }, { algorithm = \"min-rtt\" } ]\n";
    let cells = sound(&text, &[]).cells;
    let of = |cell: &Cell| {
        let scheduler = &cell.scenario.bond.as_ref().unwrap().scheduler;
        (cell.name.clone(), scheduler.algorithm)
    };
    assert_eq!(
        cells.iter().map(of).collect::<Vec<_>>(),
        [
            ("scheduler=wrr".to_owned(), Algorithm::AdaptiveWrr),
            ("scheduler=rtt".to_owned(), Algorithm::MinRtt),
        ]
    );
}

#[test]
fn every_kind_of_application_is_read() {
    let text = SOUND.to_owned()
        + "[[app]]\nname = \"a\"\nkind = \"on-off\"\nvia = \"lte\"\ntimes = \"exponential\"\n\
           rate = { shape = \"steps\", steps = [[0, 1], [2, 0]], layer = \"goodput\" }\n\
           [[app]]\nname = \"b\"\nkind = \"voip\"\ncodec = \"g729\"\ndirection = \"up\"\n\
           [[app]]\nname = \"c\"\nkind = \"web\"\nobject_bytes = [10, 20]\n\
           [[app]]\nname = \"d\"\nkind = \"tcp\"\nflows = 2\nrecovery = \"rfc6675\"\nstop_s = 5\n\
           [[app]]\nname = \"e\"\nkind = \"video\"\nkbit = 6061\nbuffer_s_max = 1\n\
           [[app]]\nname = \"f\"\nkind = \"video\"\nvia = \"mptcp\"\nprimary = \"lte\"\n\
           kbit = [500, 2000]\nabr = \"buffer\"\nbuffer_s_start = 3\nclip_s = 20\n";
    let apps = sound(&text, &[]).scenario.apps;
    let Traffic::OnOff(on_off) = &apps[1].traffic else { panic!("{:?}", apps[1]) };
    assert!(on_off.exponential && apps[1].via == Via::Link("lte".into()));
    assert_eq!(on_off.udp.shape, Shape::Steps(vec![(ms(0), 1e6), (ms(2000), 0.0)]));
    let Traffic::Voip(voip) = apps[2].traffic else { panic!("{:?}", apps[2]) };
    assert_eq!((voip.codec.payload_bytes(), voip.playout), (20, ms(200)));
    let Traffic::Web(web) = &apps[3].traffic else { panic!("{:?}", apps[3]) };
    assert_eq!((web.object_bytes, web.tcp.controller.as_str()), ((10, 20), "cubic-linux"));
    let Traffic::Tcp(tcp) = &apps[4].traffic else { panic!("{:?}", apps[4]) };
    assert_eq!((tcp.flows, tcp.tcp.recovery.as_str(), apps[4].stop), (2, "rfc6675", ms(5000)));
    let Traffic::Video(video) = &apps[5].traffic else { panic!("{:?}", apps[5]) };
    assert_eq!((video.clip, video.segment, video.mptcp.as_ref()), (ms(66_000), ms(4000), None));
    // What is not said stays below the buffer's most.
    assert_eq!((video.start, video.resume, video.buffer_max), (ms(1000), ms(1000), ms(1000)));
    let Traffic::Video(video) = &apps[6].traffic else { panic!("{:?}", apps[6]) };
    assert_eq!((video.start, video.resume, video.buffer_max), (ms(3000), ms(3000), ms(10_000)));
    assert_eq!((video.qualities.len(), video.abr), (2, super::super::video::AbrName::Buffer));
    let primary = video.mptcp.as_ref().map(|mptcp| mptcp.primary.as_str());
    assert_eq!((primary, apps[6].subflow_links().count()), (Some("lte"), 2));
}

#[test]
fn a_sweep_without_a_key_merges_settings() {
    let text = format!(
        "{SOUND}[[sweep]]\nname = \"way\"\nlabels = [\"bond\", \"dsl\"]\nvalues = [\n\
         {{}},\n{{ app.flow.via = \"dsl\", links.dsl.rtt_ms = 50 }},\n]\n\
         [[figure]]\nname = \"of_bond_percent\"\nmetric = \"goodput_mbit\"\n\
         to = {{ way = \"bond\" }}\n"
    );
    let experiment = load(&text, &[]).unwrap_or_else(|errors| panic!("\n{}", words(&errors)));
    let [bond, dsl] = experiment.cells.as_slice() else { panic!("two values are two cells") };
    assert_eq!((bond.name.as_str(), dsl.name.as_str()), ("way=bond", "way=dsl"));
    assert_eq!(bond.scenario.apps[0].via, app::Via::Bond);
    assert_eq!(dsl.scenario.apps[0].via, app::Via::Link("dsl".into()));
    let delay = |cell: &Cell| cell.scenario.links["dsl"].down.delay;
    assert_eq!((delay(bond), delay(dsl)), (Duration::from_micros(6500), Duration::from_millis(25)));
    assert_eq!(dsl.scenario.links["dsl"].down.capacity, bond.scenario.links["dsl"].down.capacity);
    assert_eq!(experiment.scenario.figures.len(), 1);
    let one = load(&text, &["way=dsl"]).unwrap_or_else(|errors| panic!("\n{}", words(&errors)));
    assert_eq!((one.cells.len(), &one.cells[0].scenario.apps), (1, &dsl.scenario.apps));
}

const BASE: &str = r#"title = "Base"
source = "chosen"
duration_s = 20
carriers = ["bond", "alone", "bare:lte", "mptcp"]
[links.lte]
rate_mbit = 60
rtt_ms = 40
[[app]]
name = "ping"
kind = "udp"
probe = true
rate = { mbit = 0.1, layer = "offered" }
[[app]]
name = "flow"
kind = "tcp"
[[check]]
name = "first"
metric = "of_best_alone"
source = "s"
"#;
const OWN: &str = r#"like = "base.toml"
name = "x"
duration_s = 30
[links.dsl]
rate_mbit = 16
rtt_ms = 20
[links.lte]
rate_mbit = 30
rtt_ms = 50
[bond]
[app.flow]
flows = 4
start_s = { step_s = 0.5, steps = 3 }
[[check]]
name = "second"
metric = "of_mptcp"
source = "s"
[[event]]
at_s = [5, 6]
action = "cut"
link = "dsl"
for_s = 2
[[event]]
at_s = 10
action = "rate"
link = "lte"
share = 0.1
[[event]]
at_s = 12
action = "stop"
app = "ping"
[[event]]
at_s = 3
action = "restart"
gateway = "customer"
"#;

fn own_over_base() -> Experiment {
    let none: [&str; 0] = [];
    let loaded = load_beside(OWN, &none, &[("base.toml", BASE)]);
    loaded.unwrap_or_else(|errors| panic!("\n{}", words(&errors)))
}

#[test]
fn what_stands_in_a_file_goes_over_what_it_is_like() {
    let Experiment { scenario, .. } = own_over_base();
    assert_eq!((scenario.title.as_str(), scenario.duration), ("Base", ms(30_000)));
    let mbit = |link: &str| scenario.links[link].down.mean_rate().bits_per_second() / 1_000_000;
    assert_eq!((mbit("dsl"), mbit("lte")), (16, 30));
    let names: Vec<&str> = scenario.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    let app::Traffic::Tcp(tcp) = &scenario.apps[1].traffic else { panic!("a flow of TCP") };
    assert_eq!((tcp.flows, scenario.apps[0].probe), (4, true));
}

#[test]
fn each_carrier_is_a_cell_with_what_it_needs() {
    let Experiment { cells, .. } = own_over_base();
    let told: Vec<String> = cells
        .iter()
        .map(|Cell { name, scenario, .. }| {
            let links: Vec<&str> = scenario.links.keys().map(String::as_str).collect();
            let via = scenario.apps.iter().map(|app| format!("{:?}", app.via));
            let bond = scenario.bond.as_ref().map(|bond| bond.links.join("+"));
            format!("{name}: {} {:?} {bond:?}", links.join("+"), via.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(
        told,
        [
            r#"carrier=bond: dsl+lte ["Bond", "Bond"] Some("dsl+lte")"#,
            r#"carrier=alone:dsl: dsl ["Bond", "Bond"] Some("dsl")"#,
            r#"carrier=alone:lte: lte ["Bond", "Bond"] Some("lte")"#,
            r#"carrier=bare:lte: lte ["Link(\"lte\")", "Link(\"lte\")"] None"#,
            r#"carrier=mptcp: dsl+lte ["Link(\"dsl\")", "Mptcp"] None"#,
        ]
    );
}

#[test]
fn a_setting_replaces_the_list_of_carriers() {
    let loaded = load_beside(OWN, &["carriers=[\"bare\"]"], &[("base.toml", BASE)]);
    // The file's checks mention the bond, which is not among the carriers here.
    let cells = loaded.unwrap_or_else(|errors| panic!("\n{}", words(&errors))).cells;
    let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names, ["carrier=bare:dsl", "carrier=bare:lte"]);
}

#[test]
fn events_become_part_of_the_course_that_a_seed_draws() {
    let Experiment { scenario, .. } = own_over_base();
    let drawn = scenario.drawn(4);
    let outages = &drawn.links["dsl"].down.outages;
    let cut = outages[0];
    assert_eq!((outages.len(), cut.end - cut.start), (1, ms(2000)));
    assert!((ms(5000)..=ms(6000)).contains(&cut.start), "{cut:?}");
    assert_ne!(outages, &scenario.drawn(5).links["dsl"].down.outages);
    let link::Capacity::Steps { steps, .. } = &drawn.links["lte"].up.capacity else {
        panic!("a rate that changes")
    };
    let rates: Vec<_> =
        steps.steps().iter().map(|(at, rate)| (*at, rate.bits_per_second())).collect();
    assert_eq!(rates, [(ms(10_000), 3_000_000)]);
    assert_eq!((drawn.apps[0].stop, drawn.apps[1].start), (ms(12_000), ms(500)));
    let left: Vec<&Action> = drawn.events.iter().map(|event| &event.action).collect();
    assert_eq!(left, [&Action::Restart(event::Gateway::Customer)]);
}

#[test]
fn a_bond_stands_beside_the_medians_of_the_others() {
    let result = |carrier: &str, seed: u64, mbit: f64| CellResult {
        cell: carrier.into(),
        settings: Settings::from([("carrier".into(), carrier.into())]),
        seed,
        metrics: [("load_mbit".to_owned(), mbit)].into(),
        series: [].into(),
    };
    let mut results = vec![
        result("bond", 1, 27.0),
        result("alone:dsl", 1, 10.0),
        result("alone:dsl", 2, 11.0),
        result("alone:dsl", 3, 99.0),
        result("alone:lte", 1, 18.0),
        result("mptcp", 1, 30.0),
    ];
    carrier::compare(&mut results);
    let of = |name: &str| results[0].metrics.get(name).copied();
    assert_eq!(of("of_best_alone"), Some(1.5));
    assert_eq!(of("of_sum_alone"), Some(27.0 / 29.0));
    assert_eq!(of("benefit_alone"), Some(9.0 / 11.0));
    assert_eq!((of("of_mptcp"), of("of_best_bare")), (Some(0.9), None));
    assert!(results[1..].iter().all(|result| result.metrics.len() == 1));
    results.extend([
        result("bare:dsl", 1, 11.0),
        result("bare:lte", 1, 20.0),
        result("at-once", 1, 30.0),
    ]);
    carrier::compare(&mut results);
    // Framing takes a tenth: of 30 at once 27 are left.
    let of = |name: &str| results[0].metrics.get(name).copied();
    assert_eq!((of("of_at_once"), of("of_better")), (Some(0.9), Some(1.0)));
    let mut excess = |own: f64, mptcp: f64| {
        for (at, excess_ms) in [(0, own), (5, mptcp)] {
            results[at].metrics.insert("probe_excess_ms".into(), excess_ms);
        }
        carrier::compare(&mut results);
        results[0].metrics["excess_of_mptcp"]
    };
    assert_eq!(excess(30.0, 40.0), 0.75);
    assert_eq!(excess(5.0, 2.0), 0.5, "5 ms are always good");
}

#[test]
fn at_once_an_application_runs_on_each_link() {
    let text = r#"name = "x"
title = "t"
source = "s"
duration_s = 30
carriers = ["at-once"]
[bond]
[links.dsl]
rate_mbit = 16
rtt_ms = 20
[links.lte]
rate_mbit = 30
rtt_ms = 50
[[app]]
name = "flow"
kind = "tcp"
[[app]]
name = "call"
kind = "udp"
via = "dsl"
rate = { mbit = 0.1, layer = "offered" }
"#;
    let Experiment { cells, .. } = sound(text, &[]);
    let apps = cells[0].scenario.apps.iter();
    let ways: Vec<_> = apps.map(|app| (app.name.as_str(), app.via.clone())).collect();
    let on = |link: &str| Via::Link(link.to_owned());
    let all = [("flow-dsl", on("dsl")), ("flow-lte", on("lte")), ("call", on("dsl"))];
    assert_eq!(ways, all);
}
