/* mask_cases.h - what a mask says, computed instead of compared with spellings: it, and every value
 * that it is made of, has one number where a key counts and another where it doesn't. What a key's
 * counting hangs on is read by whoever asks: a list of keys (attention_keys.c), or positions
 * (attention_causal.c).
 */
#ifndef ORT_PASS_ATTENTION_MASK_CASES_H
#define ORT_PASS_ATTENTION_MASK_CASES_H

#include "op/edit.h"

typedef struct ort_cases {
    double at[2]; /* in the first case, and in the second */
    bool varies;  /* these are two; then the value is placed */
    bool raw;     /* integers of which only the first number is 0, or these as floats */
    bool loose;   /* computed of such: true of 0 and 1 alone */
} ort_cases;

typedef struct ort_cases_reader {
    const ort_graph *graph;
    ort_id source; /* the value that tells the cases apart, found so far; or ORT_ID_NONE */
    /* The cases of a value that nothing is computed for. */
    bool (*leaf)(struct ort_cases_reader *reader, ort_id id, ort_cases *cases);
    /* Has it the dims along which the cases lie? */
    bool (*is_placed)(const struct ort_cases_reader *reader, ort_id id);
    /* Does this Reshape, or its kin, or an Expand, of a placed value leave each element in its
     * place, if the result is placed? NULL: always. */
    bool (*keeps_place)(const struct ort_cases_reader *reader, const ort_node *node);
    bool from_front; /* dims are counted from the first: operands of fewer don't fit */
    const void *arg;
    int depth; /* how far inside of what is read */
} ort_cases_reader;

/* Integers are compared with 0 alone, and before anything is computed of them. False: it isn't made
 * of the source and of numbers alone, or one of them isn't known. */
bool ort_cases_read(ort_cases_reader *reader, ort_id id, ort_cases *cases);

#endif
