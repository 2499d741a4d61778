// SPDX-License-Identifier: MIT OR Apache-2.0
// LIA, the Linked Increases Algorithm (RFC 6356; docs/algorithms/lia.md).

#ifndef PLAIT_CORE_LIA_H
#define PLAIT_CORE_LIA_H

#include "flows.h"
#include "window.h"

struct cc_lia {
    struct cc_window window;
};

CC_INLINE void lia_init(struct cc_lia *cc, cc_u32 units)
{
    cc_window_init(&cc->window, units);
}

// Segments per window acknowledged: the own share of the rates, times the best of a flow's share
// over its round-trip time in own round-trip times; one at most.
CC_INLINE cc_s64 lia_gain(const struct cc_flows *flows)
{
    struct cc_share share;
    cc_u64 gain;

    cc_share_of(flows, &share);
    if (share.quickest < 1ull << 33)
        gain = share.own * share.quickest >> CC_GAIN_SHIFT;
    else
        gain = share.own * (share.quickest >> 21) >> (CC_GAIN_SHIFT - 21);
    return gain < CC_GAIN_ONE ? (cc_s64)gain : CC_GAIN_ONE;
}

CC_INLINE void lia_ack(struct cc_lia *cc, const struct cc_ack *ack, struct cc_flows *flows)
{
    cc_u32 acked = cc_slow_start(&cc->window, ack);

    if (acked == 0)
        return;
    // What is left of an acknowledgement that ended slow start finds the window that this left.
    flows->flow[0].window = cc->window.units;
    cc_grow(&cc->window, acked, lia_gain(flows));
}

CC_INLINE void lia_reduce(struct cc_lia *cc, cc_u32 flight)
{
    cc_reduce(&cc->window, cc_min(flight, cc->window.units) / 2);
}

#endif
