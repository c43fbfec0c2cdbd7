/* types.h - the values of a model by name and type, for callers (ort_types of ort.h). */
#ifndef ORT_OP_TYPES_H
#define ORT_OP_TYPES_H

#include "graph/graph.h"

/* Expands functions and infers types. Contradictions are for check to tell. */
ort_status ort_model_infer_types(ort_model *model, ort_error *err);
/* A copy for which that was done. */
ort_status ort_model_typed_copy(const ort_model *model, ort_model **copy, ort_error *err);
/* Those of a typed copy. */
ort_status ort_types_collect(const ort_model *typed, ort_types_of which, ort_types **types,
                             ort_error *err);

#endif
