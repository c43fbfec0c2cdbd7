/* made_up_sizes.c - sizes of made-up inputs (made_up.h). */
#include <stdlib.h>

#include "base/error.h"
#include "made_up/made_up.h"

enum { TRIALS_MAX = 64, SINGLES_MAX = 6, IMAGE_MAX = 512, SINGLE_NONE = -1, SINGLE_UNNAMED = -2 };

/* Windows of sound take hundreds to thousands, tables of positions few. */
static const int64_t ladder[] = {0, 512, 4, 64, 2048, 1, 256, 16000, 128, 1024, 16, 4096, 2};
enum { RUNGS = sizeof ladder / sizeof *ladder };

/* Of free first axes, for models that index rows or hold the states of some. */
static const int64_t batches[] = {2, 3, 4, 8};
enum { BATCHES = sizeof batches / sizeof *batches };

/* ---- free axes */

static bool is_open(const ort_port *port)
{
    return !port->default_value && port->type.kind == ORT_TYPE_TENSOR;
}

static int count_free(const ort_session *session)
{
    int count = 0;
    for (int i = 0; i < session->input_count; i++)
        for (int d = 0; is_open(&session->inputs[i]) && d < session->inputs[i].type.rank; d++)
            count += !ort_dim_known(session->inputs[i].type.dim[d]);
    return count;
}

bool ort_exec_has_free_dims(const ort_session *session)
{
    return count_free(session) > 0;
}

/* Per rung: none single, the unnamed ones, each of the first free axes. */
static int tries_per_rung(int free_count)
{
    return 2 + (free_count < SINGLES_MAX ? free_count : SINGLES_MAX);
}

static int trials_of_one_row(const ort_session *session)
{
    int trials = RUNGS * tries_per_rung(count_free(session));
    return trials < TRIALS_MAX ? trials : TRIALS_MAX;
}

int ort_sizes_trials(const ort_session *session)
{
    return count_free(session) ? trials_of_one_row(session) + BATCHES : 1;
}

/* ---- one choice */

void ort_sizes_init(ort_sizes *sizes, const ort_session *session, int variant, int trial)
{
    /* All rungs with nothing single first, then all with the unnamed ones, ...; batches last. */
    int batch = trial - trials_of_one_row(session);
    if (batch >= 0)
        trial = 0;
    int turn = trial / RUNGS;
    *sizes = (ort_sizes){.session = session,
                         .variant = variant,
                         .rung = trial % RUNGS,
                         .batch = batch < 0 ? 1 : batches[batch % BATCHES],
                         .single = turn == 0 ? SINGLE_NONE : turn == 1 ? SINGLE_UNNAMED : turn - 2};
}

static bool is_single(const ort_sizes *sizes, ort_dim dim)
{
    return sizes->single == SINGLE_UNNAMED ? dim.expr == ORT_DIM_UNKNOWN && sizes->input > 0
                                           : sizes->free_count == sizes->single;
}

static int64_t choose(const ort_sizes *sizes, const ort_type *type, int axis)
{
    bool image = type->rank == 4 && axis >= 2, larger = sizes->variant == ORT_SIZES_LARGER;
    int64_t rung = ladder[sizes->rung];
    if (axis == 0 || is_single(sizes, type->dim[axis]))
        return (axis == 0 ? sizes->batch : 1) + (larger || sizes->variant == ORT_SIZES_MORE);
    larger = larger || sizes->variant == ORT_SIZES_LONGER;
    if (rung && image)
        return (rung < IMAGE_MAX ? rung : IMAGE_MAX) + 32 * larger;
    return (rung ? rung : image ? 64 : 8) + (image ? 32 : 4) * larger;
}

/* The same symbol has the same size. */
static int64_t choose_dim(ort_sizes *sizes, const ort_type *type, int axis)
{
    ort_dim dim = type->dim[axis];
    if (ort_dim_known(dim))
        return dim.size;
    for (int i = 0; i < sizes->symbol_count && dim.expr != ORT_DIM_UNKNOWN; i++)
        if (sizes->symbols[i].expr == dim.expr)
            return sizes->symbols[i].size;
    int64_t size = choose(sizes, type, axis);
    sizes->free_count++;
    if (dim.expr != ORT_DIM_UNKNOWN && sizes->symbol_count < ORT_SIZES_SYMBOLS) {
        sizes->symbols[sizes->symbol_count].expr = dim.expr;
        sizes->symbols[sizes->symbol_count++].size = size;
    }
    return size;
}

