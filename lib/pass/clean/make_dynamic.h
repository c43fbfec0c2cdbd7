/* make_dynamic.h - an axis of an input that had a size becomes symbolic. */
#ifndef ORT_PASS_CLEAN_MAKE_DYNAMIC_H
#define ORT_PASS_CLEAN_MAKE_DYNAMIC_H

#include "op/op.h"

/* The input's axis, its old size wherever Reshape repeats it, and the shapes that follow. */
ort_status ort_model_open_axis(ort_model *model, const ort_registry *registry, const char *input,
                               int axis, const char *symbol, ort_error *err);

#endif
