// SPDX-License-Identifier: MIT OR Apache-2.0
// What the coupled controllers see of a connection: its flows with their windows and round-trip
// times.

#ifndef PLAIT_CORE_FLOWS_H
#define PLAIT_CORE_FLOWS_H

#include "base.h"

#define CC_FLOWS_MAX 8
#define CC_RTT_US_MAX (1u << 24)

struct cc_flow {
    // In units.
    cc_u32 window;
    // Zero while unknown: such a flow is left out.
    cc_u32 rtt_us;
    // Units between losses.
    cc_u64 loss_gap;
};

// A connection; the own flow is the first.
struct cc_flows {
    struct cc_flow flow[CC_FLOWS_MAX];
};

// How the own flow stands among the others, in units of 2^-30.
struct cc_share {
    // The own rate, and the largest, over the sum of all.
    cc_u64 own;
    cc_u64 fastest;
    // The largest of a flow's share over its round-trip time, times the own round-trip time.
    cc_u64 quickest;
    // Flows whose round-trip times are known; below two the own flow behaves as NewReno.
    cc_u32 count;
};

// Units per 2^-34 microseconds.
CC_INLINE cc_u64 cc_flow_rate(const struct cc_flow *flow)
{
    cc_u64 window = cc_min(flow->window, CC_SEGMENTS_MAX << CC_SEGMENT_SHIFT);

    return (window << 34) / cc_min(flow->rtt_us, CC_RTT_US_MAX);
}

CC_INLINE void cc_share_of(const struct cc_flows *flows, struct cc_share *share)
{
    cc_u64 sum = 0;
    int each;

    share->own = CC_GAIN_ONE;
    share->fastest = CC_GAIN_ONE;
    share->quickest = CC_GAIN_ONE;
    share->count = 0;
    if (flows->flow[0].rtt_us == 0)
        return;
    for (each = 0; each < CC_FLOWS_MAX; each++) {
        if (flows->flow[each].rtt_us > 0) {
            sum += cc_flow_rate(&flows->flow[each]);
            share->count += 1;
        }
    }
    if (share->count < 2 || sum == 0)
        return;
    share->fastest = 0;
    share->quickest = 0;
    for (each = 0; each < CC_FLOWS_MAX; each++) {
        const struct cc_flow *flow = &flows->flow[each];
        cc_u64 part, quick;

        if (flow->rtt_us == 0)
            continue;
        part = cc_ratio(cc_flow_rate(flow), sum);
        quick = part * cc_min(flows->flow[0].rtt_us, CC_RTT_US_MAX) /
                cc_min(flow->rtt_us, CC_RTT_US_MAX);
        if (each == 0)
            share->own = part;
        if (part > share->fastest)
            share->fastest = part;
        if (quick > share->quickest)
            share->quickest = quick;
    }
}

// A product of 128 bits.
struct cc_wide {
    cc_u64 high;
    cc_u64 low;
};

CC_INLINE struct cc_wide cc_wide_product(cc_u64 a, cc_u64 b)
{
    cc_u64 a_low = (cc_u32)a, a_high = a >> 32, b_low = (cc_u32)b, b_high = b >> 32;
    cc_u64 low = a_low * b_low, middle = a_high * b_low + (low >> 32);
    cc_u64 other = a_low * b_high + (cc_u32)middle;
    struct cc_wide wide = {
        .high = a_high * b_high + (middle >> 32) + (other >> 32),
        .low = other << 32 | (cc_u32)low,
    };

    return wide;
}

CC_INLINE int cc_wide_less(struct cc_wide a, struct cc_wide b)
{
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}

#endif
