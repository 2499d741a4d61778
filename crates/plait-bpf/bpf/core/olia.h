// SPDX-License-Identifier: MIT OR Apache-2.0
// OLIA, the Opportunistic Linked Increases Algorithm (Khalili and others, 2012;
// docs/algorithms/olia.md).

#ifndef PLAIT_CORE_OLIA_H
#define PLAIT_CORE_OLIA_H

#include "flows.h"
#include "window.h"

struct cc_olia {
    struct cc_window window;
    // Units acknowledged between the last two losses, and since the last.
    cc_u64 last_gap;
    cc_u64 since_loss;
};

CC_INLINE void olia_init(struct cc_olia *cc, cc_u32 units)
{
    cc_window_init(&cc->window, units);
    cc->last_gap = 0;
    cc->since_loss = 0;
}

CC_INLINE cc_u64 olia_loss_gap(const struct cc_olia *cc)
{
    return cc->last_gap > cc->since_loss ? cc->last_gap : cc->since_loss;
}

// Counts what arrived, also in recovery.
CC_INLINE void olia_count(struct cc_olia *cc, cc_u32 acked)
{
    cc->since_loss += acked;
}

// Whether a's path is worse than b's: what it carries between losses over the square of its
// round-trip time.
CC_INLINE int olia_is_worse(const struct cc_flow *a, const struct cc_flow *b)
{
    cc_u64 a_rtt = cc_min(a->rtt_us, CC_RTT_US_MAX), b_rtt = cc_min(b->rtt_us, CC_RTT_US_MAX);

    return cc_wide_less(cc_wide_product(a->loss_gap, b_rtt * b_rtt),
                        cc_wide_product(b->loss_gap, a_rtt * a_rtt));
}

// The paper's alpha, in segments per window acknowledged: what the flow gains at the others' cost,
// or loses to them.
CC_APART cc_s64 olia_shift(const struct cc_flows *flows, cc_u32 count)
{
    cc_u32 largest = 0, of_largest = 0, denied = 0;
    int each, own_is_denied = 0;
    struct cc_flow best;

    if (!flows || count == 0)
        return 0;
    best = flows->flow[0];
    for (each = 0; each < CC_FLOWS_MAX; each++) {
        if (flows->flow[each].rtt_us == 0)
            continue;
        largest = cc_max(largest, flows->flow[each].window);
        if (olia_is_worse(&best, &flows->flow[each]))
            best = flows->flow[each];
    }
    for (each = 0; each < CC_FLOWS_MAX; each++) {
        if (flows->flow[each].rtt_us == 0)
            continue;
        if (flows->flow[each].window >= largest) {
            of_largest += 1;
        } else if (!olia_is_worse(&flows->flow[each], &best)) {
            denied += 1;
            if (each == 0)
                own_is_denied = 1;
        }
    }
    if (denied == 0)
        return 0;
    if (own_is_denied)
        return (cc_s64)((cc_u64)CC_GAIN_ONE / (count * denied));
    if (flows->flow[0].window >= largest)
        return -(cc_s64)((cc_u64)CC_GAIN_ONE / (count * cc_max(of_largest, 1)));
    return 0;
}

CC_INLINE void olia_ack(struct cc_olia *cc, const struct cc_ack *ack, struct cc_flows *flows)
{
    cc_u32 acked = cc_slow_start(&cc->window, ack);
    struct cc_share share;
    cc_s64 gain = CC_GAIN_ONE;

    if (acked == 0)
        return;
    // As in LIA.
    flows->flow[0].window = cc->window.units;
    cc_share_of(flows, &share);
    if (share.count >= 2)
        gain = (cc_s64)(share.own * share.own >> CC_GAIN_SHIFT) + olia_shift(flows, share.count);
    cc_grow(&cc->window, acked, gain);
}

CC_INLINE void olia_reduce(struct cc_olia *cc, cc_u32 flight)
{
    cc->last_gap = cc->since_loss;
    cc->since_loss = 0;
    cc_reduce(&cc->window, cc_min(flight, cc->window.units) / 2);
}

#endif
