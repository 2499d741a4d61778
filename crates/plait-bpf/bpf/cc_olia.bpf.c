// SPDX-License-Identifier: MIT OR Apache-2.0
// OLIA as a controller of the kernel's TCP, coupled over the subflows of an MPTCP connection.

#include "units.h"
#include "siblings.h"
#include "core/olia.h"

struct state {
    struct cc_olia core;
    struct subflow self;
};

_Static_assert(sizeof(struct state) <= PRIVATE_BYTES, "the socket has no more room");

// Takes the kernel's window, notes how the flow stands, and learns how the others do.
static __always_inline void look(struct sock *sk, struct state *state, struct cc_flows *flows)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct cc_flow own = {.rtt_us = srtt_us(tp), .loss_gap = olia_loss_gap(&state->core)};

    take_units(tp, &state->core.window);
    own.window = state->core.window.units;
    meet(sk, &state->self, &own, flows);
}

SEC("struct_ops")
void BPF_PROG(olia_init_flow, struct sock *sk)
{
    struct state *state = private_of(sk);

    olia_init(&state->core, units_of(tcp_sk(sk)->snd_cwnd));
    state->self = (struct subflow){};
    count_connection(1);
}

SEC("struct_ops")
void BPF_PROG(olia_release, struct sock *sk)
{
    struct state *state = private_of(sk);

    leave(&state->self);
    count_connection(-1);
}

SEC("struct_ops")
void BPF_PROG(olia_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct state *state = private_of(sk);

    olia_count(&state->core, cc_min(sample->pkts_acked, CC_ACKED_MAX) << CC_SEGMENT_SHIFT);
}

SEC("struct_ops")
void BPF_PROG(olia_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
    struct state *state = private_of(sk);
    struct cc_ack told = ack_of(sk, ack, acked);
    struct cc_flows flows;

    look(sk, state, &flows);
    olia_ack(&state->core, &told, &flows);
    give_units(tcp_sk(sk), &state->core.window);
}

SEC("struct_ops")
u32 BPF_PROG(olia_ssthresh, struct sock *sk)
{
    struct state *state = private_of(sk);

    take_units(tcp_sk(sk), &state->core.window);
    olia_reduce(&state->core, flight_of(tcp_sk(sk)));
    return ssthresh_in_segments(&state->core.window);
}

SEC("struct_ops")
u32 BPF_PROG(olia_undo_cwnd, struct sock *sk)
{
    return restored_window(tcp_sk(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bpf_olia = {
    .init = (void *)olia_init_flow,
    .release = (void *)olia_release,
    .pkts_acked = (void *)olia_pkts_acked,
    .cong_avoid = (void *)olia_cong_avoid,
    .ssthresh = (void *)olia_ssthresh,
    .undo_cwnd = (void *)olia_undo_cwnd,
    .flags = NON_RESTRICTED,
    .name = "bpf_olia",
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";
