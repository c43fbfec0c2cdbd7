/* einsum.c - Einsum: any number of operands, contracted from left to right.
 *
 * A label is a number: 0-25 'A'-'Z', 26-51 'a'-'z' (ASCII order, as the implicit output needs),
 * then the axes of the ellipsis, aligned at their end. Invariant: a term in work is a contiguous
 * array with distinct labels of more than one element; an axis of 1 is dropped at once, which is
 * broadcasting.
 * Two terms meet as a batch of matrix products: labels of both that are still needed are the batch,
 * labels of both that are not are summed.
 */
#include <string.h>

#include "base/checked.h"
#include "op/shared/matrix.h"
#include "op/shared/move.h"

enum { LETTERS = 52, LABELS = LETTERS + ORT_MAX_RANK, OPERANDS = 64, TASK_WORK = 64 * 1024 };

typedef unsigned __int128 label_set;

#define IN(set, label) ((bool)((set) >> (label) & 1))
#define ONE(label) ((label_set)1 << (label))

typedef struct einsum_axes { /* labels of an operand or the output, axis by axis */
    int rank;
    uint8_t label[ORT_MAX_RANK];
} einsum_axes;

typedef struct einsum_form {
    int count;
    einsum_axes operand[OPERANDS], out;
} einsum_form;

/* ---- the equation */

static int letter_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* One term up to `end`; dots: axes that "..." stands for, -1: whatever is left of `rank`. */
static const char *parse_term(const char *p, const char *end, int rank, int dots,
                              einsum_axes *axes)
{
    int letters = 0;
    for (const char *q = p; q < end; q++)
        letters += letter_of(*q) >= 0;
    if (dots < 0)
        dots = rank - letters;
    axes->rank = 0;
    for (bool seen = false; p < end; p++) {
        if (*p == ' ')
            continue;
        if (*p == '.') {
            if (seen || end - p < 3 || p[1] != '.' || p[2] != '.' || dots < 0 ||
                axes->rank + dots > ORT_MAX_RANK)
                return "a wrong ellipsis";
            seen = true;
            p += 2;
            for (int k = 0; k < dots; k++)
                axes->label[axes->rank++] = (uint8_t)(LABELS - dots + k);
            continue;
        }
        if (letter_of(*p) < 0)
            return "a character that is neither a letter, a comma, an ellipsis nor an arrow";
        if (axes->rank == ORT_MAX_RANK)
            return "too many axes in a term";
        axes->label[axes->rank++] = (uint8_t)letter_of(*p);
    }
    return NULL;
}

static void implicit_output(einsum_form *form, int dots)
{
    int uses[LETTERS] = {0};
    for (int i = 0; i < form->count; i++)
        for (int d = 0; d < form->operand[i].rank; d++)
            if (form->operand[i].label[d] < LETTERS)
                uses[form->operand[i].label[d]]++;
    form->out.rank = 0;
    for (int k = 0; k < dots; k++)
        form->out.label[form->out.rank++] = (uint8_t)(LABELS - dots + k);
    for (int l = 0; l < LETTERS && form->out.rank < ORT_MAX_RANK; l++)
        if (uses[l] == 1)
            form->out.label[form->out.rank++] = (uint8_t)l;
}

/* NULL, or what is wrong with the equation. */
static const char *einsum_parse(const char *equation, const int *ranks, int count,
                                einsum_form *form)
{
    const char *arrow = strstr(equation, "->"), *end = arrow ? arrow : equation + strlen(equation);
    const char *p = equation, *wrong;
    label_set inputs = 0, outputs = 0;
    int dots = 0;
    form->count = 0;
    for (;;) {
        const char *comma = memchr(p, ',', (size_t)(end - p)), *stop = comma ? comma : end;
        if (form->count >= count || form->count == OPERANDS)
            return "more terms than there are inputs";
        einsum_axes *axes = &form->operand[form->count];
        wrong = parse_term(p, stop, ranks[form->count], -1, axes);
        if (wrong)
            return wrong;
        if (axes->rank != ranks[form->count])
            return "a term whose number of axes is not the rank of its input";
        for (int d = 0, n = 0; d < axes->rank; d++) {
            inputs |= ONE(axes->label[d]);
            n += axes->label[d] >= LETTERS;
            dots = n > dots ? n : dots;
        }
        form->count++;
        if (!comma)
            break;
        p = comma + 1;
    }
    if (form->count != count)
        return "fewer terms than there are inputs";
    if (!arrow) {
        implicit_output(form, dots);
        return NULL;
    }
    wrong = parse_term(arrow + 2, equation + strlen(equation), 0, dots, &form->out);
    for (int d = 0; !wrong && d < form->out.rank; d++) {
        if (IN(outputs, form->out.label[d]) || !IN(inputs, form->out.label[d]))
            wrong = "an output label that is repeated or in no input";
        outputs |= ONE(form->out.label[d]);
    }
    return wrong;
}

