/* opencl_chain.c - runs of elementwise operators as one kernel each.
 *
 * A chain is what follows on each other's results, all of one shape. It waits until somebody else
 * reads a result of it, or its part ends; then a kernel is written that loads each operand once,
 * applies the functions of cl/each.cl one after the other, and stores what others read. Operators
 * that stand alone are chains of one. All kernels of a plan are one program; texts depend on
 * operators, types and how operands are spread, never on sizes, so that plans for other shapes
 * find it built.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "provider/opencl/opencl_parts.h"

enum { MOST_STEPS = 20, MOST_OPERANDS = 10, MOST_WALKS = 4 };
_Static_assert(MOST_OPERANDS + MOST_STEPS + ORT_CL_AXES * (MOST_WALKS + 1) + 1 <= ORT_CL_ARGS,
               "a launch has no room for the arguments of the longest chain");

typedef struct operand { /* from outside of the chain */
    ort_id id;
    char kind; /* '=' of the results' shape, '1' one element, 'w' spread: read with strides */
} operand;

typedef struct ort_cl_chain {
    ort_device_step steps[MOST_STEPS];
    int count;
} ort_cl_chain;

typedef struct kernel { /* of the plan's program; equal bodies are the same one */
    char *name, *body;
} kernel;

struct ort_cl_chains {
    ort_cl_chain waiting;
    ORT_VEC(kernel) kernels;
    int joined, operators; /* chains of more than one, and what is in them */
};

/* ---- types */

static const char *const one_names[] = {"float", "int", "long", "flag"};
static const char *const all_names[] = {"V", "VI", "VL", "VB"};
static const char *const memory_names[] = {"float", "int", "long", "uchar"};

static const char *memory_name(const ort_cl_plan *p, ort_id id)
{
    ort_dtype type = p->request->facts[id].type.dtype;
    return ort_cl_halves(p, id) ? "half" : memory_names[ort_cl_element(type)];
}

int ort_cl_element(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT   ? 0
           : dtype == ORT_DTYPE_INT32 ? 1
           : dtype == ORT_DTYPE_INT64 ? 2
           : dtype == ORT_DTYPE_BOOL  ? 3
                                      : -1;
}

static const ort_type *type_of(const ort_cl_plan *p, ort_id id)
{
    return &p->request->facts[id].type;
}

static int element_of(const ort_cl_plan *p, ort_id id)
{
    return ort_cl_element(type_of(p, id)->dtype);
}

/* ---- what belongs to the chain that waits */

static ort_id result(const ort_device_step *step)
{
    return step->node->outputs[0];
}

/* Which step of the chain makes the value; -1: none. */
static int maker(const ort_cl_chain *c, ort_id id)
{
    for (int i = 0; i < c->count; i++)
        if (result(&c->steps[i]) == id)
            return i;
    return -1;
}

static bool reads(const ort_cl_chain *c, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (maker(c, node->inputs[i]) >= 0)
            return true;
    return false;
}

static char kind_of(const ort_cl_plan *p, const ort_cl_chain *c, ort_id id)
{
    int64_t count = ort_cl_count(&p->request->facts[id]);
    int64_t all = ort_cl_count(&p->request->facts[result(&c->steps[0])]);
    return count == all ? '=' : count == 1 ? '1' : 'w';
}

/* How many inputs of a step are operands: bounds of Clip are numbers in the text. */
static int operand_count(const ort_cl_plan *p, const ort_device_step *step)
{
    return p->device->row_of(step->op)->form == ORT_CL_ONE ? 1 : step->node->input_count;
}

/* -1: there are more than a kernel takes. */
static int find_operands(const ort_cl_plan *p, const ort_cl_chain *c, operand *list)
{
    int count = 0, walks = 0;
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < operand_count(p, &c->steps[i]); k++) {
            ort_id id = c->steps[i].node->inputs[k];
            bool known = maker(c, id) >= 0;
            for (int o = 0; o < count; o++)
                known = known || list[o].id == id;
            if (known)
                continue;
            if (count == MOST_OPERANDS)
                return -1;
            list[count] = (operand){id, kind_of(p, c, id)};
            walks += list[count++].kind == 'w';
        }
    return walks <= MOST_WALKS ? count : -1;
}

static bool same_shape(const ort_type *a, const ort_type *b)
{
    for (int d = 0; d < a->rank && a->rank == b->rank; d++)
        if (a->dim[d].size != b->dim[d].size)
            return false;
    return a->rank == b->rank;
}

