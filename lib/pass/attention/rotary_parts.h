/* rotary_parts.h - what a rotation turns: the elements that are a pair, and how they are put
 * together again. rotary_form.c has the rows that name them.
 */
#ifndef ORT_PASS_ATTENTION_ROTARY_PARTS_H
#define ORT_PASS_ATTENTION_ROTARY_PARTS_H

#include "pass/attention/rotary_table.h"
#include "pass/rewrite.h"

/* What is known of a row: a rotation before heads are split; of the first elements alone; of
 * neighbours; whose tables have one number for each pair. */
enum {
    ORT_FORM_HEADS = 1,
    ORT_FORM_PART = 2,
    ORT_FORM_PAIRS = 4,
    ORT_FORM_ONCE = 8
};

typedef struct ort_rotation {
    ort_rotary_spread spread; /* of the tables */
    bool pairs, rows_first;
    ort_id x;         /* [B,H,S,D] or [B,S,H,D]; or ORT_ID_NONE */
    ort_id joined;    /* [B,S,H*D], where that is there; or ORT_ID_NONE */
    ort_type type;    /* of x */
    ort_id cos, sin;
    ort_rotary_table tables[2];
} ort_rotation;

/* Is this [..., D] parted into the first `half` elements, l, and the rest, h, which the match's k
 * puts together again? NULL: so it is; else why not. */
const char *ort_rotary_check_parts(const ort_graph *graph, const ort_match *match, ort_id of,
                                   int64_t half);
/* Everything of *rotation but the tables; NULL, or why it isn't one. */
const char *ort_rotary_read_parts(const ort_graph *graph, const ort_match *match,
                                  ort_rotation *rotation);

#endif