/* The size of the label of axis d of one operand. Axes of different operands broadcast (numpy, the
 * reference), those of one operand are a diagonal and must be equal; false when they aren't. */
static bool label_dim(const ort_type *type, const einsum_axes *axes, int d, ort_dim *size)
{
    *size = type->dim[d];
    for (int k = 0; k < axes->rank; k++) {
        if (axes->label[k] != axes->label[d])
            continue;
        if (ort_dim_differ(*size, type->dim[k]))
            return false;
        *size = k < d ? ort_dim_merge(type->dim[k], *size) : ort_dim_merge(*size, type->dim[k]);
    }
    return true;
}

static ort_status einsum_infer(ort_infer *x, ort_error *err)
{
    ort_dim dim[LABELS], dims[ORT_MAX_RANK];
    int ranks[OPERANDS];
    const char *equation = ort_node_string(x->node, "equation", "");
    if (x->in_count > OPERANDS)
        return ort_infer_fail(x, err, "%d inputs; at most %d are supported", x->in_count, OPERANDS);
    for (int i = 0; i < x->in_count; i++) {
        if (!ort_infer_in_ranked(x, i))
            return ORT_OK;
        ranks[i] = x->in[i]->type.rank;
    }
    einsum_form *form = ort_arena_alloc(x->arena, sizeof *form);
    if (!form)
        return ort_error_memory(err, sizeof *form);
    const char *wrong = einsum_parse(equation, ranks, x->in_count, form);
    if (wrong)
        return ort_infer_fail(x, err, "equation \"%s\" has %s", equation, wrong);
    for (int l = 0; l < LABELS; l++)
        dim[l] = ort_dim_of(1);
    for (int i = 0; i < x->in_count; i++)
        for (int d = 0; d < ranks[i]; d++) {
            int l = form->operand[i].label[d];
            ort_dim own;
            if (!label_dim(&x->in[i]->type, &form->operand[i], d, &own) ||
                !ort_dim_broadcast(x->dims, dim[l], own, &dim[l]))
                return ort_infer_fail(x, err, "axis %d of input %d does not fit the other axes of "
                                      "its label", d, i);
        }
    for (int d = 0; d < form->out.rank; d++)
        dims[d] = dim[form->out.label[d]];
    ort_infer_set_shape(x, 0, form->out.rank, dims);
    return ORT_OK;
}

typedef struct einsum_state {
    ort_string equation;
} einsum_state;

static const ort_bind einsum_bind[] = {ORT_BIND(einsum_state, equation), {0}};

static ort_status einsum_prepare(ort_prep *p, ort_error *err)
{
    ort_dtype_class c = ort_dtype_get(ort_prep_dtype(p, 0))->class_;
    bool number = c == ORT_CLASS_FLOAT || c == ORT_CLASS_INT || c == ORT_CLASS_UINT;
    return number ? ORT_OK : ort_prep_unsupported_dtype(p, 0, err);
}

/* ---- terms in work: float, double, or int64 (modulo 2^64) */

typedef enum work_type { WORK_F32, WORK_F64, WORK_I64 } work_type;

typedef struct term {
    int rank;
    uint8_t label[LABELS];
    void *data;
} term;

typedef struct einsum_job {
    ort_call *call;
    work_type work;
    size_t bytes; /* of an element in work */
    int64_t dim[LABELS];
} einsum_job;