static bool join(ort_cl_plan *p, const ort_device_step *step)
{
    ort_cl_chain *c = &p->chains->waiting;
    operand list[MOST_OPERANDS];
    if (c->count == p->device->chain || c->count == MOST_STEPS || !reads(c, step->node) ||
        !same_shape(type_of(p, result(&c->steps[0])), type_of(p, result(step))))
        return false;
    c->steps[c->count++] = *step;
    if (find_operands(p, c, list) >= 0)
        return true;
    c->count--;
    return false;
}

/* ---- the text of a kernel */

typedef struct writing {
    const ort_cl_plan *p;
    const ort_cl_chain *c;
    operand operands[MOST_OPERANDS];
    int operand_count, walks;
    bool stored[MOST_STEPS]; /* read by others */
    ort_strbuf text;
} writing;

static void find_stored(writing *w)
{
    const ort_cl_chain *c = w->c;
    for (int i = 0; i < c->count; i++) {
        int inside = 0;
        for (int k = i + 1; k < c->count; k++)
            for (int o = 0; o < operand_count(w->p, &c->steps[k]); o++)
                inside += c->steps[k].node->inputs[o] == result(&c->steps[i]);
        w->stored[i] = w->p->ahead[result(&c->steps[i])].uses > inside;
    }
}

static void put_parameters(writing *w)
{
    ort_strbuf *t = &w->text;
    for (int i = 0; i < w->operand_count; i++)
        ort_strbuf_addf(t, "__global const %s *x%d, ",
                        memory_name(w->p, w->operands[i].id), i);
    for (int i = 0; i < w->c->count; i++)
        if (w->stored[i])
            ort_strbuf_addf(t, "__global %s *y%d, ",
                            memory_name(w->p, result(&w->c->steps[i])), i);
    for (int d = 0; d < ORT_CL_AXES && w->walks; d++)
        ort_strbuf_addf(t, "int n%d, ", d);
    for (int i = 0; i < w->operand_count; i++)
        for (int d = 0; d < ORT_CL_AXES && w->operands[i].kind == 'w'; d++)
            ort_strbuf_addf(t, "int s%d_%d, ", i, d);
    ort_strbuf_addf(t, "int count)\n{\n");
}

/* `format` for each operand that is read with strides. */
static void put_walks(writing *w, const char *before, const char *format, const char *behind)
{
    for (int i = 0; i < w->operand_count; i++) {
        if (w->operands[i].kind != 'w')
            continue;
        ort_strbuf_addf(&w->text, "%s", before);
        for (const char *at = format; *at; at++) {
            if (*at == '#')
                ort_strbuf_addf(&w->text, "%d", i);
            else
                ort_strbuf_add_char(&w->text, *at);
        }
        ort_strbuf_addf(&w->text, "%s", behind);
    }
}

/* Where element i lies in each operand that is spread. */
static void put_places(writing *w)
{
    char line[64];
    ort_strbuf_addf(&w->text, "int at = i %% n5, row = i / n5, j;\n");
    put_walks(w, "int ", "p# = at * s#_5", ";\n");
    for (int d = ORT_CL_AXES - 2; d > 0; d--) {
        ort_strbuf_addf(&w->text, "j = row %% n%d; row /= n%d;\n", d, d);
        snprintf(line, sizeof line, "p# += j * s#_%d;\n", d);
        put_walks(w, "", line, "");
    }
    put_walks(w, "", "p# += row * s#_0;\n", "");
}

static void put_load(writing *w, int index, bool all)
{
    const operand *o = &w->operands[index];
    ort_strbuf *t = &w->text;
    int element = element_of(w->p, o->id);
    const char *type = (all ? all_names : one_names)[element];
    bool flags = element == 3;
    char place[24], strides[24] = "";
    snprintf(place, sizeof place, o->kind == '1' ? "0" : o->kind == 'w' ? "p%d" : "i", index);
    if (o->kind == 'w')
        snprintf(strides, sizeof strides, "s%d_5 ? ", index);
    bool half = ort_cl_halves(w->p, o->id);
    const char *load = flags ? "LOAD_FLAGS" : half ? "HALF_LOAD" : "LOAD";
    ort_strbuf_addf(t, "%s a%d = ", type, index);
    if (!all) {
        ort_strbuf_addf(t, half ? "HALF_AT(x%d, %s);\n" : "x%d[%s]%s;\n", index, place,
                        flags ? " != 0" : "");
        return;
    }
    if (o->kind != '1')
        ort_strbuf_addf(t, "%s%s(x%d + %s)%s", strides, load, index, place,
                        o->kind == 'w' ? " : " : "");
    if (o->kind != '=')
        ort_strbuf_addf(t, flags  ? "SPREAD_FLAG(x%d[%s])"
                           : half ? "(%3$s)HALF_AT(x%1$d, %2$s)"
                                  : "(%3$s)x%1$d[%2$s]", index, place, type);
    ort_strbuf_addf(t, ";\n");
}

