/* samples.c - samples as runs take their inputs (common/feed.h), in as many passes as are wanted.
 */
#include "samples.h"

#include <stdlib.h>
#include <string.h>

int samples_open(samples *s, const feed_options *from, ort_env *env, ort_model *model,
                 const char *path)
{
    ort_session_options options;
    ort_error err = {0};
    ort_session_options_init(&options);
    options.level = 0;
    *s = (samples){.from = *from};
    if (ort_session_new(env, model, &options, &s->session, &err) != ORT_OK)
        return tool_fail_in(path, &err);
    s->count = ort_session_input_count(s->session);
    s->inputs = tool_alloc((s->count + 1) * sizeof *s->inputs);
    return 0;
}

static int begin(samples *s)
{
    static const string_list no_files = {0};
    s->at = 0;
    s->open = true;
    return feed_open(&s->feed, &s->from, s->session, &no_files);
}

static void end_pass(samples *s)
{
    if (s->open)
        feed_close(&s->feed);
    memset(&s->feed, 0, sizeof s->feed);
    s->open = false;
}

int samples_next(samples *s, bool *end)
{
    int status = s->open ? 0 : begin(s);
    *end = false;
    if (status == 0)
        status = feed_next(&s->feed, s->inputs, end);
    if (*end && s->at == 0 && status == 0)
        status = tool_error(ORT_ERROR_DATA, "no sample was given");
    s->at += !*end;
    if (*end || status != 0)
        end_pass(s);
    return status;
}

void samples_close(samples *s)
{
    end_pass(s);
    ort_session_free(s->session);
    free(s->inputs);
    *s = (samples){0};
}
