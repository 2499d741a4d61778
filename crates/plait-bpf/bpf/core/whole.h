// SPDX-License-Identifier: MIT OR Apache-2.0
// The window of a controller that follows Illinois' arithmetic in Linux: in whole segments.

#ifndef PLAIT_CORE_WHOLE_H
#define PLAIT_CORE_WHOLE_H

#include "base.h"

struct cc_whole {
    cc_u32 segments;
    // CC_NONE while unknown.
    cc_u32 ssthresh;
    // Acknowledged segments that have not grown the window yet.
    cc_u32 credit;
};

CC_INLINE int cc_whole_in_slow_start(const struct cc_whole *window)
{
    return window->segments < window->ssthresh;
}

// Slow start; says whether it applies. What an acknowledgement brings beyond its end does not count.
CC_INLINE int cc_whole_ramp_up(struct cc_whole *window, cc_u32 acked, int app_limited)
{
    if (!cc_whole_in_slow_start(window))
        return 0;
    if (!app_limited) {
        cc_u32 room = cc_min(window->ssthresh, CC_SEGMENTS_MAX) - window->segments;

        window->segments += cc_min(acked, room);
    }
    return 1;
}

// Grows by `alpha` / 2^`shift` segments for each window acknowledged. What is not worth a whole
// segment more is forgotten with each growth.
CC_INLINE void cc_whole_grow(struct cc_whole *window, cc_u32 acked, cc_u32 alpha, cc_u32 shift)
{
    cc_u32 credit = cc_min(window->credit + acked, 2 * CC_SEGMENTS_MAX);
    cc_u32 segments = cc_max(window->segments, 1);
    cc_u32 grown = (cc_u32)(((cc_u64)credit * alpha >> shift) / segments);

    if (grown > 0) {
        segments = cc_min(segments + grown, CC_SEGMENTS_MAX);
        credit = 0;
    }
    window->segments = segments;
    window->credit = credit;
}

// An episode of loss begins, which takes `taken`.
CC_INLINE void cc_whole_reduce(struct cc_whole *window, cc_u32 taken)
{
    window->ssthresh = cc_max(window->segments - taken, CC_LEFT_MIN);
    window->segments = window->ssthresh;
    window->credit = 0;
}

#endif
