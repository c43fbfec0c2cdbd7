/* qoperator.c - the passes with which a session takes such units together, for a file: QLinearConv
 * and QLinearMatMul of ai.onnx, QGemm, QLinearAdd and their like of com.microsoft. So both forms
 * have the same scales and codes, decided once.
 */
#include "quantize/form/qoperator.h"

#include "pass/optimize.h"

ort_status ort_qoperator_fold(ort_model *model, const ort_registry *registry, const ort_log *log,
                              ort_error *err)
{
    static const char *const passes[] = {"quant_moves", "quant_units", "dead_nodes", NULL};
    ort_optimize_options options = ORT_OPTIMIZE_OPTIONS_INIT;
    options.passes = passes;
    options.contrib = true;
    ort_pass_options pass = ort_rewrite_options(model, &options, registry, log);
    return ort_model_rewrite(model, &pass, false, err);
}
