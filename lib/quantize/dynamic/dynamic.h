/* dynamic.h - products on bytes whose range is found in each run, as ONNX's and com.microsoft's own
 * operators: no samples are needed, and no float run decides anything.
 *
 *     MatMul, Gemm   DynamicQuantizeLinear, MatMulInteger, Cast, Mul (and Add of the bias)
 *     Conv           the same with ConvInteger
 *     LSTM           com.microsoft DynamicQuantizeLSTM
 *     Attention      DynamicQuantizeLinear, com.microsoft QAttention
 *     Gather         rows of codes, scaled behind it
 *
 * in the spelling that onnxruntime.quantization writes, so that both runtimes make one node of it.
 */
#ifndef ORT_QUANTIZE_DYNAMIC_H
#define ORT_QUANTIZE_DYNAMIC_H

#include "exec/env.h"
#include "op/edit.h"
#include "quantize/code_grid.h"
#include "quantize/notes.h"

ort_status ort_dynamic_quantize(ort_env *env, const ort_model *model,
                                const ort_dynamic_options *options, ort_model **result,
                                ort_quantize_notes *notes, ort_error *err);

#endif
