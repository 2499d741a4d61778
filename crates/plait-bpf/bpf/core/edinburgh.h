// SPDX-License-Identifier: MIT OR Apache-2.0
// TCP Edinburgh with its default parameters (docs/algorithms/edinburgh.md): WhiteHaul's growth with
// HyStart++ (RFC 9406) in front, and a window that may grow again after a queue.

#ifndef PLAIT_CORE_EDINBURGH_H
#define PLAIT_CORE_EDINBURGH_H

#include "window.h"

#define EDINBURGH_ALPHA_MAX 50
#define EDINBURGH_ALPHA_BASE 1
#define EDINBURGH_BETA_64THS 6
#define EDINBURGH_ADV (100u << CC_SEGMENT_SHIFT)
#define EDINBURGH_WINDOW_THRESH (10u << CC_SEGMENT_SHIFT)
#define EDINBURGH_THETA 2
#define EDINBURGH_DELAY_NS 50000000ull
// Seconds that the base round-trip time is remembered.
#define EDINBURGH_SLOTS 10
// RFC 9406 section 4.3.
#define HYSTART_THRESH_MIN_US 4000
#define HYSTART_THRESH_MAX_US 16000
#define HYSTART_SAMPLES 8
#define HYSTART_ROUNDS 5
#define HYSTART_GROWTH (8u << CC_SEGMENT_SHIFT)

// Fits the 104 bytes that a socket has for its controller.
struct cc_edinburgh {
    struct cc_window window;
    cc_u64 sum_us;
    cc_u32 count;
    cc_u32 round_end;
    // Least round-trip times of the last ten seconds, each at its second modulo ten.
    cc_u32 least_us[EDINBURGH_SLOTS];
    cc_u32 second;
    // HyStart++: least round-trip times of the round before, of this one, and where conservative
    // slow start began; CC_NONE where there is none.
    cc_u32 last_us;
    cc_u32 current_us;
    cc_u32 baseline_us;
    cc_u32 slow_start_end;
    cc_u16 samples;
    cc_u8 rounds;
    // It is at work; it was before the latest loss.
    cc_u8 is_ramping : 1;
    cc_u8 was_ramping : 1;
    // There was a queue, and not yet enough rounds without one since.
    cc_u8 above : 1;
    cc_u8 low;
    cc_u8 alpha;
};

CC_INLINE void edinburgh_begin_round(struct cc_edinburgh *cc, cc_u32 sent)
{
    cc->round_end = sent;
    cc->sum_us = 0;
    cc->count = 0;
}

CC_INLINE void edinburgh_init(struct cc_edinburgh *cc, cc_u32 units, cc_u32 sent)
{
    int slot;

    cc_window_init(&cc->window, units);
    for (slot = 0; slot < EDINBURGH_SLOTS; slot++)
        cc->least_us[slot] = CC_NONE;
    cc->second = 0;
    cc->last_us = CC_NONE;
    cc->current_us = CC_NONE;
    cc->baseline_us = CC_NONE;
    cc->slow_start_end = sent;
    cc->samples = 0;
    cc->rounds = 0;
    cc->is_ramping = 1;
    cc->was_ramping = 0;
    cc->above = 0;
    cc->low = 0;
    cc->alpha = EDINBURGH_ALPHA_BASE;
    edinburgh_begin_round(cc, sent);
}

// Forgets the seconds that are over.
CC_INLINE void edinburgh_age(struct cc_edinburgh *cc, cc_u32 second)
{
    int slot;

    if (second == cc->second)
        return;
    for (slot = 0; slot < EDINBURGH_SLOTS; slot++) {
        // The seconds from the newest that was seen to this one that the slot stood for.
        cc_u32 back = (second + EDINBURGH_SLOTS - slot) % EDINBURGH_SLOTS;

        if (back < second - cc->second)
            cc->least_us[slot] = CC_NONE;
    }
    cc->second = second;
}

CC_INLINE cc_u32 edinburgh_base_us(const struct cc_edinburgh *cc)
{
    cc_u32 least = CC_NONE;
    int slot;

    for (slot = 0; slot < EDINBURGH_SLOTS; slot++)
        least = cc_min(least, cc->least_us[slot]);
    return least;
}

CC_INLINE void edinburgh_sample(struct cc_edinburgh *cc, cc_u64 now_us, cc_u32 rtt_us)
{
    cc_u32 second = (cc_u32)(now_us / 1000000);
    cc_u32 slot = second % EDINBURGH_SLOTS;

    edinburgh_age(cc, second);
    if (slot < EDINBURGH_SLOTS)
        cc->least_us[slot] = cc_min(cc->least_us[slot], rtt_us);
    cc->sum_us += rtt_us;
    cc->count += 1;
}

// HyStart++'s samples, which only count where slow start may grow the window.
CC_INLINE void edinburgh_ramp_sample(struct cc_edinburgh *cc, cc_u32 rtt_us)
{
    if (!cc->is_ramping || !cc_in_slow_start(&cc->window))
        return;
    cc->current_us = cc_min(cc->current_us, rtt_us);
    if (cc->samples < 0xffff)
        cc->samples += 1;
}

