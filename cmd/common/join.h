/* join.h - tensors of several records as one: along an axis they have, or along a new one. */
#ifndef COMMON_JOIN_H
#define COMMON_JOIN_H

#include "common/tool.h"

enum { JOIN_NEW = INT32_MIN }; /* a new first axis */

/* May these be joined? They need one element type, and one shape but for the size of `axis`
 * (negative: from the end). Writes why not into `why`, when it is not NULL. */
bool join_fits(ort_value *const *values, size_t count, int64_t axis, char *why, size_t why_size);
/* A tensor of its own; of another value a reference, which needs no copy: they don't change. */
int join_copy(ort_value *value, ort_value **copy);
/* `count` of a tensor's rows (along its first axis, which it has). */
int join_part(const ort_value *value, int64_t begin, int64_t count, ort_value **part);
/* The columns that go with rows of each record, one after another, into `all`. */
int join_columns(ort_tensors *const *records, size_t count, ort_tensors *all);
/* Joins values that fit. Returns 0, or an exit status after saying why. */
int join_values(ort_value *const *values, size_t count, int64_t axis, ort_value **joined);

/* Rows (along the first axis, which they have and may differ in) of each value in turn: as many
 * turns as the first has rows. */
int join_turns(ort_value *const *values, size_t count, ort_value **joined);

#endif
