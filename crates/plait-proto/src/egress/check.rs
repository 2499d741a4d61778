//! Stage 4, check: the inner source (`allowed_ips`), marks of routers, and the MSS of SYNs
//! (`wire`).

use super::Egress;
use crate::allowed_ips::Sources;
use crate::drop_reason::DropReason;
use crate::wire::ecn::{self, Ecn};
use crate::wire::ip::Inner;
use crate::wire::mss;

impl Egress {
    /// Gives the packet as the host is to have it. A refused one still takes its place in the
    /// sequence, as an empty one.
    pub(super) fn check<'a>(
        &mut self,
        outer: Ecn,
        sources: Sources<'_>,
        packet: &'a mut [u8],
    ) -> &'a [u8] {
        let allowed = Inner::read(packet)
            .ok_or(DropReason::BadInnerPacket)
            .and_then(|inner| sources.check(&inner).map(|()| inner.protocol));
        ecn::decapsulate(packet, outer);
        if allowed == Ok(mss::TCP) {
            mss::clamp(packet, self.inner_mtu);
        }
        match allowed {
            Ok(_) => packet,
            Err(reason) => {
                self.drops.count(reason);
                &[]
            }
        }
    }
}
