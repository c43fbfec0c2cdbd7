/* api_quantize.c - the quantizer of ort_tools.h: thin. */
#include "base/options.h"
#include "quantize/quantizer.h"

ort_status ort_quantizer_new(ort_env *env, const ort_model *model,
                             const ort_quantize_options *options, ort_quantizer **quantizer,
                             ort_error *err)
{
    if (!env || !model || !quantizer)
        return ort_error_null(err, __func__);
    ort_quantize_options own = ORT_QUANTIZE_OPTIONS_INIT;
    *quantizer = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    return options ? ort_quantizer_make(env, model, options, quantizer, err) : ORT_ERROR_USAGE;
}

void ort_quantizer_free(ort_quantizer *quantizer)
{
    ort_quantizer_release(quantizer);
}

ort_status ort_quantizer_calibrate(ort_quantizer *quantizer, ort_value *const *inputs,
                                   size_t input_count, ort_error *err)
{
    if (!quantizer || (input_count && !inputs))
        return ort_error_null(err, __func__);
    return ort_quantizer_observe(quantizer, inputs, input_count, err);
}

ort_status ort_quantizer_override(ort_quantizer *quantizer, const char *json, ort_error *err)
{
    return quantizer ? ort_quantizer_replan(quantizer, json, err) : ort_error_null(err, __func__);
}

bool ort_quantizer_node(const ort_quantizer *quantizer, size_t index,
                        ort_quantizer_node_info *info)
{
    return quantizer && info && ort_quantizer_tell(quantizer, index, info);
}

ort_status ort_quantizer_apply(ort_quantizer *quantizer, ort_model **model, ort_error *err)
{
    if (!quantizer || !model)
        return ort_error_null(err, __func__);
    *model = NULL;
    return ort_quantizer_write(quantizer, model, err);
}
