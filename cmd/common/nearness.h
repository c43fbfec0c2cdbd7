/* nearness.h - distances of tensors (ort_distance) as people and programs read them. */
#ifndef COMMON_NEARNESS_H
#define COMMON_NEARNESS_H

#include <stddef.h>

#include "ort.h"

struct json_object;

/* "41.20" of a ratio in decibels; "exact", where it is infinite, "-inf", "none" (nothing to
 * compare). `room` bytes: 24 do. Returns text. */
const char *nearness_sqnr(double db, char *text, size_t room);
/* "SQNR 41.20 dB, cosine 0.999951"; 80 bytes do. */
const char *nearness_text(const ort_distance *d, char *text, size_t room);
/* Members of a report: "sqnr_db" (null where it is no finite number), "exact" (all are equal),
 * "cosine" (null where there is none). */
void nearness_json(struct json_object *object, const ort_distance *d);

#endif