ort_shape ort_sizes_choose(ort_sizes *sizes, int input)
{
    const ort_type *type = &sizes->session->inputs[input].type;
    ort_shape shape = {.rank = type->rank < 0 ? 1 : type->rank};
    sizes->input = input;
    for (int axis = 0; axis < shape.rank; axis++)
        shape.dim[axis] = type->rank < 0 ? 1 : choose_dim(sizes, type, axis);
    return shape;
}

/* ---- how much they hold */

static const double room_least = 1 << 26;

double ort_sizes_values(const ort_session *session, int variant, int trial)
{
    double all = 0;
    ort_sizes sizes;
    ort_sizes_init(&sizes, session, variant, trial);
    for (int i = 0; i < session->input_count; i++) {
        ort_shape shape = ort_sizes_choose(&sizes, i);
        double values = is_open(&session->inputs[i]);
        for (int d = 0; d < shape.rank; d++)
            values *= (double)shape.dim[d];
        all += values;
    }
    return all;
}

double ort_sizes_room(const ort_session *session)
{
    double all = 0;
    for (int i = 0; i < session->input_count; i++) {
        const ort_type *type = &session->inputs[i].type;
        double values = is_open(&session->inputs[i]);
        for (int d = 0; d < type->rank; d++)
            values *= ort_dim_known(type->dim[d]) ? (double)type->dim[d].size : 1;
        all += values;
    }
    return 4 * all > room_least ? 4 * all : room_least;
}

/* ---- do they fit */

static ort_status give(const ort_port *port, const ort_shape *shape, ort_given *given,
                       ort_error *err)
{
    given->kind = port->type.kind == ORT_TYPE_SEQUENCE ? ORT_KIND_SEQUENCE
                  : port->type.kind == ORT_TYPE_MAP    ? ORT_KIND_MAP
                                                       : ORT_KIND_TENSOR;
    given->dtype = port->type.dtype;
    given->shape = *shape;
    /* The model declares them, and nobody has made such a value yet. */
    ort_status status = given->kind == ORT_KIND_TENSOR
                            ? ort_shape_check(&given->shape, given->dtype, err)
                            : ORT_OK;
    return status != ORT_OK ? ort_error_wrap(err, status, "input '%s'", port->name) : ORT_OK;
}

ort_status ort_sizes_plan(const ort_session *session, const ort_shape *shapes, ort_plan **plan,
                          ort_error *err)
{
    ort_given *given = calloc((size_t)session->input_count + 1, sizeof *given);
    ort_status status = ORT_OK;
    *plan = NULL;
    if (!given)
        return ort_error_memory(err, sizeof *given * (size_t)session->input_count);
    for (int i = 0; i < session->program_input_count && status == ORT_OK; i++) {
        int at = session->program_inputs[i];
        status = give(&session->inputs[at], &shapes[at], &given[i], err);
    }
    if (status == ORT_OK)
        status = ort_plan_new(session->program, given, NULL, plan, err);
    free(given);
    return status;
}

int ort_sizes_fit(const ort_session *session)
{
    int trials = ort_sizes_trials(session), fits = 0;
    double room = ort_sizes_room(session);
    ort_shape *shapes = trials > 1 ? calloc((size_t)session->input_count + 1, sizeof *shapes)
                                   : NULL;
    for (int trial = 0; shapes && trial < trials; trial++) {
        ort_plan *plan = NULL;
        ort_sizes sizes;
        if (ort_sizes_values(session, 0, trial) > room)
            continue;
        ort_sizes_init(&sizes, session, 0, trial);
        for (int i = 0; i < session->input_count; i++)
            shapes[i] = ort_sizes_choose(&sizes, i);
        ort_status status = ort_sizes_plan(session, shapes, &plan, NULL);
        ort_plan_drop(plan);
        if (status == ORT_OK) {
            fits = trial;
            break;
        }
    }
    free(shapes);
    return fits;
}

void ort_exec_choose_shapes(const ort_session *session, ort_shape *shapes)
{
    ort_sizes sizes;
    ort_sizes_init(&sizes, session, 0, ort_sizes_fit(session));
    for (int i = 0; i < session->input_count; i++)
        shapes[i] = ort_sizes_choose(&sizes, i);
}
