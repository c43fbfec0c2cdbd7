/* run_step.c - one step, with the numbers that random operators draw by. */
#include "exec/frame.h"

/* One draw of a counter-based generator: a run with the same seed gives the same numbers. */
static uint64_t next_seed(ort_context *context)
{
    uint64_t x = (context->options ? context->options->seed : 0) +
                 0x9e3779b97f4a7c15u * ++context->random;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

ort_status ort_frame_run_step(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    if (c->ps->step->traits & (ORT_TRAIT_RANDOM | ORT_TRAIT_CONTROL)) {
        const ort_run_options *options = frame->context->options;
        c->call.seed = next_seed(frame->context);
        c->call.stream = options && options->one_stream ? &frame->context->stream : NULL;
    }
    return c->ps->dynamic ? ort_frame_run_dynamic(frame, c, err) : c->run(&c->call, err);
}
