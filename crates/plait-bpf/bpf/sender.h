// SPDX-License-Identifier: MIT OR Apache-2.0
// Between the kernel's sender and a controller's core: what the core is told, and the window as the
// kernel counts it. The kernel may change the window on its own, in recovery or after idling; its
// word counts.

#ifndef PLAIT_SENDER_H
#define PLAIT_SENDER_H

#include "kernel.h"
#include "record.h"
#include "core/base.h"

#define SSTHRESH_UNKNOWN 0x7fffffff
// Bytes that a socket has for its controller.
#define PRIVATE_BYTES (13 * sizeof(u64))

static __always_inline void *private_of(struct sock *sk)
{
    return (void *)inet_csk(sk)->icsk_ca_priv;
}

// Whether the window limits the sender, by the kernel's own judgement: below ssthresh a window is
// in use as well while half of it is.
static __always_inline bool is_window_in_use(const struct tcp_sock *tp)
{
    if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
        return true;
    return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline struct cc_ack ack_of(struct sock *sk, u32 ack, u32 acked)
{
    const struct tcp_sock *tp = tcp_sk(sk);
    bool is_open = BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state) == SENDER_OPEN;
    struct cc_ack told = {
        .now_us = bpf_ktime_get_ns() / 1000,
        .acked = cc_min(acked, CC_ACKED_MAX) << CC_SEGMENT_SHIFT,
        .newest = ack,
        .sent = tp->snd_nxt,
        .phase = is_open ? CC_OPEN : CC_RTO_RECOVERY,
        .app_limited = !is_window_in_use(tp),
    };

    return told;
}

static __always_inline u32 restored_window(const struct tcp_sock *tp)
{
    return cc_max(tp->snd_cwnd, tp->prior_cwnd);
}

static __always_inline void set_window(struct tcp_sock *tp, u32 segments)
{
    tp->snd_cwnd = cc_max(cc_min(segments, tp->snd_cwnd_clamp), 1);
}

#endif
