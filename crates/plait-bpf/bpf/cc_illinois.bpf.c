// SPDX-License-Identifier: MIT OR Apache-2.0
// TCP Illinois as a controller of the kernel's TCP.

#include "whole.h"
#include "core/illinois.h"

_Static_assert(sizeof(struct cc_illinois) <= PRIVATE_BYTES, "the socket has no more room");

SEC("struct_ops")
void BPF_PROG(ill_init, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct cc_illinois *cc = private_of(sk);

    illinois_init(cc, cc_min(tp->snd_cwnd, CC_SEGMENTS_MAX), tp->snd_nxt);
    count_connection(1);
}

SEC("struct_ops")
void BPF_PROG(ill_release, struct sock *sk)
{
    count_connection(-1);
}

SEC("struct_ops")
void BPF_PROG(ill_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    s32 rtt_us = sample->rtt_us;

    if (rtt_us >= 0)
        illinois_sample(private_of(sk), rtt_us);
}

SEC("struct_ops")
void BPF_PROG(ill_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
    struct cc_illinois *cc = private_of(sk);
    struct cc_ack told = ack_of(sk, ack, acked);

    take_whole(tcp_sk(sk), &cc->window);
    illinois_ack(cc, &told);
    give_whole(tcp_sk(sk), &cc->window);
}

SEC("struct_ops")
u32 BPF_PROG(ill_ssthresh, struct sock *sk)
{
    struct cc_illinois *cc = private_of(sk);

    take_whole(tcp_sk(sk), &cc->window);
    illinois_reduce(cc);
    return cc->window.ssthresh;
}

SEC("struct_ops")
void BPF_PROG(ill_set_state, struct sock *sk, u8 new_state)
{
    if (new_state == SENDER_LOSS)
        illinois_rto(private_of(sk), tcp_sk(sk)->snd_nxt);
}

SEC("struct_ops")
u32 BPF_PROG(ill_undo_cwnd, struct sock *sk)
{
    return restored_window(tcp_sk(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bpf_illinois = {
    .init = (void *)ill_init,
    .release = (void *)ill_release,
    .pkts_acked = (void *)ill_pkts_acked,
    .cong_avoid = (void *)ill_cong_avoid,
    .ssthresh = (void *)ill_ssthresh,
    .set_state = (void *)ill_set_state,
    .undo_cwnd = (void *)ill_undo_cwnd,
    .flags = NON_RESTRICTED,
    .name = "bpf_illinois",
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";
