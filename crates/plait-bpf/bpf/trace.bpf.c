// SPDX-License-Identifier: MIT OR Apache-2.0
// What the senders of TCP connections and MPTCP subflows do, told whenever an acknowledgement or
// data arrives, but for each socket only now and then.

#include "kernel.h"

// Ports that settings may name.
#define PORTS_MAX 16

// Members beyond kernel.h's; what follows the three underscores is not part of a name.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common___trace {
    unsigned int inum;
};

struct net___trace {
    struct ns_common___trace ns;
};

typedef struct {
    struct net___trace *net;
} possible_net_t___trace;

struct sock_common___trace {
    possible_net_t___trace skc_net;
};

struct sock___trace {
    struct sock_common___trace __sk_common;
};

struct tcp_sock___trace {
    u32 snd_wnd;
    u32 mss_cache;
    u32 rate_delivered;
    u32 rate_interval_us;
    u32 total_retrans;
    u64 bytes_acked;
};

struct mptcp_subflow_context___trace {
    u32 token;
    __s16 local_id;
};

#pragma clang attribute pop

// What the program is told. The layout is that of `Settings` in src/trace.rs.
struct settings {
    u64 every_ns;
    u32 netns;
    u16 port_count;
    u16 ports[PORTS_MAX];
};

// What it tells. The layout is that of `Event` in src/trace.rs.
struct event {
    u64 at_ns;
    u64 socket;
    u64 acked_bytes;
    u32 token;
    u32 cwnd;
    u32 ssthresh;
    u32 send_window;
    u32 srtt_us;
    u32 retransmits;
    u32 mss;
    u32 rate_delivered;
    u32 rate_interval_us;
    u16 local_port;
    // In the network's order.
    u16 remote_port;
    u8 local[16];
    u8 remote[16];
    u8 is_v6;
    u8 is_subflow;
    u8 subflow;
    u8 unused[5];
};

// What is remembered of a socket.
struct last {
    u64 at_ns;
    u32 ssthresh;
};

struct counts {
    u64 seen;
    u64 lost;
    u64 spent_ns;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct settings);
} settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct counts);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct last);
} sockets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 * 1024 * 1024);
} events SEC(".maps");

static __always_inline bool wants_port(const struct settings *told, u16 local, u16 remote)
{
    for (int n = 0; n < PORTS_MAX; n++) {
        if (n >= told->port_count)
            break;
        if (told->ports[n] == local || told->ports[n] == remote)
            return true;
    }
    return told->port_count == 0;
}

static __always_inline void tell_subflow(struct event *event, struct tcp_sock *tp)
{
    if (!bpf_core_field_exists(tp->is_mptcp) || !tp->is_mptcp)
        return;
    struct mptcp_subflow_context___trace *subflow = inet_csk((struct sock *)tp)->icsk_ulp_data;
    u16 id = 0;
    // It was a byte before Linux 6.8.
    if (bpf_core_field_size(subflow->local_id) == 1)
        bpf_core_read(&id, 1, &subflow->local_id);
    else
        bpf_core_read(&id, 2, &subflow->local_id);
    bpf_core_read(&event->token, 4, &subflow->token);
    event->subflow = id;
    event->is_subflow = 1;
}

static __always_inline void tell(struct event *event, struct sock *sk, struct tcp_sock *tp)
{
    struct tcp_sock___trace *more = (void *)tp;
    event->acked_bytes = more->bytes_acked;
    event->cwnd = tp->snd_cwnd;
    event->ssthresh = tp->snd_ssthresh;
    event->send_window = more->snd_wnd;
    event->srtt_us = tp->srtt_us >> 3;
    event->retransmits = more->total_retrans;
    event->mss = more->mss_cache;
    event->rate_delivered = more->rate_delivered;
    event->rate_interval_us = more->rate_interval_us;
    event->local_port = sk->__sk_common.skc_num;
    event->remote_port = sk->__sk_common.skc_dport;
    event->is_v6 = sk->__sk_common.skc_family == AF_INET6;
    if (event->is_v6) {
        BPF_CORE_READ_INTO((struct in6_addr *)event->local, sk, __sk_common.skc_v6_rcv_saddr);
        BPF_CORE_READ_INTO((struct in6_addr *)event->remote, sk, __sk_common.skc_v6_daddr);
    } else {
        *(u32 *)event->local = sk->__sk_common.skc_rcv_saddr;
        *(u32 *)event->remote = sk->__sk_common.skc_daddr;
    }
    tell_subflow(event, tp);
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(plait_trace, struct sock *sk)
{
    u64 now = bpf_ktime_get_ns();
    u32 only = 0;
    struct settings *told = bpf_map_lookup_elem(&settings, &only);
    struct counts *count = bpf_map_lookup_elem(&counts, &only);
    struct sock___trace *placed = (void *)sk;
    if (!told || !count || placed->__sk_common.skc_net.net->ns.inum != told->netns)
        return 0;
    u16 remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
    if (!wants_port(told, sk->__sk_common.skc_num, remote_port))
        return 0;
    count->seen++;
    struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
    struct last *last = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!tp || !last)
        return 0;
    // A reduction is told at once.
    u32 ssthresh = tp->snd_ssthresh;
    if (now - last->at_ns < told->every_ns && ssthresh == last->ssthresh)
        goto out;
    struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        count->lost++;
        goto out;
    }
    __builtin_memset(event, 0, sizeof(*event));
    last->at_ns = now;
    last->ssthresh = ssthresh;
    event->at_ns = now;
    event->socket = bpf_get_socket_cookie(sk);
    tell(event, sk, tp);
    // The reader looks by itself, often enough.
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
out:
    count->spent_ns += bpf_ktime_get_ns() - now;
    return 0;
}

// The code is Apache-2.0 OR MIT; to the kernel this string says that it may call all helpers.
char LICENSE[] SEC("license") = "Dual MIT/GPL";
