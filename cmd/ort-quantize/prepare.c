/* prepare.c - samples as every process that reads them finds them. */
#include "quantize.h"

int prepare_samples(quantizing *q)
{
    int status = spool_samples(q);
    if (status == 0)
        status = make_up_samples(q);
    return status == 0 ? unroll_samples(q) : status;
}