static void put_number(writing *w, const char *type, double number)
{
    ort_strbuf_addf(&w->text, ", (%s)(", type);
    if (isnan(number))
        ort_strbuf_addf(&w->text, "NAN)");
    else if (isinf(number))
        ort_strbuf_addf(&w->text, "%sINFINITY)", number < 0 ? "-" : "");
    else
        ort_strbuf_addf(&w->text, "%af)", (double)(float)number);
}

static void put_name(writing *w, ort_id id)
{
    int step = maker(w->c, id);
    for (int i = 0; i < w->operand_count && step < 0; i++)
        if (w->operands[i].id == id)
            ort_strbuf_addf(&w->text, "a%d", i);
    if (step >= 0)
        ort_strbuf_addf(&w->text, "t%d", step);
}

/* What the step computes: functions of one element and two numbers, of two elements (of more, one
 * after the other), of a condition and two elements; or a conversion. */
static void put_step(writing *w, int index, bool all)
{
    const char *const *types = all ? all_names : one_names;
    ort_strbuf *t = &w->text;
    ort_cl_step s = {(ort_cl_plan *)w->p, w->c->steps[index].node, w->c->steps[index].op};
    double ab[2] = {0, 0};
    const ort_id *in = s.node->inputs;
    int from = element_of(w->p, in[0]), to = element_of(w->p, result(&w->c->steps[index]));
    s.row = w->p->device->row_of(s.op);
    const char *name = s.row->numbers ? s.row->numbers(&s, ab) : s.row->kernel;
    ort_strbuf_addf(t, "%s t%d = ", types[to], index);
    if (s.row->form == ORT_CL_CAST) {
        ort_strbuf_addf(t, "%s_to_%s(", types[from], types[to]);
        put_name(w, in[0]);
    } else if (s.row->form == ORT_CL_ONE) {
        ort_strbuf_addf(t, "%s_%s(", name, types[from]);
        put_name(w, in[0]);
        put_number(w, types[from], ab[0]);
        put_number(w, types[from], ab[1]);
    } else {
        bool picks = s.row->form == ORT_CL_PICK;
        for (int i = picks ? 3 : s.node->input_count; i > 1 + picks; i--)
            ort_strbuf_addf(t, "%s_%s(", name, types[picks ? to : from]);
        if (s.node->input_count == 1) /* a sum of one */
            ort_strbuf_addf(t, "(");
        put_name(w, in[0]);
        for (int i = 1; i < s.node->input_count; i++) {
            ort_strbuf_addf(t, ", ");
            put_name(w, in[i]);
            if (i < s.node->input_count - 1 && !picks)
                ort_strbuf_addf(t, ")");
        }
    }
    ort_strbuf_addf(t, ");\n");
}

/* All steps on one element, or on a register of them. */
static void put_steps(writing *w, bool all)
{
    for (int i = 0; i < w->operand_count; i++)
        put_load(w, i, all);
    for (int i = 0; i < w->c->count; i++)
        put_step(w, i, all);
    for (int i = 0; i < w->c->count; i++) {
        ort_id id = result(&w->c->steps[i]);
        bool flags = element_of(w->p, id) == 3, half = ort_cl_halves(w->p, id);
        const char *store = flags ? "STORE_FLAGS" : half ? "HALF_STORE" : "STORE";
        if (w->stored[i] && all)
            ort_strbuf_addf(&w->text, "%2$s(t%1$d, y%1$d + i);\n", i, store);
        else if (w->stored[i])
            ort_strbuf_addf(&w->text, half ? "HALF_PUT(y%1$d, i, t%1$d);\n"
                                           : "y%1$d[i] = t%1$d;\n", i);
    }
}

