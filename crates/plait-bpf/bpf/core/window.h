// SPDX-License-Identifier: MIT OR Apache-2.0
// The window of a controller that adds and multiplies, in units (docs/algorithms/lia.md).

#ifndef PLAIT_CORE_WINDOW_H
#define PLAIT_CORE_WINDOW_H

#include "base.h"

struct cc_window {
    cc_u32 units;
    // CC_NONE while unknown.
    cc_u32 ssthresh;
    // Acknowledged in congestion avoidance, times the gain, and not yet turned into growth.
    cc_s64 credit;
};

CC_INLINE void cc_window_init(struct cc_window *window, cc_u32 units)
{
    window->units = units;
    window->ssthresh = CC_NONE;
    window->credit = 0;
}

CC_INLINE int cc_in_slow_start(const struct cc_window *window)
{
    return window->units < window->ssthresh;
}

// Grows by slow start. Gives what congestion avoidance is to count.
CC_INLINE cc_u32 cc_ramp_up(struct cc_window *window, cc_u32 growth)
{
    cc_u32 room = window->ssthresh - window->units;
    cc_u32 most = (CC_SEGMENTS_MAX << CC_SEGMENT_SHIFT) - window->units;

    if (growth > room) {
        window->units = window->ssthresh;
        return growth - room;
    }
    window->units += cc_min(growth, most);
    return 0;
}

// Standard slow start where that applies. Gives what congestion avoidance is to count.
CC_INLINE cc_u32 cc_slow_start(struct cc_window *window, const struct cc_ack *ack)
{
    cc_u32 acked = ack->acked;

    if (ack->app_limited)
        return 0;
    if (cc_in_slow_start(window))
        acked = cc_ramp_up(window, acked);
    return cc_in_slow_start(window) ? 0 : acked;
}

// Grows by `gain` segments for each window acknowledged: one is RFC 5681's growth. Shrinks where it
// is negative, to two segments at least, and does not fall back into slow start by that.
CC_INLINE void cc_grow(struct cc_window *window, cc_u32 acked, cc_s64 gain)
{
    cc_s64 credit = window->credit + (cc_s64)acked * gain;
    cc_u32 units = window->units;
    int step;

    for (step = 0; step < CC_STEPS_MAX; step++) {
        cc_s64 whole = (cc_s64)units << CC_GAIN_SHIFT;

        if (credit < whole || units >= CC_SEGMENTS_MAX << CC_SEGMENT_SHIFT)
            break;
        credit -= whole;
        units += CC_SEGMENT;
    }
    for (step = 0; step < CC_STEPS_MAX; step++) {
        cc_s64 whole = (cc_s64)units << CC_GAIN_SHIFT;

        if (credit > -whole)
            break;
        if (units < (CC_LEFT_MIN + 1) * CC_SEGMENT) {
            credit = 0;
            break;
        }
        credit += whole;
        units -= CC_SEGMENT;
        window->ssthresh = cc_min(window->ssthresh, units);
    }
    // At the largest window nothing is saved up.
    if (credit > (cc_s64)units << CC_GAIN_SHIFT)
        credit = (cc_s64)units << CC_GAIN_SHIFT;
    window->credit = credit;
    window->units = units;
}

// Sets window and ssthresh, without an episode of loss.
CC_INLINE void cc_settle(struct cc_window *window, cc_u32 units)
{
    window->units = units;
    window->ssthresh = units;
    window->credit = 0;
}

// An episode of loss begins, which is to leave `left`: two segments at least.
CC_INLINE void cc_reduce(struct cc_window *window, cc_u32 left)
{
    cc_settle(window, cc_max(left, CC_LEFT_MIN * CC_SEGMENT));
}

#endif
