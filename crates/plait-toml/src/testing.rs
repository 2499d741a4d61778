//! For tests: sections with random values.

use std::fmt::Debug;
use std::path::Path;

use crate::option::{Options, read, write};
use crate::{Place, Problems, Section};

/// Random numbers (splitmix64).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// From 0 to `high`.
    pub fn up_to(&mut self, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % high.saturating_add(1)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let spread = high.abs_diff(low);
        let ends = [low, high];
        match self.up_to(5) {
            end @ 0..=1 => ends[end as usize],
            _ => low.wrapping_add_unsigned(self.up_to(spread)),
        }
    }

    /// The parsed value of a random text that the option of this name may have.
    pub fn text_of<T>(&mut self, name: &str, read: fn(&str) -> Result<T, crate::Problem>) -> T {
        let texts: &[&'static str] = match name {
            "tun" | "interface" | "interfaces" => &["plait0", "a-b.c_d", "wan@if2"],
            "user" => &["plait", "a.b-c_d"],
            "address" if read("192.0.2.1:1").is_ok() => &["192.0.2.1:1", "[::]:3128"],
            "address" => &["10.99.0.2/24", "192.168.7.1/32", "10.1.0.1", "fd99::2", "fd99::2/64"],
            "metrics" => &["127.0.0.1:9788", "[::1]:9788"],
            "address6" => &["fd99::2", "2001:db8::1"],
            "ports_to" | "ports" => &["443", "8000-8100"],
            "allow" | "deny_to" | "allow_to" | "networks" | "exempt" => &["10.0.0.0/8", "::/0"],
            "allowed_ips" | "block_allows" => &["0.0.0.0/0", "10.0.0.7/8", "fd99::1", "::/0"],
            "endpoint" => &["192.0.2.1:7788", "[2001:db8::1]:1", "gw.example.net:7788"],
            "sources" | "destinations" => &["192.168.7.20", "fd99:7::/64", "10.0.0.7/8"],
            "domains" => &["bank.example", "a-b.c_d", ".", "lan"],
            "over" => &["eth0", "mac:02:00:00:00:00:01", "bus:1-1.4"],
            "link" => &["mac:0a:00:00:00:00:01", "bus:0000:00:1f.6"],
            "on" => &["path-up", "path-down", "quota-spent", "peer-new"],
            "webhook" => &["http://127.0.0.1:8080/plait", "http://[::1]/?x"],
            "repairs" => &["ssthresh", "delay", "rtt-max"],
            "to" => &["192.168.7.20", "192.168.7.20:8443", "[fd99:7::20]:8443"],
            "gateway" => &["10.4.0.2", "fd04::2"],
            "prefixes" => &["192.168.7.1/24", "fd99:7::1/64"],
            "dns" | "servers" => &["192.0.2.53", "2001:db8::53"],
            _ => &["a", "a folder/with \"quotes\" and \\", "ü # ="],
        };
        let mut read: Vec<T> = texts.iter().filter_map(|text| read(text).ok()).collect();
        read.swap_remove(self.up_to(read.len() as u64 - 1) as usize)
    }
}

/// Gives every option that takes effect a random value, writes the section and reads it again.
pub fn round_trip<C>(seed: u64, options: Options<C>, default: C)
where
    C: Clone + Default + PartialEq + Debug,
{
    let mut random = Random(seed);
    let mut of = default.clone();
    for option in options {
        let acts = option.only().is_none_or(|only| (only.against)(&of).is_none());
        if acts {
            option.vary(&mut of, &mut random);
        }
    }
    let mut text = String::new();
    write(&mut text, "[a]", options, &of);
    let table = crate::tree::parse(Path::new("x.toml"), &text).unwrap();
    let problems = Problems::default();
    let mut top = Section::top(&problems, Place::File(Path::new("x.toml").into()), &table);
    let mut section = top.single("a");
    let mut again = default.clone();
    read(options, &mut section, &mut again);
    section.finish();
    let again = problems.finish(Some(again)).map_err(|errors| format!("{errors}\n{text}"));
    assert_eq!(again.as_ref(), Ok(&of), "{text}");
}
