// SPDX-License-Identifier: MIT OR Apache-2.0
// The flows of an MPTCP connection that run the same coupled controller. Each notes how it stands
// in a map, under the connection's token, and reads what the others noted.

#ifndef PLAIT_SIBLINGS_H
#define PLAIT_SIBLINGS_H

#include "sender.h"
#include "core/flows.h"

#define MEMBERS (CC_FLOWS_MAX - 1)

struct member {
    // What tells the flow from the others, or zero: the place is free.
    u64 owner;
    u64 loss_gap;
    u32 window;
    u32 rtt_us;
};

struct group {
    struct member member[MEMBERS];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, u32);
    __type(value, struct group);
} plait_flows SEC(".maps");

static const struct group no_members;

// Which subflow of which connection a socket is. A token of zero: of none, or not known yet.
struct subflow {
    u64 owner;
    u32 token;
};

static __always_inline void identify(struct sock *sk, struct subflow *self)
{
    struct mptcp_subflow_context *context;
    struct mptcp_sock *connection;

    if (!bpf_core_field_exists(struct tcp_sock, is_mptcp) || !tcp_sk(sk)->is_mptcp)
        return;
    context = inet_csk(sk)->icsk_ulp_data;
    connection = (struct mptcp_sock *)BPF_CORE_READ(context, conn);
    if (!connection)
        return;
    self->owner = (u64)context;
    self->token = BPF_CORE_READ(connection, token);
}

static __always_inline struct group *group_of(u32 token)
{
    struct group *group = bpf_map_lookup_elem(&plait_flows, &token);

    if (group)
        return group;
    // Where the map is full, the flow goes on as a lone one.
    bpf_map_update_elem(&plait_flows, &token, &no_members, BPF_NOEXIST);
    return bpf_map_lookup_elem(&plait_flows, &token);
}

// Takes a place where the flow has none yet. Two flows may do so at the same time.
static __always_inline void join(struct group *group, u64 owner)
{
    int each;

    for (each = 0; each < MEMBERS; each++)
        if (group->member[each].owner == owner)
            return;
    for (each = 0; each < MEMBERS; each++)
        if (__sync_val_compare_and_swap(&group->member[each].owner, 0, owner) == 0)
            return;
}

// Notes how the own flow stands, and tells how the others do.
CC_APART int exchange(u32 token, u64 owner, const struct cc_flow *own, struct cc_flows *flows)
{
    struct group *group;
    int each;

    if (!own || !flows)
        return 0;
    group = group_of(token);
    if (!group)
        return 0;
    join(group, owner);
    for (each = 0; each < MEMBERS; each++) {
        struct member *member = &group->member[each];
        bool is_other = member->owner != owner && member->owner != 0;

        if (member->owner == owner) {
            member->window = own->window;
            member->rtt_us = own->rtt_us;
            member->loss_gap = own->loss_gap;
        }
        flows->flow[each + 1].window = member->window;
        flows->flow[each + 1].rtt_us = is_other ? member->rtt_us : 0;
        flows->flow[each + 1].loss_gap = member->loss_gap;
    }
    return 0;
}

static __always_inline void meet(struct sock *sk, struct subflow *self, const struct cc_flow *own,
                                 struct cc_flows *flows)
{
    __builtin_memset(flows, 0, sizeof(*flows));
    flows->flow[0] = *own;
    if (self->token == 0)
        identify(sk, self);
    if (self->token != 0)
        exchange(self->token, self->owner, own, flows);
}

// Gives the place back; the last one takes the connection with it. A flow that joins meanwhile
// makes it anew with its next acknowledgement.
static __always_inline void leave(const struct subflow *self)
{
    u32 token = self->token;
    struct group *group = token ? bpf_map_lookup_elem(&plait_flows, &token) : NULL;
    bool is_empty = true;
    int each;

    if (!group)
        return;
    for (each = 0; each < MEMBERS; each++) {
        struct member *member = &group->member[each];

        if (member->owner == self->owner) {
            member->rtt_us = 0;
            member->owner = 0;
        }
        is_empty = is_empty && member->owner == 0;
    }
    if (is_empty)
        bpf_map_delete_elem(&plait_flows, &token);
}

static __always_inline u32 srtt_us(const struct tcp_sock *tp)
{
    // The kernel keeps eight times of it.
    return tp->srtt_us >> 3;
}

// Sent and not yet cumulatively acknowledged, in units.
static __always_inline u32 flight_of(const struct tcp_sock *tp)
{
    return cc_min(tp->packets_out, CC_SEGMENTS_MAX) << CC_SEGMENT_SHIFT;
}

#endif