static void put_loop(writing *w, const char *end, bool all)
{
    ort_strbuf_addf(&w->text, all ? "for (; i + LANES <= %s; i += LANES" : "for (; i < %s; i++",
                    end);
    put_walks(w, ", ", all ? "p# += LANES * s#_5" : "p# += s#_5", "");
    ort_strbuf_addf(&w->text, ") {\n");
    put_steps(w, all);
    ort_strbuf_addf(&w->text, "}\n");
}

static void put_body(writing *w)
{
    ort_strbuf *t = &w->text;
    put_parameters(w);
    if (w->p->device->lanes) {
        ort_strbuf_addf(t, "int i = get_global_id(0) * SPAN, end = min(i + SPAN, count);\n");
        if (w->walks) {
            ort_strbuf_addf(t, "while (i < end) {\n");
            put_places(w);
            ort_strbuf_addf(t, "int stop = min(end, i + n5 - at);\nif (");
            put_walks(w, "", "(unsigned)s#_5 <= 1 && ", "");
            ort_strbuf_addf(t, "true)\n");
        }
        put_loop(w, w->walks ? "stop" : "end", true);
        put_loop(w, w->walks ? "stop" : "end", false);
        if (w->walks)
            ort_strbuf_addf(t, "}\n");
    } else {
        ort_strbuf_addf(t, "int i = get_global_id(0);\n");
        if (w->walks)
            put_places(w);
        put_steps(w, false);
    }
    ort_strbuf_addf(t, "}\n");
}

/* ---- kernels */

/* The functions of the chain, as many as are short, and the kernel's number. */
static char *kernel_name(const writing *w)
{
    ort_strbuf name = {0};
    const ort_cl_chain *c = w->c;
    for (int i = 0; i < c->count; i++) {
        const ort_cl_row *row = w->p->device->row_of(c->steps[i].op);
        if (i == 5) {
            ort_strbuf_addf(&name, "and_%d_", c->count - i);
            break;
        }
        ort_strbuf_addf(&name, "%s_", row->kernel);
    }
    ort_strbuf_addf(&name, "%zu", w->p->chains->kernels.count);
    char *copy = strdup(ort_strbuf_text(&name));
    ort_strbuf_release(&name);
    return copy;
}

/* The kernel of this body; NULL: memory is short. */
static const kernel *find_kernel(ort_cl_plan *p, const writing *w)
{
    const char *body = ort_strbuf_text(&w->text);
    struct ort_cl_chains *all = p->chains;
    for (size_t i = 0; i < all->kernels.count; i++)
        if (!strcmp(all->kernels.data[i].body, body))
            return &all->kernels.data[i];
    kernel one = {kernel_name(w), strdup(body)};
    if (one.name && one.body && ort_vec_push(&all->kernels, one))
        return &all->kernels.data[all->kernels.count - 1];
    free(one.name);
    free(one.body);
    return NULL;
}

/* Sizes and strides, with axes joined that lie one behind the other in all operands. */
static void put_strides(ort_cl_plan *p, const writing *w, ort_cl_launch *l)
{
    int64_t n[ORT_CL_AXES], strides[MOST_OPERANDS][ORT_CL_AXES];
    const ort_cl_walk all = ort_cl_walk_of(type_of(p, result(&w->c->steps[0])));
    int at = ORT_CL_AXES - 1;
    memcpy(n, all.n, sizeof n);
    for (int i = 0; i < w->operand_count; i++)
        ort_cl_spread(type_of(p, w->operands[i].id), ORT_CL_AXES, strides[i]);
    for (int d = at - 1; d >= 0; d--) {
        bool follows = true;
        for (int i = 0; i < w->operand_count; i++)
            follows = follows && (w->operands[i].kind != 'w' || n[d] == 1 ||
                                  strides[i][d] == strides[i][at] * n[at]);
        at -= !follows;
        for (int i = 0; i < w->operand_count && !follows; i++)
            strides[i][at] = strides[i][d];
        n[at] = follows ? n[at] * n[d] : n[d];
    }
    for (int d = 0; d < ORT_CL_AXES; d++)
        ort_cl_add_arg(p, l, (ort_cl_arg){.kind = 'i', .i = d < at ? 1 : (int)n[d]});
    for (int i = 0; i < w->operand_count; i++)
        for (int d = 0; d < ORT_CL_AXES && w->operands[i].kind == 'w'; d++)
            ort_cl_add_arg(p, l, (ort_cl_arg){.kind = 'i', .i = d < at ? 0 : (int)strides[i][d]});
}

