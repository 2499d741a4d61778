// SPDX-License-Identifier: MIT OR Apache-2.0
// Chooses the congestion controller of each socket of a cgroup by rules: by the interface that the
// socket is bound to, else by its own address, else by the rule for all. Subflows of an MPTCP
// connection are sockets of their own.

#include "record.h"

#include <bpf/bpf_endian.h>

#define LEVEL_TCP 6
#define OPTION_CONGESTION 13

struct rule_key {
    // Zero where the rule is not for an interface.
    u32 ifindex;
    // Zero where the rule is not for an address.
    u32 family;
    u8 address[16];
};

struct rule {
    char name[16];
    u64 chosen;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, struct rule_key);
    __type(value, struct rule);
} plait_rules SEC(".maps");

static __always_inline struct rule *rule_for(struct bpf_sock_ops *ops)
{
    struct bpf_sock *sk = ops->sk;
    struct rule_key key = {};
    struct rule *rule;

    if (sk && sk->bound_dev_if) {
        key.ifindex = sk->bound_dev_if;
        rule = bpf_map_lookup_elem(&plait_rules, &key);
        if (rule)
            return rule;
        key.ifindex = 0;
    }
    key.family = ops->family;
    if (ops->family == AF_INET) {
        __builtin_memcpy(key.address, &(u32){ops->local_ip4}, 4);
    } else if (ops->family == AF_INET6) {
        u32 words[4] = {ops->local_ip6[0], ops->local_ip6[1], ops->local_ip6[2],
                        ops->local_ip6[3]};

        // An IPv4 address of a socket that speaks both.
        if (words[0] == 0 && words[1] == 0 && words[2] == bpf_htonl(0xffff)) {
            key.family = AF_INET;
            __builtin_memcpy(key.address, &words[3], 4);
        } else {
            __builtin_memcpy(key.address, words, 16);
        }
    }
    rule = bpf_map_lookup_elem(&plait_rules, &key);
    if (rule)
        return rule;
    __builtin_memset(&key, 0, sizeof(key));
    return bpf_map_lookup_elem(&plait_rules, &key);
}

SEC("sockops")
int plait_choose(struct bpf_sock_ops *ops)
{
    // A client's socket is given its controller before it sends. MPTCP puts back that of the
    // connection when a subflow joins it, so it is given once more then.
    bool is_first = ops->op == BPF_SOCK_OPS_TCP_CONNECT_CB;
    struct record *known;
    struct rule *rule;

    if (!is_first && ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
        ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
        return 1;
    rule = rule_for(ops);
    known = record();
    if (!rule || !known)
        return 1;
    if (bpf_setsockopt(ops, LEVEL_TCP, OPTION_CONGESTION, rule->name, sizeof(rule->name)) != 0) {
        __sync_fetch_and_add(&known->refused, !is_first);
    } else if (!is_first) {
        __sync_fetch_and_add(&rule->chosen, 1);
        __sync_fetch_and_add(&known->connections, 1);
    }
    return 1;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
