// SPDX-License-Identifier: MIT OR Apache-2.0
// What the controllers' cores share. Plain integers, no kernel types: a core is compiled into a
// program for the kernel, and by cc into the program that the differential test runs.
//
// Windows and amounts are in units, of which a segment has 1024; gains are in units of 2^-30.

#ifndef PLAIT_CORE_BASE_H
#define PLAIT_CORE_BASE_H

#define CC_INLINE static inline __attribute__((always_inline))

typedef unsigned char cc_u8;
typedef unsigned short cc_u16;
typedef unsigned int cc_u32;
typedef unsigned long long cc_u64;
typedef long long cc_s64;

#define CC_SEGMENT_SHIFT 10
#define CC_SEGMENT (1u << CC_SEGMENT_SHIFT)
// No window is larger, in segments; what one acknowledgement may bring.
#define CC_SEGMENTS_MAX (1u << 16)
#define CC_ACKED_MAX (1u << 12)
#define CC_GAIN_SHIFT 30
#define CC_GAIN_ONE (1ll << CC_GAIN_SHIFT)
// An ssthresh or a round-trip time that is not known.
#define CC_NONE 0xffffffffu
// A reduction leaves so many segments at least.
#define CC_LEFT_MIN 2u
// Growth by whole segments that one acknowledgement may bring; what is beyond waits for the next.
#define CC_STEPS_MAX 64

enum { CC_OPEN = 0, CC_FAST_RECOVERY = 1, CC_RTO_RECOVERY = 2 };

// An acknowledgement outside fast recovery.
struct cc_ack {
    cc_u64 now_us;
    // In units.
    cc_u32 acked;
    // Places in the order of sending, modulo 2^32: of the newest that arrived, of the next to send.
    cc_u32 newest;
    cc_u32 sent;
    cc_u8 phase;
    // The application or the receiver, rather than the window, limits what is in flight.
    cc_u8 app_limited;
};

CC_INLINE cc_u32 cc_min(cc_u32 a, cc_u32 b)
{
    return a < b ? a : b;
}

CC_INLINE cc_u32 cc_max(cc_u32 a, cc_u32 b)
{
    return a > b ? a : b;
}

// Whether a was sent after b.
CC_INLINE int cc_after(cc_u32 a, cc_u32 b)
{
    return (int)(a - b) > 0;
}

// How many bits a number has beyond 33, or a few more.
CC_INLINE cc_u32 cc_bits_beyond(cc_u64 number)
{
    cc_u32 bits = 0;

    if (number >> 49) {
        bits += 16;
        number >>= 16;
    }
    if (number >> 41) {
        bits += 8;
        number >>= 8;
    }
    if (number >> 37) {
        bits += 4;
        number >>= 4;
    }
    if (number >> 35) {
        bits += 2;
        number >>= 2;
    }
    return bits + (cc_u32)(number >> 33 ? 2 : 0);
}

// part / whole in units of 2^-30, where whole > 0 and part <= whole.
CC_INLINE cc_u64 cc_ratio(cc_u64 part, cc_u64 whole)
{
    cc_u32 bits = cc_bits_beyond(whole);

    return ((part >> bits) << CC_GAIN_SHIFT) / (whole >> bits);
}

#endif
