//! Datagrams through tshark with plait's dissector.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::process;
use crate::scratch::Scratch;

const DISSECTOR: &str = include_str!("../../../../../../contrib/wireshark/plait.lua");
/// Opening ten thousand datagrams in Lua takes a minute.
const LIMIT: Duration = Duration::from_secs(600);
/// What is asked of each datagram, in this order.
const FIELDS: [&str; 8] = [
    "plait.type",
    "plait.frame",
    "plait.cipher",
    "plait.unknown",
    "plait.malformed",
    "plait.no_key",
    "plait.bad_tag",
    "_ws.malformed",
];

/// What tshark says of a datagram.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Dissected {
    /// 1 to 5; `None` when it was not taken for one of plait's.
    pub(super) kind: Option<u8>,
    pub(super) frames: Vec<u8>,
    /// Whether it was opened.
    pub(super) opened: bool,
    /// Whether a byte of it has no name.
    pub(super) unknown: bool,
    pub(super) malformed: bool,
    pub(super) no_key: bool,
    pub(super) bad_tag: bool,
}

/// Dissects whole IP packets with the keys of a log.
pub(super) fn dissect(
    scratch: &Scratch,
    key_log: &Path,
    packets: &[Vec<u8>],
) -> Result<Vec<Dissected>> {
    let place = |name: &str| scratch.path().join(name);
    fs::write(place("plait.lua"), DISSECTOR)?;
    fs::write(place("captured.pcap"), pcap(packets))?;
    let mut command = std::process::Command::new("tshark");
    command
        .env("HOME", scratch.path())
        .env("PLAIT_KEYLOG", key_log)
        .arg("-X")
        .arg(format!("lua_script:{}", place("plait.lua").display()))
        .arg("-r")
        .arg(place("captured.pcap"))
        .args(["-T", "fields", "-E", "separator=|", "-E", "occurrence=a"]);
    FIELDS.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let text = process::run(&mut command, "", LIMIT)
        .context("tshark is needed: scripts/setup --observe, or apt-get install tshark")?;
    let dissected: Vec<_> = text.lines().map(read).collect::<Result<_>>()?;
    ensure!(dissected.len() == packets.len(), "tshark tells of {} packets", dissected.len());
    Ok(dissected)
}

fn read(line: &str) -> Result<Dissected> {
    let values: Vec<&str> = line.split('|').collect();
    let [kind, frames, cipher, unknown, malformed, no_key, bad_tag, ws] = values[..] else {
        anyhow::bail!("tshark says {line:?}");
    };
    let numbers = |text: &str| -> Result<Vec<u8>> {
        let numbers = text.split(',').filter(|number| !number.is_empty());
        numbers.map(|number| number.parse().with_context(|| line.to_owned())).collect()
    };
    Ok(Dissected {
        kind: numbers(kind)?.first().copied(),
        frames: numbers(frames)?,
        opened: !cipher.is_empty(),
        unknown: !unknown.is_empty(),
        malformed: !malformed.is_empty() || !ws.is_empty(),
        no_key: !no_key.is_empty(),
        bad_tag: !bad_tag.is_empty(),
    })
}

/// A file of captured packets, without link headers: the format of libpcap, a millisecond apart.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    const LINKTYPE_RAW: u32 = 101;
    let mut file = Vec::new();
    let mut put = |number: u32| file.extend(number.to_le_bytes());
    put(0xa1b2_c3d4);
    // Version 2.4.
    put(2 | 4 << 16);
    [0, 0, 262_144, LINKTYPE_RAW].into_iter().for_each(&mut put);
    for (at, packet) in (0..).zip(packets) {
        let length = packet.len() as u32;
        for number in [at / 1000, at % 1000 * 1000, length, length] {
            file.extend(u32::to_le_bytes(number));
        }
        file.extend(packet);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_packets_are_framed() {
        let read = |line| read(line).unwrap();
        assert_eq!(read("1|||||||"), Dissected { kind: Some(1), ..Dissected::default() });
        let control = read("5|6,4|0|||||");
        assert_eq!((control.frames, control.opened), (vec![6, 4], true));
        let wrong = read("5|||00|1||1|");
        assert!(wrong.unknown && wrong.malformed && wrong.bad_tag && !wrong.no_key);
        assert!(super::read("5|").is_err());
        let file = pcap(&[vec![0x45; 3]]);
        assert_eq!((file.len(), &file[24 + 16..]), (24 + 16 + 3, &[0x45; 3][..]));
    }
}