static ort_dtype work_dtype(work_type work)
{
    return work == WORK_F32 ? ORT_DTYPE_FLOAT : work == WORK_F64 ? ORT_DTYPE_DOUBLE
                                                                 : ORT_DTYPE_INT64;
}

static label_set labels_of(const term *t)
{
    label_set set = 0;
    for (int d = 0; d < t->rank; d++)
        set |= ONE(t->label[d]);
    return set;
}

/* Product of the dims of the labels first..last-1 of a list; -1 on overflow. */
static int64_t product(const einsum_job *job, const uint8_t *label, int count)
{
    int64_t n = 1;
    for (int d = 0; d < count; d++)
        if (!ort_mul_i64(n, job->dim[label[d]], &n))
            return -1;
    return n;
}

static ort_status term_alloc(const einsum_job *job, term *t, ort_error *err)
{
    int64_t count = product(job, t->label, t->rank);
    size_t bytes;
    if (count < 0 || !ort_mul_size((size_t)count, job->bytes, &bytes))
        return ort_error_memory(err, SIZE_MAX);
    t->data = ort_call_alloc(job->call, bytes);
    return t->data ? ORT_OK : ort_error_memory(err, bytes);
}

static ort_status load_working(const einsum_job *job, const ort_tensor *in, const void **data,
                               ort_error *err)
{
    int64_t count = ort_tensor_count(in);
    void *room;
    *data = in->data;
    if (in->dtype == work_dtype(job->work))
        return ORT_OK;
    room = ort_call_alloc(job->call, (size_t)count * job->bytes);
    if (!room)
        return ort_error_memory(err, (size_t)count * job->bytes);
    if (job->work == WORK_F32)
        ort_tensor_to_f32(in, 0, count, room);
    for (int64_t i = 0; job->work == WORK_I64 && i < count; i++)
        ((int64_t *)room)[i] = ort_tensor_get_i64(in, i);
    *data = room;
    return ORT_OK;
}

#define ADD_AT(type) (((type *)out)[to] += ((const type *)in)[from])

/* out[kept labels] = sum over the others of in[sum of label strides]; labels[0..kept) then the
 * summed ones. out is zeroed. */
static void reduce_labels(const einsum_job *job, const uint8_t *labels, int kept, int total,
                          const int64_t *stride, const void *in, void *out)
{
    int64_t index[LABELS] = {0}, from = 0, out_stride[LABELS] = {0}, to = 0, step = 1;
    for (int d = kept - 1; d >= 0; d--) {
        out_stride[d] = step;
        step *= job->dim[labels[d]];
    }
    for (;;) {
        int d = total - 1;
        if (job->work == WORK_F32)
            ADD_AT(float);
        else if (job->work == WORK_F64)
            ADD_AT(double);
        else
            ADD_AT(uint64_t);
        for (; d >= 0; d--) {
            from += stride[labels[d]];
            to += out_stride[d];
            if (++index[d] < job->dim[labels[d]])
                break;
            from -= index[d] * stride[labels[d]];
            to -= index[d] * out_stride[d];
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}

/* Operand to term: axes of 1 dropped, diagonals taken, labels outside `needed` summed. */
static ort_status term_load(const einsum_job *job, const ort_tensor *in, const einsum_axes *axes,
                            label_set needed, term *t, ort_error *err)
{
    int64_t stride[LABELS] = {0}, plain[ORT_MAX_RANK];
    uint8_t labels[LABELS];
    int kept = 0, total = 0;
    bool diagonal = false;
    label_set seen = 0;
    const void *data;
    ORT_TRY(load_working(job, in, &data, err));
    ort_shape_strides(&in->shape, plain);
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < axes->rank; d++) {
            int l = axes->label[d];
            if (in->shape.dim[d] == 1 || IN(needed, l) != (pass == 0))
                continue;
            diagonal = diagonal || IN(seen, l);
            stride[l] += plain[d];
            if (!IN(seen, l)) {
                labels[total++] = (uint8_t)l;
                kept += pass == 0;
            }
            seen |= ONE(l);
        }
    t->rank = kept;
    memcpy(t->label, labels, (size_t)kept);
    if (!diagonal && kept == total) {
        t->data = (void *)(uintptr_t)data;
        return ORT_OK;
    }
    ORT_TRY(term_alloc(job, t, err));
    memset(t->data, 0, (size_t)product(job, t->label, t->rank) * job->bytes);
    reduce_labels(job, labels, kept, total, stride, data, t->data);
    return ORT_OK;
}

/* The term with its labels in this order (all of them); copies only when the order differs. */
static ort_status term_permute(const einsum_job *job, const term *t, const uint8_t *order,
                               term *out, ort_error *err)
{
    int64_t stride[LABELS], to = 1, from = 1, strides[LABELS];
    *out = *t;
    if (!memcmp(t->label, order, (size_t)t->rank))
        return ORT_OK;
    memcpy(out->label, order, (size_t)t->rank);
    ORT_TRY(term_alloc(job, out, err));
    ort_move move = {.dtype = work_dtype(job->work), .src = t->data, .dst = out->data};
    for (int d = t->rank - 1; d >= 0; d--) {
        stride[t->label[d]] = from;
        from *= job->dim[t->label[d]];
        strides[d] = to;
        to *= job->dim[order[d]];
    }
    if (t->rank > ORT_MOVE_MAX)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "a product of %d axes; at most %d are "
                             "supported", t->rank, ORT_MOVE_MAX);
    for (int d = 0; d < t->rank; d++)
        ort_move_add(&move, job->dim[order[d]], stride[order[d]], strides[d]);
    ort_move_run(&move, job->call->pool);
    return ORT_OK;
}

