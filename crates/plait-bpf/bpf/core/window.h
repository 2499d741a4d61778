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

// What so many steps of a segment cost a window of so many units: its size before each of them.
CC_INLINE cc_s64 cc_cost_up(cc_s64 units, cc_s64 steps)
{
    return steps * units + CC_SEGMENT / 2 * steps * (steps - 1);
}

CC_INLINE cc_s64 cc_cost_down(cc_s64 units, cc_s64 steps)
{
    return steps * units - CC_SEGMENT / 2 * steps * (steps - 1);
}

// Grows by `gain` segments for each window acknowledged: one is RFC 5681's growth. Shrinks where it
// is negative, to two segments at least, and does not fall back into slow start by that. The number
// of steps that the credit is good for is found bit by bit.
CC_APART int cc_grow_apart(struct cc_window *window, cc_u32 acked, cc_s64 gain)
{
    cc_s64 credit, units;
    int shift;

    if (!window)
        return 0;
    credit = window->credit + (cc_s64)acked * gain;
    units = window->units;
    if (credit >= 0) {
        for (shift = CC_STEPS_SHIFT; shift >= 0; shift--) {
            cc_s64 steps = 1ll << shift, cost = cc_cost_up(units, steps);

            if (cost > credit >> CC_GAIN_SHIFT ||
                units + steps * CC_SEGMENT > (cc_s64)CC_SEGMENTS_MAX << CC_SEGMENT_SHIFT)
                continue;
            credit -= cost << CC_GAIN_SHIFT;
            units += steps * CC_SEGMENT;
        }
        // At the largest window nothing is saved up.
        if (credit >> CC_GAIN_SHIFT > units)
            credit = units << CC_GAIN_SHIFT;
    } else {
        for (shift = CC_STEPS_SHIFT; shift >= 0; shift--) {
            cc_s64 steps = 1ll << shift, cost = cc_cost_down(units, steps);

            if (cost > -credit >> CC_GAIN_SHIFT ||
                units - steps * CC_SEGMENT < (cc_s64)CC_LEFT_MIN << CC_SEGMENT_SHIFT)
                continue;
            credit += cost << CC_GAIN_SHIFT;
            units -= steps * CC_SEGMENT;
        }
        // At the smallest window nothing is owed.
        if (-credit >> CC_GAIN_SHIFT >= units)
            credit = 0;
        if (units < window->units)
            window->ssthresh = cc_min(window->ssthresh, (cc_u32)units);
    }
    window->credit = credit;
    window->units = (cc_u32)units;
    return 0;
}

CC_INLINE void cc_grow(struct cc_window *window, cc_u32 acked, cc_s64 gain)
{
    struct cc_window copy = *window;

    cc_grow_apart(&copy, acked, gain);
    *window = copy;
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
