/* value_stream.h - values of any kind from one process of a tool to another: the same bits, in the
 * order in which they were written, in no format that leaves the machine.
 */
#ifndef COMMON_VALUE_STREAM_H
#define COMMON_VALUE_STREAM_H

#include <stdbool.h>
#include <stdio.h>

#include "ort.h"

/* value NULL: there is none. False: it can't be written. */
bool value_write(FILE *file, const ort_value *value);
/* The next one; *value NULL: none was written. An error also where the stream ends. */
ort_status value_read(FILE *file, ort_value **value, ort_error *err);

#endif
