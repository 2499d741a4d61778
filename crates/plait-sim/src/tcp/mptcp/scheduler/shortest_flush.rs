//! Upstream Linux's `default` scheduler: the subflow that would be through first with what its
//! buffer holds, at its pacing rate, gets the next 64 kB. `docs/algorithms/shortest-flush.md`.

use plait_proto::units::Rate;

use super::{ConnectionView, Decision, Scheduler, SubflowView};

/// MPTCP_SEND_BURST_SIZE: 64 KiB less the longest headers.
const BURST_BYTES: u64 = 65_428;

#[derive(Debug, Default)]
pub(super) struct ShortestFlush {
    /// By subflow: the pacing rate, averaged over what was queued; zero before it carried data.
    rates: Vec<Rate>,
}

/// Bytes over a rate, as the kernel compares them: in units of 2^-32 s.
fn linger(memory_bytes: u64, rate: Rate) -> u128 {
    (u128::from(memory_bytes) << 32) / u128::from((rate.bits_per_second() / 8).max(1))
}

impl ShortestFlush {
    /// Of active subflows or of backups the one with the shortest time to flush.
    fn shortest(&self, subflows: &[SubflowView], backups: bool) -> Option<usize> {
        let alike = subflows
            .iter()
            .enumerate()
            .filter(|(_, subflow)| subflow.is_usable && subflow.is_backup == backups);
        let paced = alike.filter(|(at, _)| self.rates[*at] > Rate::ZERO);
        let least = paced.min_by_key(|(at, view)| linger(view.memory_bytes, self.rates[*at]));
        least.map(|(at, _)| at)
    }

    /// A mean of the known rate, weighted by what is queued, and of the latest by the burst.
    fn average(&mut self, at: usize, view: &SubflowView, burst: u64) {
        let weighted =
            |rate: Rate, bytes: u64| u128::from(rate.bits_per_second()) * u128::from(bytes);
        let sum = weighted(self.rates[at], view.memory_bytes) + weighted(view.pacing_rate, burst);
        let mean = sum / u128::from(view.memory_bytes + burst);
        self.rates[at] = Rate::from_bits_per_second(u64::try_from(mean).unwrap_or(u64::MAX));
    }
}

impl Scheduler for ShortestFlush {
    fn pick(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> Decision {
        self.rates.resize(subflows.len(), Rate::ZERO);
        for (rate, view) in self.rates.iter_mut().zip(subflows) {
            if *rate == Rate::ZERO && view.is_usable {
                *rate = view.pacing_rate;
            }
        }
        let has_active = subflows.iter().any(|view| view.is_usable && !view.is_backup);
        let shortest = self.shortest(subflows, !has_active);
        let burst = BURST_BYTES.min(connection.room_bytes);
        match shortest.filter(|at| subflows[*at].has_memory() && burst > 0) {
            Some(subflow) => {
                self.average(subflow, &subflows[subflow], burst);
                Decision::Send { subflow, bytes: burst }
            }
            None => Decision::Wait,
        }
    }

    fn fills_buffers(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connection, subflow};
    use super::*;

    fn with_memory(view: SubflowView, memory_bytes: u64) -> SubflowView {
        SubflowView { memory_bytes, ..view }
    }

    #[test]
    fn the_shortest_time_to_flush_wins_whatever_the_round_trip() {
        let burst = |subflow| Decision::Send { subflow, bytes: 65_428 };
        // 500 kB/s and 100 kB/s.
        let (quick, slow) = (subflow(20, 10), subflow(100, 10));
        for (memory, expected) in [
            ([0, 1], burst(0)),
            ([50_000, 9_000], burst(1)),
            ([50_000, 11_000], burst(0)),
            ([87_039, 20_000], burst(0)),
            // The shortest has no memory left: nothing is handed to the other either.
            ([87_040, 20_000], Decision::Wait),
        ] {
            let subflows = [with_memory(quick, memory[0]), with_memory(slow, memory[1])];
            let picked = ShortestFlush::default().pick(&connection(900), &subflows);
            assert_eq!(picked, expected, "{memory:?}");
        }
    }

    #[test]
    fn the_burst_ends_with_the_window() {
        let pick = |room_bytes| {
            let connection = ConnectionView { room_bytes, ..connection(900) };
            ShortestFlush::default().pick(&connection, &[subflow(20, 10)])
        };
        assert_eq!(pick(3000), Decision::Send { subflow: 0, bytes: 3000 });
        assert_eq!(pick(0), Decision::Wait);
    }

    #[test]
    fn the_rate_follows_slowly_while_much_is_queued() {
        let mut scheduler = ShortestFlush::default();
        let mbit = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000);
        let view = SubflowView { pacing_rate: mbit(8), ..with_memory(subflow(20, 10), 65_428) };
        scheduler.pick(&connection(900), &[view]);
        let view = SubflowView { pacing_rate: mbit(16), ..view };
        scheduler.pick(&connection(900), &[view]);
        assert_eq!(scheduler.rates, [mbit(12)], "half of both");
        let view = with_memory(view, 0);
        scheduler.pick(&connection(900), &[view]);
        assert_eq!(scheduler.rates, [mbit(16)]);
    }
}
