// SPDX-License-Identifier: MIT OR Apache-2.0
// BALIA as a controller of the kernel's TCP, coupled over the subflows of an MPTCP connection.

#include "units.h"
#include "siblings.h"
#include "core/balia.h"

struct state {
    struct cc_balia core;
    struct subflow self;
};

_Static_assert(sizeof(struct state) <= PRIVATE_BYTES, "the socket has no more room");

// Takes the kernel's window, notes how the flow stands, and learns how the others do.
static __always_inline void look(struct sock *sk, struct state *state, struct cc_flows *flows)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct cc_flow own = {.rtt_us = srtt_us(tp)};

    take_units(tp, &state->core.window);
    own.window = state->core.window.units;
    meet(sk, &state->self, &own, flows);
}

SEC("struct_ops")
void BPF_PROG(balia_init_flow, struct sock *sk)
{
    struct state *state = private_of(sk);

    balia_init(&state->core, units_of(tcp_sk(sk)->snd_cwnd));
    state->self = (struct subflow){};
    count_connection(1);
}

SEC("struct_ops")
void BPF_PROG(balia_release, struct sock *sk)
{
    struct state *state = private_of(sk);

    leave(&state->self);
    count_connection(-1);
}

SEC("struct_ops")
void BPF_PROG(balia_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
    struct state *state = private_of(sk);
    struct cc_ack told = ack_of(sk, ack, acked);
    struct cc_flows flows;
    struct cc_share share;

    look(sk, state, &flows);
    cc_share_of(&flows, &share);
    balia_observe(&state->core, &share);
    balia_ack(&state->core, &told, &share);
    give_units(tcp_sk(sk), &state->core.window);
}

SEC("struct_ops")
u32 BPF_PROG(balia_ssthresh, struct sock *sk)
{
    struct state *state = private_of(sk);
    struct cc_flows flows;
    struct cc_share share;

    // Acknowledgements in recovery did not come by here.
    look(sk, state, &flows);
    cc_share_of(&flows, &share);
    balia_observe(&state->core, &share);
    balia_reduce(&state->core, flight_of(tcp_sk(sk)));
    return ssthresh_in_segments(&state->core.window);
}

SEC("struct_ops")
u32 BPF_PROG(balia_undo_cwnd, struct sock *sk)
{
    return restored_window(tcp_sk(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bpf_balia = {
    .init = (void *)balia_init_flow,
    .release = (void *)balia_release,
    .cong_avoid = (void *)balia_cong_avoid,
    .ssthresh = (void *)balia_ssthresh,
    .undo_cwnd = (void *)balia_undo_cwnd,
    .flags = NON_RESTRICTED,
    .name = "bpf_balia",
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";
