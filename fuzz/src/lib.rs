//! Fuzz targets: functions of any bytes that assert what must hold whatever the bytes are.
//!
//! Each target is one module and a pure function of its input, so that a failing input fails again.
//! `tests/seeded.rs` runs them on stable Rust, `libfuzzer/` under libFuzzer. [`input`] turns bytes
//! into decisions; [`pair`] makes the two gateways that targets drive; [`reached`] remembers what
//! the targets came to.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bond_ops;
pub mod capture_split;
pub mod dida_ops;
pub mod fq_codel_ops;
pub mod hostile_peer;
pub mod input;
pub mod open_datagram;
pub mod pair;
pub mod proxy_parse;
pub mod reached;
pub mod resequencer_ops;
pub mod seeded;
pub mod steer_ops;
pub mod tun_segment;
pub mod wire_parse;

pub use bond_ops::bond_ops;
pub use capture_split::capture_split;
pub use dida_ops::dida_ops;
pub use fq_codel_ops::fq_codel_ops;
pub use hostile_peer::hostile_peer;
pub use open_datagram::open_datagram;
pub use proxy_parse::proxy_parse;
pub use resequencer_ops::resequencer_ops;
pub use steer_ops::steer_ops;
pub use tun_segment::tun_segment;
pub use wire_parse::wire_parse;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// Every target, and how it is run on stable Rust.
pub const PLANS: [seeded::Plan; 11] = [
    plan("wire_parse", wire_parse, 200_000, 400),
    plan("open_datagram", open_datagram, 300, 600),
    plan("bond_ops", bond_ops, 250, 200),
    plan("hostile_peer", hostile_peer, 200, 200),
    plan("resequencer_ops", resequencer_ops, 4000, 1000),
    plan("fq_codel_ops", fq_codel_ops, 4000, 1000),
    plan("tun_segment", tun_segment, 20_000, 500),
    plan("steer_ops", steer_ops, 4000, 1000),
    plan("dida_ops", dida_ops, 4000, 1000),
    plan("proxy_parse", proxy_parse, 100_000, 400),
    plan("capture_split", capture_split, 60_000, 600),
];

const fn plan(name: &'static str, target: Target, cases: u64, bytes_max: usize) -> seeded::Plan {
    seeded::Plan { name, target, cases, bytes_max }
}
