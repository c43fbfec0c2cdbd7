/* made_up.c - samples of --random, made once, in a process of their own: which values a model takes
 * its session tells, which holds its weights.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/apart.h"
#include "quantize.h"

/* Seeds that lie side by side share no samples. Mixing as in Steele, Lea and Flood, Fast Splittable
 * Pseudorandom Number Generators, 2014, with other constants than draws have. */
static uint64_t seed_of(uint64_t seed, uint64_t sample)
{
    uint64_t x = sample;
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    return seed ^ x ^ (x >> 33);
}

static size_t made_up_count(const quantizing *q)
{
    return q->options.samples > 0 ? (size_t)q->options.samples : SAMPLES_MADE_UP;
}

/* The first is that of `ort-run --random SEED`. */
static int write_samples(const quantizing *q, const ort_session *session, uint64_t seed, FILE *file)
{
    ort_error err = {0};
    const size_t count = ort_session_input_count(session);
    const size_t most = made_up_count(q);
    ort_value **values = tool_alloc((count + 1) * sizeof *values);
    int status = 0;
    for (size_t at = 0; at < most && status == 0; at++) {
        char place[64];
        snprintf(place, sizeof place, "made-up sample %zu", at + 1);
        memset(values, 0, (count + 1) * sizeof *values);
        if (ort_session_random_inputs(session, seed_of(seed, at), values, count, &err) != ORT_OK)
            status = tool_fail_in(q->path, &err);
        else if (!samples_keep(file, place, values, count))
            status = tool_error(ORT_ERROR_IO, "can't keep made-up samples: %s", strerror(errno));
        for (size_t i = 0; i < count; i++)
            ort_value_free(values[i]);
    }
    free(values);
    return status;
}

static int make_all(void *arg, FILE *file)
{
    quantizing *q = arg;
    ort_session_options options;
    ort_session *session = NULL;
    ort_error err = {0};
    int64_t seed = 0;
    int status = option_parse_int("--random", q->options.random, 0, INT64_MAX, &seed);
    if (status == 0)
        status = settings_new_env(&q->options.settings, &q->env);
    ort_session_options_init(&options);
    options.level = 0;
    if (status == 0 && ort_session_new(q->env, q->original, &options, &session, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    if (status == 0)
        status = write_samples(q, session, (uint64_t)seed, file);
    ort_session_free(session);
    return status;
}

int make_up_samples(quantizing *q)
{
    if (q->options.random == NULL || q->options.inputs.count > 0 || q->sample_file != NULL)
        return 0;
    q->sample_count = made_up_count(q);
    return apart("making up samples", make_all, q, &q->sample_file);
}
