/* rows.h - values that hold several samples, cut into them along their first axis. */
#ifndef ORT_QUANTIZE_ROWS_H
#define ORT_QUANTIZE_ROWS_H

#include "common/tool.h"

typedef struct row_cutter {
    size_t inputs;
    int64_t *take;     /* [inputs] of its rows in a sample; 0: all samples have the whole value */
    ort_value **parts; /* [inputs] of the present sample */
    int64_t count, at; /* samples */
} row_cutter;

void rows_open(row_cutter *r, size_t inputs);
/* How many rows of each value a sample takes: as many as a fixed first dimension of its input says;
 * else `wanted`, 0: all of them. All samples have the values in `shared` (or NULL). `place` names
 * them in messages. 0 or an exit status. */
int rows_plan(row_cutter *r, const ort_session *session, ort_value *const *values,
              ort_value *const *shared, int64_t wanted, const char *place);
/* The next sample: whole values, or parts that the rows own until the next. */
int rows_next(row_cutter *r, ort_value *const *values, ort_value **inputs);
void rows_close(row_cutter *r);

#endif
