// SPDX-License-Identifier: MIT OR Apache-2.0
// BALIA, the Balanced Linked Adaptation (Peng and others, 2016; docs/algorithms/balia.md).

#ifndef PLAIT_CORE_BALIA_H
#define PLAIT_CORE_BALIA_H

#include "flows.h"
#include "window.h"

// A loss takes half the window times alpha, which counts up to 1.5.
#define BALIA_ALPHA_MAX (3ull << (CC_GAIN_SHIFT - 1))

struct cc_balia {
    struct cc_window window;
    // The fastest flow's rate over this one's, up to 1.5, in units of 2^-30.
    cc_u64 alpha;
};

CC_INLINE void balia_init(struct cc_balia *cc, cc_u32 units)
{
    cc_window_init(&cc->window, units);
    cc->alpha = CC_GAIN_ONE;
}

// Notes how the flow stands, with every acknowledgement, also in recovery.
CC_INLINE void balia_observe(struct cc_balia *cc, const struct cc_share *share)
{
    cc->alpha = BALIA_ALPHA_MAX;
    if (share->own > 0 && 2 * share->fastest < 3 * share->own)
        cc->alpha = (share->fastest << CC_GAIN_SHIFT) / share->own;
}

// share^2 (1 + alpha) / 2 (4 + alpha) / 5, with alpha = fastest / own.
CC_INLINE cc_s64 balia_gain(const struct cc_share *share)
{
    cc_u64 own = share->own, fastest = share->fastest;

    return (cc_s64)((own + fastest) * (4 * own + fastest) / 10 >> CC_GAIN_SHIFT);
}

CC_INLINE void balia_ack(struct cc_balia *cc, const struct cc_ack *ack, const struct cc_share *share)
{
    cc_u32 acked = cc_slow_start(&cc->window, ack);

    if (acked > 0)
        cc_grow(&cc->window, acked, balia_gain(share));
}

CC_INLINE void balia_reduce(struct cc_balia *cc, cc_u32 flight)
{
    cc_u64 most = cc_min(flight, cc->window.units);
    cc_u64 taken = (most * cc->alpha + (1ull << (CC_GAIN_SHIFT + 1)) - 1) >> (CC_GAIN_SHIFT + 1);

    cc_reduce(&cc->window, (cc_u32)(most - taken));
}

#endif
