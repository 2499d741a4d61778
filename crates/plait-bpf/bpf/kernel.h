// SPDX-License-Identifier: MIT OR Apache-2.0
// The kernel's structures, as far as the programs here use them. Members are found by name in the
// running kernel's BTF when a program is loaded; order and places here mean nothing.

#ifndef PLAIT_KERNEL_H
#define PLAIT_KERNEL_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define AF_INET 2
#define AF_INET6 10

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
    union {
        u8 u6_addr8[16];
        __be32 u6_addr32[4];
    } in6_u;
};

struct sock_common {
    __be32 skc_daddr;
    __be32 skc_rcv_saddr;
    __be16 skc_dport;
    u16 skc_num;
    unsigned short skc_family;
    volatile unsigned char skc_state;
    int skc_bound_dev_if;
    struct in6_addr skc_v6_daddr;
    struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
    struct sock_common __sk_common;
};

struct inet_sock {
    struct sock sk;
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    void *icsk_ulp_data;
    u8 icsk_ca_state : 5;
    u64 icsk_ca_priv[13];
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    u32 snd_nxt;
    u32 snd_una;
    u32 snd_cwnd;
    u32 snd_cwnd_cnt;
    u32 snd_ssthresh;
    u32 prior_cwnd;
    u32 prior_ssthresh;
    u32 srtt_us;
    u32 max_packets_out;
    u32 packets_out;
    u8 is_cwnd_limited : 1;
    bool is_mptcp;
};

struct mptcp_sock {
    struct inet_connection_sock sk;
    u32 token;
};

struct mptcp_subflow_context {
    struct sock *conn;
};

struct ack_sample {
    u32 pkts_acked;
    s32 rtt_us;
    u32 in_flight;
};

struct tcp_congestion_ops {
    u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
    void (*set_state)(struct sock *sk, u8 new_state);
    void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
    u32 (*undo_cwnd)(struct sock *sk);
    char name[16];
    u32 flags;
    void (*init)(struct sock *sk);
    void (*release)(struct sock *sk);
};

#pragma clang attribute pop

// States of a sender, in icsk_ca_state.
enum { TCP_CA_Open_ = 0, TCP_CA_Disorder_ = 1, TCP_CA_CWR_ = 2, TCP_CA_Recovery_ = 3, TCP_CA_Loss_ = 4 };

// May be used without CAP_NET_ADMIN, and so be a namespace's default.
#define TCP_CONG_NON_RESTRICTED_ 1

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
    return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(struct sock *sk)
{
    return (struct inet_connection_sock *)sk;
}

#endif