static void add_buffer(ort_cl_plan *p, ort_cl_launch *l, int buffer)
{
    ort_cl_add_arg(p, l, (ort_cl_arg){.kind = 'b', .i = buffer});
}

static void launch(ort_cl_plan *p, const writing *w, const kernel *k)
{
    ort_cl_launch l = {.program = "chains", .kernel = k->name};
    int64_t count = ort_cl_count(&p->request->facts[result(&w->c->steps[0])]);
    const ort_cl_step s = {.plan = p};
    const int64_t grid[3] = {ort_cl_items(&s, count), 1, 1};
    for (int i = 0; i < w->operand_count; i++) { /* forms are made before anything is an argument */
        ort_id id = w->operands[i].id;
        ort_cl_read_value(p, id, ort_cl_halves(p, id));
    }
    for (int i = 0; i < w->operand_count; i++) {
        ort_id id = w->operands[i].id;
        add_buffer(p, &l, ort_cl_read_value(p, id, ort_cl_halves(p, id)));
    }
    for (int i = 0; i < w->c->count; i++) {
        ort_id id = result(&w->c->steps[i]);
        if (w->stored[i])
            add_buffer(p, &l, ort_cl_write_value(p, id, ort_cl_halves(p, id)));
    }
    if (w->walks)
        put_strides(p, w, &l);
    ort_cl_add_arg(p, &l, (ort_cl_arg){.kind = 'i', .i = (int)count});
    ort_cl_add_launch(p, &l, grid, NULL);
}

ort_status ort_cl_chain_end(ort_cl_plan *p, ort_error *err)
{
    ort_cl_chain *c = &p->chains->waiting;
    writing w = {.p = p, .c = c};
    if (!c->count)
        return ORT_OK;
    w.operand_count = find_operands(p, c, w.operands);
    for (int i = 0; i < w.operand_count; i++)
        w.walks += w.operands[i].kind == 'w';
    find_stored(&w);
    put_body(&w);
    const kernel *k = find_kernel(p, &w);
    ort_strbuf_release(&w.text);
    if (!k)
        return ort_error_memory(err, sizeof *k);
    launch(p, &w, k);
    p->chains->joined += c->count > 1;
    p->chains->operators += c->count > 1 ? c->count : 0;
    c->count = 0;
    return p->status;
}

/* ---- the steps of a plan */

ort_status ort_cl_chain_step(ort_cl_plan *p, const ort_device_step *step, bool *taken,
                             ort_error *err)
{
    ort_cl_chain *c = &p->chains->waiting;
    *taken = p->device->row_of(step->op)->form != ORT_CL_WHOLE;
    if (*taken && c->count && join(p, step))
        return ORT_OK;
    if (c->count && (*taken || reads(c, step->node)))
        ORT_TRY(ort_cl_chain_end(p, err));
    if (*taken)
        c->steps[c->count++] = *step;
    return ORT_OK;
}

ort_status ort_cl_chains_new(ort_cl_plan *p, ort_error *err)
{
    p->chains = calloc(1, sizeof *p->chains);
    return p->chains ? ORT_OK : ort_error_memory(err, sizeof *p->chains);
}

ort_status ort_cl_chains_finish(ort_cl_plan *p, ort_error *err)
{
    ort_strbuf text = {0};
    const struct ort_cl_chains *all = p->chains;
    ort_status status = ORT_OK;
    for (size_t i = 0; i < all->kernels.count; i++)
        ort_strbuf_addf(&text, "__kernel void %s(%s\n", all->kernels.data[i].name,
                        all->kernels.data[i].body);
    if (all->kernels.count)
        status = ort_cl_generated(p->device, ort_strbuf_text(&text), &p->generated, err);
    ort_strbuf_release(&text);
    if (all->joined)
        ort_log_write(p->device->log, ORT_LOG_INFO,
                      "opencl: %d elementwise operators in %d kernels", all->operators,
                      all->joined);
    return status;
}

void ort_cl_chains_free(ort_cl_plan *p)
{
    if (!p->chains)
        return;
    for (size_t i = 0; i < p->chains->kernels.count; i++) {
        free(p->chains->kernels.data[i].name);
        free(p->chains->kernels.data[i].body);
    }
    ort_vec_release(&p->chains->kernels);
    free(p->chains);
}
