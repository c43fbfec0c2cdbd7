/* growth.c - which inputs of a program are caches that can grow in place (program.h).
 *
 * An input can when three things hold: the input is no output itself; one step alone, the one that
 * extends the cache, reads its data; and the output of that step is returned once and read by no
 * other step. Then no other step can see how the rows lie.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/program.h"

typedef struct uses { /* by value id */
    int *data, *shape; /* steps that read the data, and the shape alone; an output counts as data */
} uses;

static void count_uses(const ort_program *p, const uses *u)
{
    for (int i = 0; i < p->step_count; i++) {
        const ort_step *s = &p->steps[i];
        for (int k = 0; k < s->in_count; k++)
            if (s->in[k] != ORT_ID_NONE)
                (s->traits & ORT_TRAIT_SHAPE_ONLY ? u->shape : u->data)[s->in[k]]++;
        for (int b = 0; b < s->body_count; b++)
            for (int c = 0; c < s->bodies[b]->capture_count; c++)
                u->data[s->bodies[b]->captures[c].outer]++;
    }
    for (int o = 0; o < p->output_count; o++)
        u->data[p->outputs[o]]++;
}

static int index_of(const ort_id *ids, int count, ort_id id)
{
    for (int i = 0; i < count; i++)
        if (ids[i] == id)
            return i;
    return -1;
}

static ort_id at(const ort_id *ids, int count, int index)
{
    return index < count ? ids[index] : ORT_ID_NONE;
}

static bool find_growth(const ort_program *p, const uses *u, const ort_step *s,
                        const ort_append *pair, ort_growth *growth)
{
    ort_id in = at(s->in, s->in_count, pair->input), out = at(s->out, s->out_count, pair->output);
    if (in == ORT_ID_NONE || out == ORT_ID_NONE || p->constants[in] || u->data[in] != 1 ||
        u->data[out] != 1)
        return false;
    *growth = (ort_growth){.given = index_of(p->inputs, p->input_count, in),
                           .output = index_of(p->outputs, p->output_count, out),
                           .axis = pair->axis,
                           .elastic = u->shape[in] == 0 && u->shape[out] == 0};
    return growth->given >= 0 && growth->output >= 0;
}

static bool has_any(const ort_id *ids, int count, unsigned bits)
{
    assert(count <= 32);
    for (int i = 0; i < count; i++)
        if (ids[i] != ORT_ID_NONE && (bits >> i & 1))
            return true;
    return false;
}

/* All caches of the step or none: they have equally many rows. */
static void add_growths(ort_program *p, const uses *u, const ort_step *s)
{
    const ort_appends *a = s->appends;
    ort_growth *first = p->growths + p->growth_count;
    bool elastic = !has_any(s->in, s->in_count, a->row_inputs) &&
                   !has_any(s->out, s->out_count, a->row_outputs);
    for (int k = 0; k < a->count; k++) {
        assert(a->pair[k].axis > 0); /* heads lie before rows */
        if (!find_growth(p, u, s, &a->pair[k], &first[k]))
            return;
        elastic = elastic && first[k].elastic;
    }
    for (int k = 0; k < a->count; k++)
        first[k].elastic = elastic;
    p->growth_count += a->count;
}

ort_status ort_program_find_growths(ort_program *p, ort_error *err)
{
    size_t values = (size_t)p->value_count + 1, most = 0;
    for (int i = 0; i < p->step_count; i++)
        if (p->steps[i].appends)
            most += (size_t)p->steps[i].appends->count;
    if (!most || p->parent || p->keep_all)
        return ORT_OK;
    int *counts = calloc(2 * values, sizeof *counts);
    p->growths = calloc(most, sizeof *p->growths);
    if (!counts || !p->growths) {
        free(counts);
        return ort_error_memory(err, values * sizeof *counts);
    }
    const uses u = {counts, counts + values};
    count_uses(p, &u);
    for (int i = 0; i < p->step_count; i++)
        if (p->steps[i].appends)
            add_growths(p, &u, &p->steps[i]);
    free(counts);
    return ORT_OK;
}

const ort_growth *ort_program_growth(const ort_program *program, int given)
{
    for (int i = 0; i < program->growth_count; i++)
        if (program->growths[i].given == given)
            return &program->growths[i];
    return NULL;
}
