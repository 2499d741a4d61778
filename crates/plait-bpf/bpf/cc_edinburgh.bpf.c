// SPDX-License-Identifier: MIT OR Apache-2.0
// TCP Edinburgh as a controller of the kernel's TCP.

#include "units.h"
#include "core/edinburgh.h"

_Static_assert(sizeof(struct cc_edinburgh) <= PRIVATE_BYTES, "the socket has no more room");

SEC("struct_ops")
void BPF_PROG(edi_init, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);

    edinburgh_init(private_of(sk), units_of(tp->snd_cwnd), tp->snd_nxt);
    count_connection(1);
}

SEC("struct_ops")
void BPF_PROG(edi_release, struct sock *sk)
{
    count_connection(-1);
}

SEC("struct_ops")
void BPF_PROG(edi_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct cc_edinburgh *cc = private_of(sk);
    s32 rtt_us = sample->rtt_us;

    if (rtt_us < 0)
        return;
    edinburgh_sample(cc, bpf_ktime_get_ns() / 1000, rtt_us);
    edinburgh_ramp_sample(cc, rtt_us);
}

SEC("struct_ops")
void BPF_PROG(edi_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
    struct cc_edinburgh *cc = private_of(sk);
    struct cc_ack told = ack_of(sk, ack, acked);

    take_units(tcp_sk(sk), &cc->window);
    edinburgh_ack(cc, &told);
    give_units(tcp_sk(sk), &cc->window);
}

SEC("struct_ops")
u32 BPF_PROG(edi_ssthresh, struct sock *sk)
{
    struct cc_edinburgh *cc = private_of(sk);

    take_units(tcp_sk(sk), &cc->window);
    edinburgh_reduce(cc);
    return ssthresh_in_segments(&cc->window);
}

SEC("struct_ops")
void BPF_PROG(edi_set_state, struct sock *sk, u8 new_state)
{
    if (new_state == SENDER_LOSS)
        edinburgh_rto(private_of(sk), tcp_sk(sk)->snd_nxt);
}

SEC("struct_ops")
u32 BPF_PROG(edi_undo_cwnd, struct sock *sk)
{
    edinburgh_undo(private_of(sk));
    return restored_window(tcp_sk(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bpf_edinburgh = {
    .init = (void *)edi_init,
    .release = (void *)edi_release,
    .pkts_acked = (void *)edi_pkts_acked,
    .cong_avoid = (void *)edi_cong_avoid,
    .ssthresh = (void *)edi_ssthresh,
    .set_state = (void *)edi_set_state,
    .undo_cwnd = (void *)edi_undo_cwnd,
    .flags = NON_RESTRICTED,
    .name = "bpf_edinburgh",
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";
