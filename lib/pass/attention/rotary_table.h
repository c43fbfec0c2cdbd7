/* rotary_table.h - the cosines or sines that a rotation multiplies, as its operator reads them: one
 * for each pair of elements and token. rotary_table.c reads them, rotary_write.c writes them;
 * rotary_form.c finds the rotation itself.
 */
#ifndef ORT_PASS_ATTENTION_ROTARY_TABLE_H
#define ORT_PASS_ATTENTION_ROTARY_TABLE_H

#include "emit/emit.h"
#include "pass/pass.h"

typedef enum ort_rotary_spread { /* where the number of pair i stands, of h pairs */
    ORT_ROTARY_HALVES, /* at i and i + h: elements i and i + h are a pair */
    ORT_ROTARY_PAIRS,  /* at 2i and 2i + 1, which are a pair */
    ORT_ROTARY_ONCE,   /* at i alone */
} ort_rotary_spread;

typedef struct ort_rotary_table {
    ort_rotary_spread spread;
    int head;                 /* the dimension of 1 for the heads */
    const ort_node *chain[6]; /* elementwise operators from the whole up to `half` */
    int count, slot[6];       /* of the input on that way */
    ort_id half;            /* [B,S,h] or [1,S,h], with a 1 for the heads, or [S,h]; or NONE */
    const ort_tensor *rows; /* else a constant of rows [P,D] or [P,h], */
    const ort_node *slice;  /* which takes some of the rows first, or NULL */
    ort_id positions;       /* of which these [B,S] are read; NONE: all P = S, for each of B, */
    ort_id picked;          /* or these [1,S], for each of B */
    bool one_batch;         /* it is the same for all of B, which isn't known to be 1 */
} ort_rotary_table;

/* Does `id` broadcast as such a table onto x [B,H,S,D] (rows_first: [B,S,H,D])? */
bool ort_rotary_read_table(const ort_pass_context *context, ort_id id, const ort_type *x,
                           bool rows_first, ort_rotary_spread spread, ort_rotary_table *table);
/* Are both read in the same way? */
bool ort_rotary_alike(const ort_rotary_table *a, const ort_rotary_table *b);
/* For ai.onnx: [B,S,h]; or rows [P,h], of which `positions` are read. `source` has x's batch as its
 * first dimension. */
ort_id ort_rotary_write_table(const ort_pass_context *context, ort_emit *e,
                              const ort_rotary_table *table, const ort_type *x, ort_id source);
/* Why com.microsoft's operator can't read it, or NULL. */
const char *ort_rotary_microsoft_fits(const ort_pass_context *context, const ort_type *x,
                                      const ort_rotary_table *table);
/* For com.microsoft: two tables as rows [P,h], and the positions of the tokens, [B,S] or [1]. */
void ort_rotary_write_rows(ort_emit *e, const ort_rotary_table tables[2], ort_id ids[2],
                           ort_id *positions);

#endif
