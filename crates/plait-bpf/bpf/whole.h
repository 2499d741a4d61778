// SPDX-License-Identifier: MIT OR Apache-2.0
// A window of whole segments, as the kernel has it.

#ifndef PLAIT_WHOLE_H
#define PLAIT_WHOLE_H

#include "sender.h"
#include "core/whole.h"

static __always_inline void take_whole(const struct tcp_sock *tp, struct cc_whole *window)
{
    window->segments = cc_min(tp->snd_cwnd, CC_SEGMENTS_MAX);
    window->ssthresh = tp->snd_ssthresh >= SSTHRESH_UNKNOWN ? CC_NONE : tp->snd_ssthresh;
}

static __always_inline void give_whole(struct tcp_sock *tp, const struct cc_whole *window)
{
    set_window(tp, window->segments);
    tp->snd_ssthresh = cc_min(window->ssthresh, SSTHRESH_UNKNOWN);
}

#endif
