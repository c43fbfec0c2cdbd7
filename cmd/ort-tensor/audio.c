/* audio.c - windows of sound. */
#include <stdlib.h>

#include "tensor_tool.h"

int each_window(tool *t, const ort_tensors *from, const ort_value *samples, window_fn *fn)
{
    ort_error err = {0};
    operation op = {.option = "--chunk"};
    int64_t hop = t->hop > 0 ? t->hop : t->chunk, n = ort_value_count(samples);
    int64_t dims[2] = {1};
    if (__builtin_add_overflow(t->context, t->chunk, &dims[1]))
        return tool_usage("--context %lld and --chunk %lld are more samples than can be counted",
                          (long long)t->context, (long long)t->chunk);
    if (ort_value_dtype(samples) != ORT_DTYPE_FLOAT || ort_value_rank(samples) != 1)
        return bad_value(&op, samples, "mono float samples (use --mono before)");
    if (n == 0)
        return tool_error(ORT_ERROR_DATA, "%s: --chunk: the sound has no samples, so that there is "
                          "no window; --keep-going leaves it out", t->place);
    const float *src = ort_value_data((ort_value *)samples);
    int status = 0;
    /* The last window is filled up with silence. */
    for (int64_t begin = 0; begin < n && status == 0; begin += hop) {
        ort_value *window = NULL;
        if (ort_value_new_tensor(ORT_DTYPE_FLOAT, 2, dims, &window, &err) != ORT_OK)
            return tool_fail(&err);
        float *dst = ort_value_data(window);
        for (int64_t i = 0; i < dims[1]; i++) {
            int64_t k = begin - t->context + i;
            dst[i] = k >= 0 && k < n ? src[k] : 0;
        }
        status = fn(t, from, window);
        ort_value_free(window);
    }
    return status;
}
