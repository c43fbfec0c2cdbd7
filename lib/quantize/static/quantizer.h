/* quantizer.h - ort_quantizer of ort_tools.h. */
#ifndef ORT_QUANTIZE_QUANTIZER_H
#define ORT_QUANTIZE_QUANTIZER_H

#include "exec/env.h"
#include "quantize/seen/ranges.h"
#include "quantize/static/harm.h"

ort_status ort_quantizer_make(ort_env *env, const ort_model *model,
                              const ort_quantize_options *options, ort_quantizer **quantizer,
                              ort_error *err);
ort_status ort_quantizer_observe(ort_quantizer *q, ort_value *const *inputs, size_t count,
                                 ort_error *err);
ort_status ort_quantizer_even(ort_quantizer *q, ort_error *err);
ort_status ort_quantizer_replan(ort_quantizer *q, const char *json, ort_error *err);
ort_status ort_quantizer_keep(ort_quantizer *q, size_t index, bool stays, ort_error *err);
ort_status ort_quantizer_halve(ort_quantizer *q, size_t index, ort_error *err);
ort_status ort_quantizer_write_alone(ort_quantizer *q, size_t index, ort_model **model,
                                     ort_error *err);
bool ort_quantizer_weigh(const ort_quantizer *q, size_t index, ort_harm *harm);
size_t ort_quantizer_pairs(const ort_quantizer *q);
bool ort_quantizer_tell(const ort_quantizer *q, size_t index, ort_quantizer_node_info *info);
const ort_ranges *ort_quantizer_seen(const ort_quantizer *q);
ort_status ort_quantizer_take(ort_quantizer *q, const ort_ranges *ranges, const char *name,
                              ort_error *err);
ort_status ort_quantizer_write(ort_quantizer *q, ort_model **model, ort_error *err);
void ort_quantizer_release(ort_quantizer *q);

#endif
