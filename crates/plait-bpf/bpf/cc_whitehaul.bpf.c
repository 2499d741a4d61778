// SPDX-License-Identifier: MIT OR Apache-2.0
// WhiteHaul's controller as a controller of the kernel's TCP. Research only: core/whitehaul.h.

#include "whole.h"
#include "core/whitehaul.h"

_Static_assert(sizeof(struct cc_whitehaul) <= PRIVATE_BYTES, "the socket has no more room");

SEC("struct_ops")
void BPF_PROG(whl_init, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct cc_whitehaul *cc = private_of(sk);

    whitehaul_init(cc, cc_min(tp->snd_cwnd, CC_SEGMENTS_MAX), tp->snd_nxt);
    tp->snd_ssthresh = WHITEHAUL_SSTHRESH;
    count_connection(1);
}

SEC("struct_ops")
void BPF_PROG(whl_release, struct sock *sk)
{
    count_connection(-1);
}

SEC("struct_ops")
void BPF_PROG(whl_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    s32 rtt_us = sample->rtt_us;

    if (rtt_us >= 0)
        whitehaul_sample(private_of(sk), rtt_us);
}

SEC("struct_ops")
void BPF_PROG(whl_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
    struct cc_whitehaul *cc = private_of(sk);
    struct cc_ack told = ack_of(sk, ack, acked);

    take_whole(tcp_sk(sk), &cc->window);
    whitehaul_ack(cc, &told);
    give_whole(tcp_sk(sk), &cc->window);
}

SEC("struct_ops")
u32 BPF_PROG(whl_ssthresh, struct sock *sk)
{
    struct cc_whitehaul *cc = private_of(sk);

    take_whole(tcp_sk(sk), &cc->window);
    whitehaul_reduce(cc);
    return cc->window.ssthresh;
}

SEC("struct_ops")
void BPF_PROG(whl_set_state, struct sock *sk, u8 new_state)
{
    if (new_state == SENDER_LOSS)
        whitehaul_rto(private_of(sk), tcp_sk(sk)->snd_nxt);
}

SEC("struct_ops")
u32 BPF_PROG(whl_undo_cwnd, struct sock *sk)
{
    return restored_window(tcp_sk(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bpf_whitehaul = {
    .init = (void *)whl_init,
    .release = (void *)whl_release,
    .pkts_acked = (void *)whl_pkts_acked,
    .cong_avoid = (void *)whl_cong_avoid,
    .ssthresh = (void *)whl_ssthresh,
    .set_state = (void *)whl_set_state,
    .undo_cwnd = (void *)whl_undo_cwnd,
    .flags = NON_RESTRICTED,
    .name = "bpf_whitehaul",
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";
