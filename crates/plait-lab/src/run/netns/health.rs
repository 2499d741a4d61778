//! Checks whether the machine kept up: a run that it spoiled must not give figures.

use std::time::Duration;

use anyhow::Result;
use plait_net::netns::NetNs;

use super::error::NetnsError;
use super::site::Site;
use crate::emulator::{LATE_P99_MAX, Lateness, LatenessSummary, VERY_LATE, VERY_LATE_SHARE_MAX};
use crate::measure::counters;

/// The largest 99th percentile of an ordinary thread's oversleeping: gateways are ordinary threads.
const ORDINARY_P99_MAX: Duration = Duration::from_millis(10);
/// The largest share of the links' packets that devices and sockets may lose, and a number that is
/// always allowed.
const LOST_SHARE_MAX: f64 = 1e-4;
const LOST_PACKETS_FREE: u64 = 10;
/// From this share on, time taken by a virtual machine's host is a likely cause.
const STOLEN_WORTH_A_WORD: f64 = 0.005;

/// Observations of the machine during a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    /// Lateness of the emulated links.
    pub(super) links: Lateness,
    /// Lateness of the UDP senders.
    pub(super) senders: Lateness,
    /// Lateness of an ordinary thread that sleeps.
    pub(super) ordinary: Lateness,
    /// Packets that devices and sockets dropped.
    pub(super) lost_packets: u64,
    /// The share of processor time that a virtual machine's host took away.
    pub(super) cpu_stolen: f64,
}

impl Health {
    /// Reports observations beyond the bounds.
    pub(super) fn check(&self) -> Result<(), NetnsError> {
        let mut seen = Vec::new();
        for (who, lateness, p99_max) in [
            ("emulated links released", &self.links, LATE_P99_MAX),
            ("UDP senders sent", &self.senders, LATE_P99_MAX),
            ("other programs ran", &self.ordinary, ORDINARY_P99_MAX),
        ] {
            let LatenessSummary { p99_us, .. } = lateness.summary();
            if u128::from(p99_us) > p99_max.as_micros() {
                let (late, most) = (p99_us as f64 / 1e3, p99_max.as_millis());
                seen.push(format!("{who} 1 % at least {late:.1} ms late (allowed: {most} ms)"));
            }
        }
        for (who, lateness) in
            [("emulated links released", &self.links), ("UDP senders sent", &self.senders)]
        {
            let share = lateness.share_above(VERY_LATE);
            if share > VERY_LATE_SHARE_MAX {
                let (percent, most) = (share * 1e2, VERY_LATE_SHARE_MAX * 1e2);
                let late = VERY_LATE.as_millis();
                seen.push(format!(
                    "{who} {percent:.2} % more than {late} ms late (allowed: {most} %)"
                ));
            }
        }
        let packets = self.links.summary().packets;
        let most = ((packets as f64 * LOST_SHARE_MAX) as u64).max(LOST_PACKETS_FREE);
        if self.lost_packets > most {
            let lost = self.lost_packets;
            seen.push(format!("devices and sockets lost {lost} packets (allowed: {most})"));
        }
        if seen.is_empty() {
            return Ok(());
        }
        if self.cpu_stolen > STOLEN_WORTH_A_WORD {
            let percent = self.cpu_stolen * 1e2;
            seen.push(format!("its host took away {percent:.1} % of the processors' time"));
        }
        Err(NetnsError::TooSlow { seen: seen.join("; ") })
    }

    /// For people.
    pub(super) fn describe(&self) -> String {
        let [links, senders, ordinary] =
            [&self.links, &self.senders, &self.ordinary].map(|l| l.summary().p99_us as f64 / 1e3);
        format!(
            "99 % of the links' releases within {links:.2} ms, of the UDP senders' within \
             {senders:.2} ms, of an ordinary thread's within {ordinary:.2} ms; {} packets lost by \
             devices and sockets",
            self.lost_packets
        )
    }
}

