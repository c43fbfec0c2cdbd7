/* parts.h - of results that join numbers of different sizes, as boxes in pixels and scores from 0
 * to 1 are joined: how near the small ones are. A ratio of all of them together is that of the
 * large.
 *
 * Channels are the places along one axis, of three and more: the second or the last. Sorted by
 * their root mean squares, a part ends where the next channel is ten times as large.
 */
#ifndef COMMON_PARTS_H
#define COMMON_PARTS_H

#include "ort.h"

struct json_object;

typedef struct part_sums { /* sums over samples; zeros to begin with */
    struct parts_axis {
        int64_t channels; /* -1: samples have other numbers of them, or too many; 0: none yet */
        double *signal, *noise; /* [channels] of x^2, of (x - y)^2; x the reference */
        double count;           /* of numbers in each */
        int axis;
    } second, last;
} part_sums;

typedef struct worst_part {
    int axis;
    char list[64];    /* its channels: "0-3, 7" */
    int64_t channels; /* of all parts */
    double sqnr_db;
    double smaller;   /* how many times the rest is as large */
} worst_part;

/* Both of one shape; what is no tensor of real numbers is left out. */
void parts_add(part_sums *p, const ort_value *reference, const ort_value *other);
/* Of those that are smaller than the rest the one that is furthest from the reference; false: all
 * channels are of one size, or hold too few numbers to tell. */
bool parts_worst(const part_sums *p, worst_part *worst);
/* "channels 4-84 of 85 along axis 2, 210 times smaller than the rest: SQNR 12.31 dB"; 200 bytes. */
const char *part_text(const worst_part *p, char *text, size_t room);
/* Member "worst_part" of a report, where there are parts. */
void parts_json(struct json_object *object, const part_sums *p);
void parts_release(part_sums *p);

#endif
