/* sound.c - mono mix and resampling of sound.
 *
 * Resampling is a windowed sinc (Hann, 16 zero crossings, cut at the lower Nyquist frequency),
 * computed per output sample.
 */
#include "common/operations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int apply_mono(operations *o, const operation *op, const ort_value *in, ort_value **out)
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

int apply_rate(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    enum { CROSSINGS = 16 };
    ort_error err = {0};
    int64_t rate;
    if (option_parse_int(op->option, op->argument, 1, 10000000, &rate) != 0)
        return EXIT_USAGE;
    if (o->rate <= 0 || ort_value_dtype(in) != ORT_DTYPE_FLOAT || ort_value_rank(in) != 1)
        return bad_value(op, in, "mono sound from a WAV file (use --mono before)");
    int64_t n = ort_value_count(in);
    int64_t m = (int64_t)ceil((double)n * (double)rate / (double)o->rate);
    if (ort_value_new_tensor(ORT_DTYPE_FLOAT, 1, &m, out, &err) != ORT_OK)
        return tool_fail(&err);
    const float *src = ort_value_data((ort_value *)in);
    float *dst = ort_value_data(*out);
    double step = (double)o->rate / (double)rate, cut = step > 1 ? 1 / step : 1;
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
    o->rate = (int)rate;
    return 0;
}
