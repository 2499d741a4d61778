// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs a controller's core, outside the kernel, on recorded events from stdin: a line for each, and
// for each a line with window and ssthresh, in units. The test `differential` writes the former and
// reads the latter. It stands where the kernel's sender stands, and remembers the window for an
// undo.

#include <stdio.h>
#include <string.h>

#include "core/balia.h"
#include "core/edinburgh.h"
#include "core/illinois.h"
#include "core/lia.h"
#include "core/olia.h"
#include "core/whitehaul.h"

#define WINDOW_START_SEGMENTS 10

struct timeout {
    unsigned flight, in_flight, is_new, sent;
};

struct acknowledged {
    struct cc_ack ack;
    struct cc_flows flows;
    // Below zero: no sample.
    long long rtt_us;
};

static union {
    struct cc_balia balia;
    struct cc_edinburgh edinburgh;
    struct cc_illinois illinois;
    struct cc_lia lia;
    struct cc_olia olia;
    struct cc_whitehaul whitehaul;
} cc;

enum name { BALIA, EDINBURGH, ILLINOIS, LIA, OLIA, WHITEHAUL, NAMES };

static const char *const names[NAMES] = {"balia", "edinburgh", "illinois",
                                         "lia",   "olia",      "whitehaul"};
static enum name name;
static struct cc_window before;
static int has_before;

static int is_whole(void)
{
    return name == ILLINOIS || name == WHITEHAUL;
}

static struct cc_whole *whole(void)
{
    return name == ILLINOIS ? &cc.illinois.window : &cc.whitehaul.window;
}

static struct cc_window *window(void)
{
    switch (name) {
    case BALIA:
        return &cc.balia.window;
    case EDINBURGH:
        return &cc.edinburgh.window;
    case LIA:
        return &cc.lia.window;
    default:
        return &cc.olia.window;
    }
}

static void start(void)
{
    cc_u32 units = WINDOW_START_SEGMENTS << CC_SEGMENT_SHIFT;

    switch (name) {
    case BALIA:
        balia_init(&cc.balia, units);
        break;
    case EDINBURGH:
        edinburgh_init(&cc.edinburgh, units, 0);
        break;
    case ILLINOIS:
        illinois_init(&cc.illinois, WINDOW_START_SEGMENTS, 0);
        break;
    case LIA:
        lia_init(&cc.lia, units);
        break;
    case OLIA:
        olia_init(&cc.olia, units);
        break;
    default:
        whitehaul_init(&cc.whitehaul, WINDOW_START_SEGMENTS, 0);
    }
}

static void acknowledge_coupled(struct acknowledged *event, int grows)
{
    struct cc_share share;

    if (name == BALIA) {
        cc_share_of(&event->flows, &share);
        balia_observe(&cc.balia, &share);
    }
    if (!grows)
        return;
    if (name == BALIA)
        balia_ack(&cc.balia, &event->ack, &share);
    else if (name == LIA)
        lia_ack(&cc.lia, &event->ack, &event->flows);
    else
        olia_ack(&cc.olia, &event->ack, &event->flows);
}

static void acknowledge(struct acknowledged *event)
{
    int grows = event->ack.phase != CC_FAST_RECOVERY, has_rtt = event->rtt_us >= 0;

    switch (name) {
    case EDINBURGH:
        if (has_rtt)
            edinburgh_sample(&cc.edinburgh, event->ack.now_us, (cc_u32)event->rtt_us);
        if (has_rtt && grows)
            edinburgh_ramp_sample(&cc.edinburgh, (cc_u32)event->rtt_us);
        if (grows)
            edinburgh_ack(&cc.edinburgh, &event->ack);
        break;
    case ILLINOIS:
        if (has_rtt)
            illinois_sample(&cc.illinois, (cc_u32)event->rtt_us);
        if (grows)
            illinois_ack(&cc.illinois, &event->ack);
        break;
    case WHITEHAUL:
        if (has_rtt)
            whitehaul_sample(&cc.whitehaul, (cc_u32)event->rtt_us);
        if (grows)
            whitehaul_ack(&cc.whitehaul, &event->ack);
        break;
    default:
        event->flows.flow[0].window = window()->units;
        if (name == OLIA) {
            olia_count(&cc.olia, event->ack.acked);
            event->flows.flow[0].loss_gap = olia_loss_gap(&cc.olia);
        }
        acknowledge_coupled(event, grows);
    }
}

