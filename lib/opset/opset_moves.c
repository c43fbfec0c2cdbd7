/* opset_moves.c - attributes that became inputs. Up, the attribute becomes a constant; down, a
 * constant becomes the attribute, and an input that is computed is a blocker. */
#include <stdlib.h>
#include <string.h>

#include "opset/opset.h"
#include "tensor/scalar.h"

typedef enum form {
    LIST,    /* int64 list */
    ONE,     /* int64 attribute, list of one as input */
    NUMBER,  /* int64 attribute, scalar as input */
    REAL,    /* float attribute, scalar of the type of input 0 */
    REALS,   /* float list */
} form;

typedef struct move {
    const char *op_type;
    int since; /* where the input is */
    const char *attr;
    int slot;
    form form;
} move;

static const move moves[] = {
    {"Upsample", 9, "scales", 1, REALS},
    {"Slice", 10, "starts", 1, LIST},
    {"Slice", 10, "ends", 2, LIST},
    {"Slice", 10, "axes", 3, LIST},
    {"TopK", 10, "k", 1, ONE},
    {"Clip", 11, "min", 1, REAL},
    {"Clip", 11, "max", 2, REAL},
    {"Pad", 11, "pads", 1, LIST},
    {"Pad", 11, "value", 2, REAL},
    {"Dropout", 12, "ratio", 1, REAL},
    {"ReduceSum", 13, "axes", 1, LIST},
    {"Split", 13, "split", 1, LIST},
    {"Squeeze", 13, "axes", 1, LIST},
    {"Unsqueeze", 13, "axes", 1, LIST},
    {"ReduceL1", 18, "axes", 1, LIST},
    {"ReduceL2", 18, "axes", 1, LIST},
    {"ReduceLogSum", 18, "axes", 1, LIST},
    {"ReduceLogSumExp", 18, "axes", 1, LIST},
    {"ReduceMax", 18, "axes", 1, LIST},
    {"ReduceMean", 18, "axes", 1, LIST},
    {"ReduceMin", 18, "axes", 1, LIST},
    {"ReduceProd", 18, "axes", 1, LIST},
    {"ReduceSumSquare", 18, "axes", 1, LIST},
    {"DFT", 20, "axis", 2, NUMBER},
};

/* ---- up */

static void to_input(ort_opset_step *s, const move *m)
{
    const ort_attr *attr = ort_node_attr(s->node, m->attr);
    ort_id input = ORT_ID_NONE;
    if (!attr)
        return;
    if (m->form == LIST)
        input = ort_emit_ints(&s->g, attr->ints, (int)attr->count);
    else if (m->form == ONE)
        input = ort_emit_ints(&s->g, &attr->i, 1);
    else if (m->form == NUMBER)
        input = ort_emit_int(&s->g, attr->i);
    else if (m->form == REAL)
        input = ort_emit_number(&s->g, s->node->inputs[0], (double)attr->f);
    else
        input = ort_opset_add_floats(s, attr->floats, (int)attr->count);
    ort_opset_set_input(s, m->slot, input);
    ort_opset_drop(s, m->attr);
}

/* ---- down */

static void set_list(ort_opset_step *s, const move *m, const ort_tensor *t)
{
    int64_t count = ort_tensor_count(t);
    ort_attr attr = {.name = m->attr, .count = (size_t)count};
    int64_t *ints = ort_arena_array(&s->g.graph->model->arena, (size_t)count + 1, sizeof *ints);
    float *floats = ort_arena_array(&s->g.graph->model->arena, (size_t)count + 1, sizeof *floats);
    if (!ints || !floats) {
        ort_emit_fail_memory(&s->g);
        return;
    }
    attr.type = m->form == LIST ? ORT_ATTR_INTS : ORT_ATTR_FLOATS;
    attr.ints = ints;
    attr.floats = floats;
    for (int64_t i = 0; i < count; i++)
        if (m->form == LIST)
            ints[i] = ort_tensor_get_i64(t, i);
        else
            floats[i] = (float)ort_tensor_get_f64(t, i);
    ort_opset_set(s, &attr);
}

static void to_attr(ort_opset_step *s, const move *m)
{
    const ort_tensor *t = ort_opset_constant(s, m->slot);
    ort_attr attr = {.name = m->attr};
    double real;
    if (ort_opset_in(s, m->slot) == ORT_ID_NONE)
        return;
    if (!t) {
        ort_opset_block(s, "'%s' is computed, and was an attribute before", m->attr);
        return;
    }
    if (m->form == LIST || m->form == REALS) {
        set_list(s, m, t);
    } else if (!ort_tensor_one_f64(t, &real)) {
        ort_opset_block(s, "'%s' isn't one number", m->attr);
        return;
    } else {
        attr.type = m->form == REAL ? ORT_ATTR_FLOAT : ORT_ATTR_INT;
        attr.f = (float)real;
        ort_tensor_one_i64(t, &attr.i);
        ort_opset_set(s, &attr);
    }
    ort_opset_set_input(s, m->slot, ORT_ID_NONE);
}

void ort_opset_move(ort_opset_step *s)
{
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (moves[i].since == s->version && !strcmp(moves[i].op_type, s->node->op_type)) {
            if (s->up)
                to_input(s, &moves[i]);
            else
                to_attr(s, &moves[i]);
        }
}

bool ort_opset_has_move(const char *op_type, int version)
{
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (moves[i].since == version && !strcmp(moves[i].op_type, op_type))
            return true;
    return false;
}
