/* away.h - values that lie on a device: how runs take them, and give them.
 *
 * A run sees a tensor of the host in the place of each, a stand-in, whose data is there only if a
 * step of the host or another device reads it. What a part of the value's own device reads or
 * writes it reads or writes in its memory: the frame then knows of the loan.
 */
#ifndef ORT_EXEC_AWAY_H
#define ORT_EXEC_AWAY_H

#include "exec/session.h"
#include "provider/device.h"

/* What one run lends to a frame. */
typedef struct ort_loan {
    const ort_value **in; /* by given value: on a device; NULL: on the host */
    ort_value **out;      /* by output: what a part writes where it lies; or NULL */
} ort_loan;

/* Made on the device, of unset elements. */
ort_status ort_device_value_new(ort_device *device, ort_dtype dtype, const ort_shape *shape,
                                ort_value **value, ort_error *err);
/* All elements, from the host. */
ort_status ort_device_value_write(ort_value *value, const void *data, ort_error *err);
/* Of the provider of its device. */
void *ort_device_value_memory(const ort_value *value);
/* Do both lie in the same memory? */
bool ort_device_values_meet(const ort_value *a, const ort_value *b);
static inline bool ort_value_is_away(const ort_value *value)
{
    return value && value->kind == ORT_KIND_DEVICE;
}
/* Index of the provider of the list that has its device; -1: none. */
int ort_device_index(const ort_partition *partition, const ort_device *device);
/* ORT_ERROR_USAGE unless the session has the device; `what` is "input", "output". */
ort_status ort_device_check(const ort_session *session, const ort_device *device, const char *what,
                            const char *name, ort_error *err);

/* ---- loan.c: runs. Is one of the run's values on a device, or is a result to be made there? */
bool ort_loan_needed(const ort_execution *x);
/* What a run sees in the place of an input on a device. */
ort_status ort_loan_stand_in(const ort_execution *x, int input, ort_value **stand_in,
                             ort_error *err);
/* The frame knows what is lent, and stand-ins have data where it is read. */
ort_status ort_loan_begin(const ort_execution *x, ort_value *const *given, ort_frame *frame,
                          ort_error *err);
/* Does output o go to a device? */
bool ort_loan_takes(const ort_execution *x, int o);
/* Of a result whose place is known, its value NULL or of its type: where the run writes it. */
ort_status ort_loan_bind_output(const ort_execution *x, ort_frame *frame, int o, ort_error *err);
/* Once it is computed: on the device, if it isn't there by itself. */
ort_status ort_loan_finish_output(const ort_execution *x, ort_frame *frame, int o, ort_error *err);
void ort_loan_end(ort_frame *frame, ort_status status);

#endif
