// SPDX-License-Identifier: MIT OR Apache-2.0
// TCP Illinois as Linux has it (docs/algorithms/illinois.md). Growth is in units of 2^-22, the share
// that a loss takes in units of 2^-24.

#ifndef PLAIT_CORE_ILLINOIS_H
#define PLAIT_CORE_ILLINOIS_H

#include "whole.h"

#define ILLINOIS_ALPHA_SHIFT 22
#define ILLINOIS_BETA_SHIFT 24
#define ILLINOIS_ALPHA_MAX (10u << ILLINOIS_ALPHA_SHIFT)
#define ILLINOIS_ALPHA_BASE (1u << ILLINOIS_ALPHA_SHIFT)
#define ILLINOIS_BETA_MIN (1u << (ILLINOIS_BETA_SHIFT - 3))
#define ILLINOIS_BETA_MAX (1u << (ILLINOIS_BETA_SHIFT - 1))
#define ILLINOIS_WINDOW_THRESH 15
#define ILLINOIS_THETA 5
#define ILLINOIS_RTT_US_MAX 3355443

struct cc_illinois {
    struct cc_whole window;
    cc_u32 round_end;
    cc_u64 sum_us;
    cc_u32 count;
    // CC_NONE before the first sample.
    cc_u32 base_us;
    cc_u32 max_us;
    cc_u32 alpha;
    cc_u32 beta;
    cc_u8 rtt_above;
    cc_u8 rtt_low;
};

CC_INLINE void illinois_begin_round(struct cc_illinois *cc, cc_u32 sent)
{
    cc->round_end = sent;
    cc->sum_us = 0;
    cc->count = 0;
}

CC_INLINE void illinois_init(struct cc_illinois *cc, cc_u32 segments, cc_u32 sent)
{
    cc->window.segments = segments;
    cc->window.ssthresh = CC_NONE;
    cc->window.credit = 0;
    cc->base_us = CC_NONE;
    cc->max_us = 0;
    cc->alpha = ILLINOIS_ALPHA_MAX;
    cc->beta = ILLINOIS_BETA_MAX;
    cc->rtt_above = 0;
    cc->rtt_low = 0;
    illinois_begin_round(cc, sent);
}

CC_INLINE void illinois_sample(struct cc_illinois *cc, cc_u32 rtt_us)
{
    rtt_us = cc_min(rtt_us, ILLINOIS_RTT_US_MAX);
    cc->base_us = cc_min(cc->base_us, rtt_us);
    cc->max_us = cc_max(cc->max_us, rtt_us);
    cc->sum_us += rtt_us;
    cc->count += 1;
}

// The paper's f1, from the largest growth at a hundredth of the longest delay to the least at the
// longest, with its constants multiplied out: 29.7 most / (2 most + 97 mean).
CC_INLINE cc_u32 illinois_alpha_at(cc_u64 mean_ns, cc_u64 most_ns)
{
    return (cc_u32)((297 * most_ns << ILLINOIS_ALPHA_SHIFT) / (20 * most_ns + 970 * mean_ns));
}

// The paper's f2: from the least share, up to a tenth of the longest delay, to the largest, from
// four fifths of it on.
CC_INLINE cc_u32 illinois_beta_at(cc_u64 mean_ns, cc_u64 most_ns)
{
    if (10 * mean_ns <= most_ns)
        return ILLINOIS_BETA_MIN;
    if (10 * mean_ns >= 8 * most_ns)
        return ILLINOIS_BETA_MAX;
    return ILLINOIS_BETA_MIN +
           (cc_u32)((3 * (10 * mean_ns - most_ns) << ILLINOIS_BETA_SHIFT) / (56 * most_ns));
}

CC_INLINE void illinois_judge(struct cc_illinois *cc)
{
    cc_u64 base_ns = (cc_u64)cc->base_us * 1000;
    cc_u64 mean_ns = cc->sum_us * 1000 / cc->count - base_ns;
    cc_u64 most_ns = (cc_u64)cc->max_us * 1000 - base_ns;

    cc->beta = illinois_beta_at(mean_ns, most_ns);
    if (100 * mean_ns > most_ns) {
        cc->rtt_above = 1;
        cc->alpha = illinois_alpha_at(mean_ns, most_ns);
        return;
    }
    if (cc->rtt_above) {
        cc->rtt_low += 1;
        if (cc->rtt_low < ILLINOIS_THETA)
            return;
        cc->rtt_above = 0;
        cc->rtt_low = 0;
    }
    cc->alpha = ILLINOIS_ALPHA_MAX;
}

CC_INLINE void illinois_ack(struct cc_illinois *cc, const struct cc_ack *ack)
{
    struct cc_whole *window = &cc->window;
    cc_u32 acked = (ack->acked + CC_SEGMENT - 1) >> CC_SEGMENT_SHIFT;

    if (cc_after(ack->newest, cc->round_end)) {
        if (window->segments < ILLINOIS_WINDOW_THRESH) {
            cc->alpha = ILLINOIS_ALPHA_BASE;
            cc->beta = ILLINOIS_BETA_MAX;
        } else if (cc->count > 0) {
            illinois_judge(cc);
        }
        illinois_begin_round(cc, ack->sent);
    }
    if (!cc_whole_ramp_up(window, acked, ack->app_limited) && !ack->app_limited)
        cc_whole_grow(window, acked, cc->alpha, ILLINOIS_ALPHA_SHIFT);
}

CC_INLINE void illinois_reduce(struct cc_illinois *cc)
{
    cc_u64 taken = (cc_u64)cc->window.segments * cc->beta >> ILLINOIS_BETA_SHIFT;

    cc_whole_reduce(&cc->window, (cc_u32)taken);
}

CC_INLINE void illinois_rto(struct cc_illinois *cc, cc_u32 sent)
{
    cc->alpha = ILLINOIS_ALPHA_BASE;
    cc->beta = ILLINOIS_BETA_MAX;
    cc->rtt_above = 0;
    cc->rtt_low = 0;
    illinois_begin_round(cc, sent);
}

#endif
