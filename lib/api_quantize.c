/* api_quantize.c - the quantizer of ort_tools.h: thin. */
#include "base/options.h"
#include "quantize/dynamic/dynamic.h"
#include "quantize/static/quantizer.h"
#include "quantize/seen/range.h"
#include "quantize/stamp.h"

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

ort_status ort_quantizer_smooth(ort_quantizer *quantizer, ort_error *err)
{
    return quantizer ? ort_quantizer_even(quantizer, err) : ort_error_null(err, __func__);
}

ort_status ort_quantizer_override(ort_quantizer *quantizer, const char *json, ort_error *err)
{
    return quantizer ? ort_quantizer_replan(quantizer, json, err) : ort_error_null(err, __func__);
}

ort_status ort_quantizer_keep_float(ort_quantizer *quantizer, size_t index, bool stays,
                                    ort_error *err)
{
    return quantizer ? ort_quantizer_keep(quantizer, index, stays, err)
                     : ort_error_null(err, __func__);
}

ort_status ort_quantizer_keep_half(ort_quantizer *quantizer, size_t index, ort_error *err)
{
    return quantizer ? ort_quantizer_halve(quantizer, index, err)
                     : ort_error_null(err, __func__);
}

ort_status ort_quantizer_apply_alone(ort_quantizer *quantizer, size_t index, ort_model **model,
                                     ort_error *err)
{
    if (!quantizer || !model)
        return ort_error_null(err, __func__);
    *model = NULL;
    return ort_quantizer_write_alone(quantizer, index, model, err);
}

bool ort_quantizer_node(const ort_quantizer *quantizer, size_t index,
                        ort_quantizer_node_info *info)
{
    return quantizer && info && ort_quantizer_tell(quantizer, index, info);
}

bool ort_quantizer_node_harm(const ort_quantizer *quantizer, size_t index, double *work,
                             double *noise)
{
    ort_harm harm;
    if (!quantizer || !work || !noise || !ort_quantizer_weigh(quantizer, index, &harm))
        return false;
    *work = harm.work;
    *noise = harm.noise;
    return true;
}

size_t ort_quantizer_equalized(const ort_quantizer *quantizer)
{
    return quantizer ? ort_quantizer_pairs(quantizer) : 0;
}

ort_status ort_quantizer_apply(ort_quantizer *quantizer, ort_model **model, ort_error *err)
{
    if (!quantizer || !model)
        return ort_error_null(err, __func__);
    *model = NULL;
    return ort_quantizer_write(quantizer, model, err);
}

ort_status ort_model_stamp_quantized(ort_model *model, const char *verb, const char *options,
                                     const char *samples, const char *tier, ort_error *err)
{
    if (!model || !verb)
        return ort_error_null(err, __func__);
    const ort_quantize_stamp stamp = {verb, options, samples, tier};
    return ort_quantize_stamp_model(model, &stamp, err);
}

/* ---- ranges */

const char *ort_observer_name(ort_observer observer, const char **doc)
{
    const ort_observer_row *row = ort_observer_find(observer);
    if (doc)
        *doc = row ? row->doc : NULL;
    return row ? row->name : NULL;
}

ort_status ort_ranges_new(ort_ranges **ranges, ort_error *err)
{
    return ranges ? ort_ranges_make(ranges, err) : ort_error_null(err, __func__);
}

void ort_ranges_free(ort_ranges *ranges)
{
    ort_ranges_release(ranges);
}

ort_status ort_ranges_read(ort_ranges *ranges, const char *text, size_t size, const char *name,
                           ort_error *err)
{
    if (!ranges || !text)
        return ort_error_null(err, __func__);
    return ort_ranges_read_json(ranges, text, size, name ? name : "ranges", err);
}

ort_status ort_ranges_write(const ort_ranges *ranges, char **json, ort_error *err)
{
    if (!ranges || !json)
        return ort_error_null(err, __func__);
    ort_strbuf out = {0};
    *json = NULL;
    ort_status status = ort_ranges_write_json(ranges, &out, err);
    if (status == ORT_OK)
        *json = out.data;
    else
        ort_strbuf_release(&out);
    return status;
}

uint64_t ort_ranges_samples(const ort_ranges *ranges, uint64_t *made_up)
{
    if (made_up)
        *made_up = ranges ? ranges->made_up : 0;
    return ranges ? ranges->samples : 0;
}

const char *ort_ranges_tier(const ort_ranges *ranges)
{
    return ranges ? ranges->tier : NULL;
}

void ort_ranges_set_made_up(ort_ranges *ranges)
{
    if (ranges)
        ranges->made_up = ranges->samples;
}

ort_status ort_quantizer_ranges(const ort_quantizer *quantizer, ort_ranges *into, ort_error *err)
{
    if (!quantizer || !into)
        return ort_error_null(err, __func__);
    return ort_ranges_merge(into, ort_quantizer_seen(quantizer), false, "the quantizer", err);
}

ort_status ort_quantizer_use_ranges(ort_quantizer *quantizer, const ort_ranges *ranges,
                                    const char *name, ort_error *err)
{
    if (!quantizer || !ranges)
        return ort_error_null(err, __func__);
    return ort_quantizer_take(quantizer, ranges, name ? name : "ranges", err);
}

ort_status ort_model_quantize_dynamic(ort_env *env, const ort_model *model,
                                      const ort_dynamic_options *options, ort_model **result,
                                      ort_quantize_notes *notes, ort_error *err)
{
    if (!env || !model || !result)
        return ort_error_null(err, __func__);
    ort_dynamic_options own = ORT_DYNAMIC_OPTIONS_INIT;
    *result = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    return options ? ort_dynamic_quantize(env, model, options, result, notes, err)
                   : ORT_ERROR_USAGE;
}
