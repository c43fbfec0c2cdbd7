/* squashed.h - outputs that a Softmax or Sigmoid ends: where its result is near 0 or 1, what codes
 * do to a net can't be seen in it, and between them a single sample decides. What it reads shows
 * it.
 */
#ifndef ORT_QUANTIZE_SQUASHED_H
#define ORT_QUANTIZE_SQUASHED_H

#include "common/tool.h"
#include "ort_tools.h"

typedef struct squashed {
    string_list replaced; /* such outputs */
    string_list names;    /* what that operator reads for them, moves behind it left out */
    string_list rows;     /* of those what a Softmax reads, to which one number more in a whole row
                           * is nothing */
    string_list answers;  /* of replaced, probabilities of classes */
    string_list features; /* what the product reads that gives one of rows */
} squashed;

/* Values that the other model computes, too. 0 or an exit status. */
int squashed_find(ort_model *floats, ort_model *other, const string_list *outputs,
                  squashed *found);
void squashed_release(squashed *found);
/* The value less the mean of each of its rows; floats, else NULL. */
ort_value *squashed_centered(const ort_value *value);

#endif
