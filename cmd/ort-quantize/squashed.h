/* squashed.h - outputs that a Softmax or Sigmoid ends: where its result is near 0 or 1, what codes
 * do to a net can't be seen in it, and between them a single sample decides. What it reads shows
 * it.
 */
#ifndef ORT_QUANTIZE_SQUASHED_H
#define ORT_QUANTIZE_SQUASHED_H

#include "common/tool.h"
#include "ort_tools.h"

/* replaced: such outputs. names: of what that operator reads for them, moves behind it left out, if
 * the other model computes it, too. rows: those of a Softmax, to which one number more in a whole
 * row is nothing. 0 or an exit status. */
int squashed_find(ort_model *floats, ort_model *other, const string_list *outputs,
                  string_list *names, string_list *rows, string_list *replaced);
/* The value less the mean of each of its rows; floats, else NULL. */
ort_value *squashed_centered(const ort_value *value);

#endif
