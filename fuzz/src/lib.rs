//! Fuzz targets: functions of any bytes that assert what must hold whatever the bytes are.
//!
//! Each target is one module and a pure function of its input, so that a failing input fails again.
//! `tests/seeded.rs` runs them on stable Rust, `libfuzzer/` under libFuzzer. [`input`] turns bytes
//! into decisions; [`pair`] joins two endpoints in memory.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bond_ops;
pub mod dida_ops;
pub mod fq_codel_ops;
pub mod input;
pub mod open_datagram;
pub mod pair;
pub mod resequencer_ops;
pub mod steer_ops;
pub mod tun_segment;
pub mod wire_parse;

pub use bond_ops::bond_ops;
pub use dida_ops::dida_ops;
pub use fq_codel_ops::fq_codel_ops;
pub use open_datagram::open_datagram;
pub use resequencer_ops::resequencer_ops;
pub use steer_ops::steer_ops;
pub use tun_segment::tun_segment;
pub use wire_parse::wire_parse;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: [(&str, Target); 8] = [
    ("wire_parse", wire_parse),
    ("open_datagram", open_datagram),
    ("bond_ops", bond_ops),
    ("resequencer_ops", resequencer_ops),
    ("fq_codel_ops", fq_codel_ops),
    ("tun_segment", tun_segment),
    ("steer_ops", steer_ops),
    ("dida_ops", dida_ops),
];
