/* audio.c - mono mix, resampling and windows of sound.
 *
 * Resampling is a windowed sinc (Hann, 16 zero crossings, cut at the lower Nyquist frequency),
 * computed per output sample.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_tool.h"

int apply_mono(tool *t, const operation *op, const ort_value *in, ort_value **out)
{
    ort_error err = {0};
    int rank = ort_value_rank(in);
    if (ort_value_dtype(in) != ORT_DTYPE_FLOAT || rank < 1 || rank > 2)
        return bad_value(op, in, "sound (float samples, or frames x channels)");
    int64_t frames = ort_value_dims(in)[0], channels = rank == 2 ? ort_value_dims(in)[1] : 1;
    if (ort_value_new_tensor(ORT_DTYPE_FLOAT, 1, &frames, out, &err) != ORT_OK)
        return tool_fail(&err);
    const float *src = ort_value_data((ort_value *)in);
    float *dst = ort_value_data(*out);
    for (int64_t i = 0; i < frames; i++) {
        double sum = 0;
        for (int64_t c = 0; c < channels; c++)
            sum += (double)src[i * channels + c];
        dst[i] = (float)(channels > 0 ? sum / (double)channels : 0);
    }
    return 0;
}

int apply_rate(tool *t, const operation *op, const ort_value *in, ort_value **out)
{
    enum { CROSSINGS = 16 };
    ort_error err = {0};
    int64_t rate;
    if (option_parse_int(op->option, op->argument, 1, 10000000, &rate) != 0)
        return EXIT_USAGE;
    if (t->wav_rate <= 0 || ort_value_dtype(in) != ORT_DTYPE_FLOAT || ort_value_rank(in) != 1)
        return bad_value(op, in, "mono sound from a WAV file (use --mono before)");
    int64_t n = ort_value_count(in);
    int64_t m = (int64_t)ceil((double)n * (double)rate / (double)t->wav_rate);
    if (ort_value_new_tensor(ORT_DTYPE_FLOAT, 1, &m, out, &err) != ORT_OK)
        return tool_fail(&err);
    const float *src = ort_value_data((ort_value *)in);
    float *dst = ort_value_data(*out);
    double step = (double)t->wav_rate / (double)rate, cut = step > 1 ? 1 / step : 1;
    double reach = CROSSINGS / cut;
    for (int64_t i = 0; i < m; i++) {
        double center = (double)i * step, sum = 0;
        int64_t begin = (int64_t)ceil(center - reach), end = (int64_t)floor(center + reach);
        for (int64_t k = begin < 0 ? 0 : begin; k <= end && k < n; k++) {
            double x = ((double)k - center) * cut, a = M_PI * x;
            double sinc = x == 0 ? 1 : sin(a) / a;
            sum += (double)src[k] * sinc * cut * (0.5 + 0.5 * cos(a / CROSSINGS));
        }
        dst[i] = (float)sum;
    }
    t->wav_rate = (int)rate;
    return 0;
}

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