/* ---- contraction */

typedef struct products { /* C[b][m][n] = sum over k of A[b][m][k] * B[b][k][n] */
    const einsum_job *job;
    int64_t batch, m, n, k, per_task, row_block, row_blocks;
    const void *a, *b;
    void *c;
} products;

#define MULTIPLY(type)                                                                             \
    do {                                                                                           \
        const type *a = (const type *)p->a + (b * p->m + row) * p->k;                              \
        const type *w = (const type *)p->b + b * p->k * p->n;                                      \
        type *c = (type *)p->c + (b * p->m + row) * p->n;                                          \
        memset(c, 0, (size_t)(rows * p->n) * sizeof *c);                                           \
        for (int64_t i = 0; i < rows; i++)                                                         \
            for (int64_t k = 0; k < p->k; k++)                                                     \
                for (int64_t j = 0; j < p->n; j++)                                                 \
                    c[i * p->n + j] += a[i * p->k + k] * w[k * p->n + j];                          \
    } while (0)

static void product_rows(const products *p, int64_t b, int64_t row, int64_t rows)
{
    if (p->job->work == WORK_F32 && p->n >= 8 && p->k >= 4) {
        ort_product_f32 product = {.m = rows, .n = p->n, .depth = p->k,
                                   .a = (const float *)p->a + (b * p->m + row) * p->k, .lda = p->k,
                                   .b = (const float *)p->b + b * p->k * p->n, .row = p->n,
                                   .column = 1, .c = (float *)p->c + (b * p->m + row) * p->n,
                                   .ldc = p->n};
        ort_matrix_block_f32(p->job->call->k, &product);
    } else if (p->job->work == WORK_F32)
        MULTIPLY(float);
    else if (p->job->work == WORK_F64)
        MULTIPLY(double);
    else
        MULTIPLY(uint64_t);
}

static void product_task(void *arg, int64_t first, int64_t end, int thread)
{
    const products *p = arg;
    for (int64_t item = first; item < end; item++) {
        int64_t row = item % p->row_blocks * p->row_block;
        product_rows(p, item / p->row_blocks, row, ort_min_i64(p->row_block, p->m - row));
    }
}

static void product_run(const products *p, ort_call *call)
{
    ort_call_range(call, p->batch * p->row_blocks, p->per_task, product_task, (void *)(uintptr_t)p);
}