static void reduce(unsigned flight)
{
    if (is_whole())
        before = (struct cc_window){whole()->segments, whole()->ssthresh, 0};
    else
        before = *window();
    has_before = 1;
    switch (name) {
    case BALIA:
        balia_reduce(&cc.balia, flight);
        break;
    case EDINBURGH:
        edinburgh_reduce(&cc.edinburgh);
        break;
    case ILLINOIS:
        illinois_reduce(&cc.illinois);
        break;
    case LIA:
        lia_reduce(&cc.lia, flight);
        break;
    case OLIA:
        olia_reduce(&cc.olia, flight);
        break;
    default:
        whitehaul_reduce(&cc.whitehaul);
    }
}

static void time_out(const struct timeout *event)
{
    if (event->is_new)
        reduce(event->flight);
    if (is_whole()) {
        whole()->segments = ((event->in_flight + CC_SEGMENT - 1) >> CC_SEGMENT_SHIFT) + 1;
        whole()->credit = 0;
    } else {
        window()->units = event->in_flight + CC_SEGMENT;
        window()->credit = 0;
    }
    if (name == EDINBURGH)
        edinburgh_rto(&cc.edinburgh, event->sent);
    else if (name == ILLINOIS)
        illinois_rto(&cc.illinois, event->sent);
    else if (name == WHITEHAUL)
        whitehaul_rto(&cc.whitehaul, event->sent);
}

static void undo(void)
{
    if (!has_before)
        return;
    has_before = 0;
    if (is_whole()) {
        whole()->segments = cc_max(whole()->segments, before.units);
        whole()->ssthresh = cc_max(whole()->ssthresh, before.ssthresh);
        return;
    }
    window()->units = cc_max(window()->units, before.units);
    window()->ssthresh = cc_max(window()->ssthresh, before.ssthresh);
    if (name == EDINBURGH)
        edinburgh_undo(&cc.edinburgh);
}

static int read_acknowledged(struct acknowledged *event)
{
    unsigned phase, app_limited, siblings, each;
    struct cc_ack *ack = &event->ack;
    struct cc_flow *flow = event->flows.flow;

    memset(event, 0, sizeof(*event));
    if (scanf("%llu %u %u %u %lld %u %u %u %u", &ack->now_us, &ack->acked, &ack->newest, &ack->sent,
              &event->rtt_us, &flow[0].rtt_us, &phase, &app_limited, &siblings) != 9)
        return 0;
    ack->phase = (cc_u8)phase;
    ack->app_limited = (cc_u8)app_limited;
    for (each = 1; each <= siblings && each < CC_FLOWS_MAX; each++)
        if (scanf("%u %u %llu", &flow[each].window, &flow[each].rtt_us, &flow[each].loss_gap) != 3)
            return 0;
    return siblings < CC_FLOWS_MAX;
}

// Takes one event; zero where there is none, or what is read makes no sense.
static int step(void)
{
    struct acknowledged event;
    struct timeout timeout;
    unsigned flight;
    char kind;

    if (scanf(" %c", &kind) != 1)
        return 0;
    switch (kind) {
    case 'A':
        if (!read_acknowledged(&event))
            return 0;
        acknowledge(&event);
        return 1;
    case 'L':
        if (scanf("%u", &flight) != 1)
            return 0;
        reduce(flight);
        return 1;
    case 'T':
        if (scanf("%u %u %u %u", &timeout.flight, &timeout.in_flight, &timeout.is_new,
                  &timeout.sent) != 4)
            return 0;
        time_out(&timeout);
        return 1;
    case 'U':
        undo();
        return 1;
    default:
        return 0;
    }
}

int main(int count, char **words)
{
    for (name = 0; count == 2 && name < NAMES; name++)
        if (strcmp(names[name], words[1]) == 0)
            break;
    if (count != 2 || name == NAMES)
        return 2;
    start();
    while (step()) {
        if (is_whole())
            printf("%llu %llu\n", (cc_u64)whole()->segments << CC_SEGMENT_SHIFT,
                   (cc_u64)whole()->ssthresh << CC_SEGMENT_SHIFT);
        else
            printf("%u %u\n", window()->units, window()->ssthresh);
    }
    return 0;
}
