// SPDX-License-Identifier: MIT OR Apache-2.0
// Counts the acknowledgements that the kernel's TCP takes: what tells whether tracing works here.

#include "kernel.h"

u64 seen = 0;

SEC("tp_btf/tcp_probe")
int BPF_PROG(plait_probe, struct sock *sk)
{
    __sync_fetch_and_add(&seen, 1);
    return 0;
}

// The code is Apache-2.0 OR MIT; to the kernel this string says that it may call all helpers.
char LICENSE[] SEC("license") = "Dual MIT/GPL";
