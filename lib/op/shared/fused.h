/* fused.h - the activation that fused operators (FusedConv, FusedGemm, ..) name in attributes. */
#ifndef ORT_OP_SHARED_FUSED_H
#define ORT_OP_SHARED_FUSED_H

#include "op/shared/matrix.h"

/* Add activation `name` with its parameters (missing ones take ONNX's defaults) to the epilogue: a
 * clamp where that is all it is, else a last pass. False: not known. */
bool ort_epilogue_activate(ort_epilogue *e, const char *name, const float *params, size_t count);
/* The binding of member `epilogue` of a state (bind.h): the activation that attributes `activation`
 * and `activation_params`, or activation_alpha, _beta and _gamma tell. */
#define ORT_BIND_EPILOGUE(state) ORT_BIND_BY(state, epilogue, "activation", ort_epilogue_bind)
ort_status ort_epilogue_bind(const ort_node *node, void *epilogue, ort_error *err);

#endif
