/* shares.h - how much of a stage of long work is done, for who asked to be told (ort_share_fn). */
#ifndef ORT_QUANTIZE_SHARES_H
#define ORT_QUANTIZE_SHARES_H

#include "ort.h"

/* All zero: nobody asked. */
typedef struct ort_shares {
    ort_share_fn *fn;
    void *arg;
    const char *stage;
    double total, done;
} ort_shares;

/* Told by the caller's thread alone. */
static inline void ort_shares_add(ort_shares *s, double amount)
{
    s->done += amount;
    if (s->fn && s->total > 0)
        s->fn(s->arg, s->stage, s->done < s->total ? s->done / s->total : 1);
}

static inline void ort_shares_begin(ort_shares *s, const char *stage, double total)
{
    s->stage = stage;
    s->total = total;
    s->done = 0;
    ort_shares_add(s, 0);
}

#endif
