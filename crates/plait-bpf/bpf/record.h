// SPDX-License-Identifier: MIT OR Apache-2.0
// What stands beside everything that is loaded: who did it and when. Filled by the loader.

#ifndef PLAIT_RECORD_H
#define PLAIT_RECORD_H

#include "kernel.h"

struct record {
    // Connections that run it now; of a choosing program: sockets that it chose for.
    u64 connections;
    // Sockets that the kernel would not let it choose for.
    u64 refused;
    u64 since_unix_s;
    u32 pid;
    u32 unused;
    char version[16];
    // What it is attached to.
    char about[208];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct record);
} plait_record SEC(".maps");

static __always_inline struct record *record(void)
{
    u32 zero = 0;

    return bpf_map_lookup_elem(&plait_record, &zero);
}

static __always_inline void count_connection(s64 more)
{
    struct record *known = record();

    if (known)
        __sync_fetch_and_add(&known->connections, more);
}

#endif