CC_INLINE void edinburgh_end_round(struct cc_edinburgh *cc, const struct cc_ack *ack)
{
    struct cc_window *window = &cc->window;
    cc_u64 mean_ns, base_ns, queued_ns;
    cc_u32 base_us;

    edinburgh_age(cc, (cc_u32)(ack->now_us / 1000000));
    base_us = edinburgh_base_us(cc);
    if (base_us == CC_NONE || cc->count == 0)
        return;
    mean_ns = cc->sum_us * 1000 / cc->count;
    base_ns = (cc_u64)base_us * 1000;
    queued_ns = mean_ns > base_ns ? mean_ns - base_ns : 0;
    if (queued_ns > EDINBURGH_DELAY_NS) {
        cc->above = 1;
        cc->low = 0;
    } else if (cc->above) {
        cc->low += 1;
        if (cc->low >= EDINBURGH_THETA) {
            cc->above = 0;
            cc->low = 0;
        }
    }
    cc->alpha = EDINBURGH_ALPHA_MAX;
    if (cc->above || window->units >= EDINBURGH_ADV)
        cc->alpha = EDINBURGH_ALPHA_BASE;
    if (queued_ns > EDINBURGH_DELAY_NS && ack->phase == CC_OPEN && !ack->app_limited &&
        !cc_in_slow_start(window) && window->units > EDINBURGH_ADV)
        cc_settle(window, EDINBURGH_ADV);
    if (window->units < EDINBURGH_WINDOW_THRESH)
        cc->alpha = EDINBURGH_ALPHA_BASE;
}

// Enters conservative slow start when delay has risen, leaves it when delay has fallen again.
CC_INLINE void edinburgh_judge_delay(struct cc_edinburgh *cc)
{
    cc_u32 threshold_us;

    if (cc->samples < HYSTART_SAMPLES || cc->current_us == CC_NONE)
        return;
    if (cc->baseline_us != CC_NONE) {
        if (cc->current_us < cc->baseline_us)
            cc->baseline_us = CC_NONE;
        return;
    }
    if (cc->last_us == CC_NONE)
        return;
    // In eighths of a microsecond, so that nothing is rounded.
    threshold_us = cc_min(cc_max(cc->last_us, 8 * HYSTART_THRESH_MIN_US), 8 * HYSTART_THRESH_MAX_US);
    if (8ull * cc->current_us >= 8ull * cc->last_us + threshold_us) {
        cc->baseline_us = cc->current_us;
        cc->rounds = 0;
    }
}

// By how much slow start may grow the window; CC_NONE when it is over.
CC_INLINE cc_u32 edinburgh_ramp(struct cc_edinburgh *cc, const struct cc_ack *ack)
{
    cc_u32 growth = cc_min(ack->acked, HYSTART_GROWTH);

    if (!cc->is_ramping)
        return ack->acked;
    edinburgh_judge_delay(cc);
    if (!cc_after(cc->slow_start_end, ack->newest)) {
        cc->slow_start_end = ack->sent;
        cc->last_us = cc->current_us;
        cc->current_us = CC_NONE;
        cc->samples = 0;
        if (cc->baseline_us != CC_NONE) {
            cc->rounds += 1;
            if (cc->rounds >= HYSTART_ROUNDS) {
                cc->is_ramping = 0;
                return CC_NONE;
            }
        }
    }
    return cc->baseline_us != CC_NONE ? growth / 4 : growth;
}

CC_INLINE void edinburgh_ack(struct cc_edinburgh *cc, const struct cc_ack *ack)
{
    struct cc_window *window = &cc->window;
    cc_u32 acked = ack->acked;

    if (cc_after(ack->newest, cc->round_end)) {
        edinburgh_end_round(cc, ack);
        edinburgh_begin_round(cc, ack->sent);
    }
    if (cc_in_slow_start(window)) {
        cc_u32 growth = edinburgh_ramp(cc, ack);

        if (growth == CC_NONE)
            window->ssthresh = window->units;
        else if (!ack->app_limited)
            acked = cc_ramp_up(window, growth);
    }
    if (!ack->app_limited && !cc_in_slow_start(window))
        cc_grow(window, acked, (cc_s64)cc->alpha << CC_GAIN_SHIFT);
}

CC_INLINE void edinburgh_reduce(struct cc_edinburgh *cc)
{
    cc_u32 units = cc->window.units;

    cc_reduce(&cc->window, units - (cc_u32)((cc_u64)units * EDINBURGH_BETA_64THS / 64));
    cc->was_ramping = cc->is_ramping;
    cc->is_ramping = 0;
}

CC_INLINE void edinburgh_rto(struct cc_edinburgh *cc, cc_u32 sent)
{
    cc->alpha = EDINBURGH_ALPHA_BASE;
    cc->above = 0;
    cc->low = 0;
    edinburgh_begin_round(cc, sent);
}

// The latest loss was none.
CC_INLINE void edinburgh_undo(struct cc_edinburgh *cc)
{
    cc->is_ramping = cc->was_ramping;
    cc->was_ramping = 0;
}

#endif