/* One large float product: the packed path of MatMul; `transposed`: B is [n][k]. */
static ort_status large_product(const products *p, bool transposed, ort_error *err)
{
    ort_call *call = p->job->call;
    ort_product_f32 product = {.m = p->m, .n = p->n, .depth = p->k, .a = p->a, .lda = p->k,
                               .b = p->b, .row = transposed ? 1 : p->n,
                               .column = transposed ? p->k : 1, .c = p->c, .ldc = p->n};
    size_t bytes = ort_matrix_space_f32(call->k, p->m, p->n, p->k, product.column);
    void *space = ort_call_alloc(call, bytes + 64);
    if (!space)
        return ort_error_memory(err, bytes);
    product.space = (void *)(((uintptr_t)space + 63) & ~(uintptr_t)63);
    ort_matrix_multiply_f32(call, &product);
    return ORT_OK;
}

/* Labels of `t` that are in `set`, in order, appended to list. */
static int append_labels(const term *t, label_set set, uint8_t *list, int count)
{
    for (int d = 0; d < t->rank; d++)
        if (IN(set, t->label[d]))
            list[count++] = t->label[d];
    return count;
}

static ort_status contract(const einsum_job *job, term *a, const term *b, label_set needed,
                           ort_error *err)
{
    label_set in_a = labels_of(a), in_b = labels_of(b), both = in_a & in_b;
    uint8_t order_a[LABELS], order_b[LABELS], flipped[LABELS];
    term left, right, out = {.rank = 0};
    int batch = append_labels(a, both & needed, out.label, 0);
    int with_m = append_labels(a, in_a & ~in_b, out.label, batch);
    out.rank = append_labels(b, in_b & ~in_a, out.label, with_m);
    memcpy(order_a, out.label, (size_t)with_m);
    int end_a = append_labels(a, both & ~needed, order_a, with_m), sums = end_a - with_m;
    memcpy(order_b, out.label, (size_t)batch);
    memcpy(order_b + batch, order_a + with_m, (size_t)sums);
    memcpy(order_b + batch + sums, out.label + with_m, (size_t)(out.rank - with_m));
    memcpy(flipped, out.label + with_m, (size_t)(out.rank - with_m));
    memcpy(flipped + out.rank - with_m, order_a + with_m, (size_t)sums);
    products p = {.job = job, .batch = product(job, out.label, batch)};
    p.m = product(job, out.label + batch, with_m - batch);
    p.n = product(job, out.label + with_m, out.rank - with_m);
    p.k = product(job, order_a + with_m, sums);
    if (p.batch < 0 || p.m < 0 || p.n < 0 || p.k < 0)
        return ort_error_memory(err, SIZE_MAX);
    bool large = job->work == WORK_F32 && p.batch == 1 && p.m > 1 && p.n >= 8 && p.k >= 8;
    bool transposed = large && !memcmp(b->label, flipped, (size_t)b->rank);
    ORT_TRY(term_permute(job, a, order_a, &left, err));
    if (transposed)
        right = *b;
    else
        ORT_TRY(term_permute(job, b, order_b, &right, err));
    ORT_TRY(term_alloc(job, &out, err));
    p.a = left.data;
    p.b = right.data;
    p.c = out.data;
    p.row_block = ort_max_i64(1, ort_min_i64(p.m, TASK_WORK / ort_max_i64(1, p.n)));
    p.row_blocks = (p.m + p.row_block - 1) / p.row_block;
    double work = (double)p.row_block * (double)p.n * (double)p.k;
    p.per_task = work >= TASK_WORK ? 1 : (int64_t)(TASK_WORK / work) + 1;
    *a = out;
    if (large)
        return large_product(&p, transposed, err);
    product_run(&p, job->call);
    return ORT_OK;
}

/* ---- run */

/* Dim of every label; false when two axes of a label differ. */
static bool label_dims(einsum_job *job, const einsum_form *form)
{
    for (int l = 0; l < LABELS; l++)
        job->dim[l] = 1;
    for (int i = 0; i < form->count; i++)
        for (int d = 0; d < form->operand[i].rank; d++) {
            int64_t *dim = &job->dim[form->operand[i].label[d]];
            int64_t n = ort_call_in(job->call, i)->shape.dim[d];
            if (*dim != 1 && n != 1 && n != *dim)
                return false;
            *dim = *dim == 1 ? n : *dim;
        }
    return true;
}