/// Packets that the devices and UDP sockets of all namespaces have dropped so far.
pub(super) fn lost_by_kernel(site: &Site) -> Result<u64> {
    [&site.customer, &site.provider, &site.server].into_iter().map(lost_in).sum()
}

fn lost_in(netns: &NetNs) -> Result<u64> {
    let tables = netns.run_in(|| {
        ["dev", "snmp"]
            .map(|table| std::fs::read_to_string(format!("/proc/thread-self/net/{table}")))
    })?;
    let [devices, snmp] = tables;
    Ok(lost_by_devices(&devices?) + lost_by_sockets(&snmp?))
}

/// The drops in a table like proc_pid_net(5), `dev`: of receiving and of sending.
fn lost_by_devices(table: &str) -> u64 {
    let lines = table.lines().filter_map(|line| line.split_once(':'));
    let drops = lines.map(|(_, counts)| {
        let counts: Vec<u64> = counts.split_whitespace().flat_map(str::parse).collect();
        [3, 11].iter().filter_map(|at| counts.get(*at)).sum::<u64>()
    });
    drops.sum()
}

/// The datagrams in a table like `/proc/net/snmp` for which a UDP socket had no room.
fn lost_by_sockets(table: &str) -> u64 {
    let fields = counters(table, "Udp");
    let drops = fields.filter(|(name, _)| ["RcvbufErrors", "SndbufErrors"].contains(name));
    drops.map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(times: u32, late: Duration) -> Lateness {
        let mut lateness = Lateness::default();
        (0..times).for_each(|_| lateness.record(late));
        lateness
    }

    #[test]
    fn a_machine_that_keeps_up_is_trusted() {
        let us = Duration::from_micros;
        let links = late(1000, us(300));
        let mut health = Health { links, ordinary: late(100, us(5000)), ..Health::default() };
        health.lost_packets = LOST_PACKETS_FREE;
        assert_eq!(health.check(), Ok(()));
    }

    #[test]
    fn each_bound_is_told_with_what_was_seen() {
        let ms = Duration::from_millis;
        let base = Health { links: late(1000, ms(1)), ..Health::default() };
        let mut very_late = late(996, ms(1));
        very_late.add(&late(4, ms(11)));
        for (health, expected) in [
            (
                Health { links: late(9, ms(3)), ..base.clone() },
                "links released 1 % at least 3.0 ms",
            ),
            (Health { senders: late(9, ms(3)), ..base.clone() }, "UDP senders sent 1 % at least"),
            (Health { ordinary: late(9, ms(12)), ..base.clone() }, "other programs ran 1 %"),
            (Health { senders: very_late, ..base.clone() }, "0.40 % more than 10 ms late"),
            (Health { lost_packets: 11, ..base }, "lost 11 packets (allowed: 10)"),
        ] {
            let error = health.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn stolen_time_is_told_as_a_cause() {
        let health = Health { lost_packets: 11, cpu_stolen: 0.1, ..Health::default() };
        let error = health.check().unwrap_err().to_string();
        assert!(error.contains("its host took away 10.0 %"), "{error}");
        assert_eq!(Health { cpu_stolen: 0.1, ..Health::default() }.check(), Ok(()));
    }

    #[test]
    fn drops_are_counted_in_both_tables() {
        let devices = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame \
                       compressed multicast|bytes packets errs drop fifo colls carrier compressed\n\
                       link0: 10 1 0 2 0 0 0 0 20 2 0 5 0 0 0 0\n    \
                       lo: 0 0 0 0 0 0 0 0 0 0 0 1 0\n";
        assert_eq!(lost_by_devices(devices), 8);
        let snmp = "Udp: InDatagrams NoPorts RcvbufErrors SndbufErrors\nUdp: 7 1 3 4\n";
        assert_eq!(lost_by_sockets(snmp), 7);
    }
}
