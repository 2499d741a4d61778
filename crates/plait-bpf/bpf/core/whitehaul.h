// SPDX-License-Identifier: MIT OR Apache-2.0
// WhiteHaul's controller as its code behaves, faults included (docs/algorithms/whitehaul.md).
// WO2021250377A1 / US20230239702 claims this way of controlling a connection of several paths: a
// reproduction of published research, never a default.

#ifndef PLAIT_CORE_WHITEHAUL_H
#define PLAIT_CORE_WHITEHAUL_H

#include "whole.h"

#define WHITEHAUL_ALPHA_MAX 50
#define WHITEHAUL_ALPHA_BASE 1
#define WHITEHAUL_BETA_64THS 6
#define WHITEHAUL_SSTHRESH 20
#define WHITEHAUL_WINDOW_THRESH 10
#define WHITEHAUL_THETA 2
#define WHITEHAUL_ADV 100
#define WHITEHAUL_DELAY_US 50000
#define WHITEHAUL_BASE_US_NONE 0x7fffffffu
#define WHITEHAUL_RTT_US_MAX 671088
#define WHITEHAUL_RTT_US_SHORT 100

struct cc_whitehaul {
    struct cc_whole window;
    cc_u32 round_end;
    cc_u64 sum_us;
    cc_u32 count;
    cc_u32 base_us;
    cc_u8 alpha;
    cc_u8 rtt_above;
    cc_u8 rtt_low;
};

CC_INLINE void whitehaul_begin_round(struct cc_whitehaul *cc, cc_u32 sent)
{
    cc->round_end = sent;
    cc->sum_us = 0;
    cc->count = 0;
}

CC_INLINE void whitehaul_init(struct cc_whitehaul *cc, cc_u32 segments, cc_u32 sent)
{
    cc->window.segments = segments;
    cc->window.ssthresh = WHITEHAUL_SSTHRESH;
    cc->window.credit = 0;
    cc->base_us = WHITEHAUL_BASE_US_NONE;
    cc->alpha = WHITEHAUL_ALPHA_MAX;
    cc->rtt_above = 0;
    cc->rtt_low = 0;
    whitehaul_begin_round(cc, sent);
}

CC_INLINE void whitehaul_sample(struct cc_whitehaul *cc, cc_u32 rtt_us)
{
    rtt_us = cc_min(rtt_us, WHITEHAUL_RTT_US_MAX);
    if (rtt_us > WHITEHAUL_RTT_US_SHORT)
        cc->base_us = cc_min(cc->base_us, rtt_us);
    cc->sum_us += rtt_us;
    cc->count += 1;
}

CC_INLINE void whitehaul_judge(struct cc_whitehaul *cc, cc_u32 count)
{
    // What is below zero wraps around, as in the code.
    cc_u32 queued_us = (cc_u32)(cc->sum_us / count) - cc->base_us;

    if (queued_us > WHITEHAUL_DELAY_US) {
        cc->rtt_above = 1;
        cc->alpha = WHITEHAUL_ALPHA_BASE;
        return;
    }
    if (cc->window.segments >= WHITEHAUL_ADV) {
        cc->alpha = WHITEHAUL_ALPHA_BASE;
        return;
    }
    if (cc->rtt_above) {
        cc->rtt_low += 1;
        if (cc->rtt_low < WHITEHAUL_THETA)
            return;
        cc->rtt_above = 0;
        cc->rtt_low = 0;
    }
    cc->alpha = WHITEHAUL_ALPHA_MAX;
}

CC_INLINE void whitehaul_end_round(struct cc_whitehaul *cc, cc_u32 sent)
{
    // The code counts in 16 bits.
    cc_u32 count = cc->count & 0xffff;

    if (cc->window.segments < WHITEHAUL_WINDOW_THRESH)
        cc->alpha = WHITEHAUL_ALPHA_BASE;
    else if (count > 0)
        whitehaul_judge(cc, count);
    whitehaul_begin_round(cc, sent);
}

CC_INLINE void whitehaul_ack(struct cc_whitehaul *cc, const struct cc_ack *ack)
{
    struct cc_whole *window = &cc->window;
    cc_u32 acked = (ack->acked + CC_SEGMENT - 1) >> CC_SEGMENT_SHIFT;

    if (cc_after(ack->newest, cc->round_end))
        whitehaul_end_round(cc, ack->sent);
    if (ack->phase == CC_OPEN && cc->rtt_above && !cc_whole_in_slow_start(window) &&
        window->segments >= WHITEHAUL_ADV) {
        window->segments = WHITEHAUL_ADV;
        window->ssthresh = WHITEHAUL_ADV;
    }
    if (!cc_whole_ramp_up(window, acked, ack->app_limited) && !ack->app_limited)
        cc_whole_grow(window, acked, cc->alpha, 0);
}

CC_INLINE void whitehaul_reduce(struct cc_whitehaul *cc)
{
    cc_whole_reduce(&cc->window, cc->window.segments * WHITEHAUL_BETA_64THS / 64);
}

CC_INLINE void whitehaul_rto(struct cc_whitehaul *cc, cc_u32 sent)
{
    cc->alpha = WHITEHAUL_ALPHA_BASE;
    cc->rtt_above = 0;
    cc->rtt_low = 0;
    whitehaul_begin_round(cc, sent);
}

#endif