/* Labels of more than one element; `in` NULL: all. */
static label_set axes_set(const einsum_axes *axes, const ort_tensor *in)
{
    label_set set = 0;
    for (int d = 0; d < axes->rank; d++)
        if (!in || in->shape.dim[d] != 1)
            set |= ONE(axes->label[d]);
    return set;
}

static ort_status store(const einsum_job *job, const einsum_form *form, const term *acc,
                        ort_tensor *out, ort_error *err)
{
    uint8_t order[LABELS];
    int count = 0;
    term final;
    for (int d = 0; d < form->out.rank; d++)
        if (IN(labels_of(acc), form->out.label[d]))
            order[count++] = form->out.label[d];
    if (count != acc->rank)
        return ort_error_set(err, ORT_ERROR_RUN, "a label was neither summed nor kept");
    ORT_TRY(term_permute(job, acc, order, &final, err));
    int64_t n = ort_tensor_count(out);
    if (out->dtype == work_dtype(job->work))
        memcpy(out->data, final.data, (size_t)n * job->bytes);
    else if (job->work == WORK_F32)
        ort_tensor_from_f32(final.data, out, 0, n);
    else
        for (int64_t i = 0; i < n; i++)
            ort_tensor_set_i64(out, i, ((const int64_t *)final.data)[i]);
    return ORT_OK;
}

static ort_status einsum_run(ort_call *call, ort_error *err)
{
    einsum_job job = {.call = call, .work = WORK_I64, .bytes = 8};
    ort_tensor *out = ort_call_out(call, 0);
    einsum_form *form = ort_call_alloc(call, sizeof *form);
    int ranks[OPERANDS], count = call->in_count;
    const char *equation = ((const einsum_state *)call->state)->equation.ptr;
    term acc = {.rank = 0}, next;
    if (!form)
        return ort_error_memory(err, sizeof *form);
    if (count > OPERANDS)
        return ort_call_fail(call, err, "%d inputs; at most %d are supported", count, OPERANDS);
    for (int i = 0; i < count; i++)
        ranks[i] = ort_call_in(call, i)->shape.rank;
    const char *wrong = einsum_parse(equation, ranks, count, form);
    if (wrong || !label_dims(&job, form))
        return ort_call_fail(call, err, "equation \"%s\" has %s", equation,
                             wrong ? wrong : "a label whose axes differ");
    if (ort_dtype_get(out->dtype)->class_ == ORT_CLASS_FLOAT)
        job.work = out->dtype == ORT_DTYPE_DOUBLE ? WORK_F64 : WORK_F32;
    job.bytes = job.work == WORK_F32 ? 4 : 8;
    for (int l = 0; l < LABELS; l++)
        if (job.dim[l] == 0) { /* sums of nothing */
            ort_move_fill(out->dtype, out->data, 0, ort_tensor_count(out), NULL, 0);
            return ORT_OK;
        }
    label_set later[OPERANDS + 1];
    later[count] = axes_set(&form->out, NULL);
    for (int i = count - 1; i >= 0; i--)
        later[i] = later[i + 1] | axes_set(&form->operand[i], ort_call_in(call, i));
    for (int i = 0; i < count; i++) {
        label_set needed = later[i + 1] | labels_of(&acc);
        ORT_TRY(term_load(&job, ort_call_in(call, i), &form->operand[i], needed, &next, err));
        if (i == 0)
            acc = next;
        else
            ORT_TRY(contract(&job, &acc, &next, later[i + 1], err));
    }
    return store(&job, form, &acc, out, err);
}

static const ort_op_impl einsum_impl = {
    .state = sizeof(einsum_state), .bind = einsum_bind,
    .infer = einsum_infer, .prepare = einsum_prepare, .run = einsum_run,
};

const ort_op ort_ops_einsum[] = {
    {ONNX, "Einsum", 12, "Inputs*:T -> Output:T", "T:F,I,U", "equation:s!", 0, &einsum_impl,
     .history = "28:T+bf16"},
    {0},
};
