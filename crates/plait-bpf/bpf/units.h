// SPDX-License-Identifier: MIT OR Apache-2.0
// A window in units. The kernel's is in segments, rounded down; as long as it is still that, the
// core's own goes on.

#ifndef PLAIT_UNITS_H
#define PLAIT_UNITS_H

#include "sender.h"
#include "core/window.h"

static __always_inline u32 ssthresh_in_segments(const struct cc_window *window)
{
    return window->ssthresh == CC_NONE ? SSTHRESH_UNKNOWN : window->ssthresh >> CC_SEGMENT_SHIFT;
}

static __always_inline u32 units_of(u32 segments)
{
    return cc_min(segments, CC_SEGMENTS_MAX) << CC_SEGMENT_SHIFT;
}

static __always_inline void take_units(const struct tcp_sock *tp, struct cc_window *window)
{
    if (window->units >> CC_SEGMENT_SHIFT != tp->snd_cwnd)
        window->units = units_of(tp->snd_cwnd);
    if (ssthresh_in_segments(window) != tp->snd_ssthresh)
        window->ssthresh =
            tp->snd_ssthresh > CC_SEGMENTS_MAX ? CC_NONE : units_of(tp->snd_ssthresh);
}

static __always_inline void give_units(struct tcp_sock *tp, const struct cc_window *window)
{
    set_window(tp, window->units >> CC_SEGMENT_SHIFT);
    tp->snd_ssthresh = ssthresh_in_segments(window);
}

#endif
