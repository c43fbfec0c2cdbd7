/* plan_ahead.c - the plan and the frame of the first run, made together with the session, so that
 * the first run takes as long as the others, but for the pages of its memory: those come with it
 * (execute.c), since a session may never run, or with other shapes.
 *
 * That is possible where the shapes of the inputs are fixed, or fixed but for their first axes,
 * which are then taken for a batch of one. When the first run shows that this guess was wrong, its
 * frame is freed (frame.c). No function here fails: what can't be made now is left to a run, which
 * then says why.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "exec/frame.h"
#include "exec/session.h"

static bool guess_shape(const ort_type *type, ort_shape *shape)
{
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 0)
        return false;
    shape->rank = type->rank;
    for (int d = 0; d < type->rank; d++) {
        if (!ort_dim_known(type->dim[d]) && d > 0)
            return false;
        shape->dim[d] = ort_dim_known(type->dim[d]) ? type->dim[d].size : 1;
    }
    return ort_shape_check(shape, type->dtype, NULL) == ORT_OK;
}

/* The values that the first run will be given, but for their data. */
static bool guess_inputs(const ort_session *s, ort_value *values, ort_value **inputs,
                         ort_value **given)
{
    for (int i = 0; i < s->program_input_count; i++) {
        int input = s->program_inputs[i];
        const ort_type *type = &s->inputs[input].type;
        if (s->defaults[i] || !guess_shape(type, &values[i].tensor.shape))
            return false;
        values[i].kind = ORT_KIND_TENSOR;
        values[i].tensor.dtype = type->dtype;
        given[i] = inputs[input] = &values[i];
    }
    return ort_exec_check_inputs(s, inputs, NULL) == ORT_OK;
}

static void make_frame(ort_session *s, ort_value *const *given)
{
    ort_context *context = NULL;
    ort_frame *frame = NULL;
    if (ort_context_new(s, &context, NULL))
        return;
    if (ort_frame_get(context, &context->frames, s->program, given, NULL, &frame, NULL)) {
        ort_context_free(context);
        return;
    }
    frame->ahead = true;
    assert(s->idle_count == 0); /* the session is new */
    s->idle[s->idle_count++] = context;
}

void ort_exec_plan_ahead(ort_session *session)
{
    size_t count = (size_t)session->input_count + 1;
    ort_value *values = calloc(count, sizeof *values);
    ort_value **inputs = calloc(2 * count, sizeof *inputs);
    if (values && inputs && guess_inputs(session, values, inputs, inputs + count)) {
        unsigned control = ort_cpu_set_flush(!session->env->options.keep_denormals); /* as a run */
        make_frame(session, inputs + count);
        ort_cpu_restore_fp(control);
    }
    free(values);
    free(inputs);
}
