/* bytes_after.c - tables and sums at the end of a convolution in the layout of bytes
 * (bytes_after.h).
 */
#include "op/blocked/bytes_after.h"

#include "base/checked.h"
#include "op/shared/codes.h"

enum { PIECE = 4096, GRAIN = 1 << 15 }; /* a piece stays in the first-level cache */

/* Sets *lines where the table is there and lines give it. */
static ort_status read_table(ort_prep *p, int input, const ort_byte_lines **lines, ort_error *err)
{
    const ort_tensor *table = ort_prep_constant(p, input);
    ort_byte_lines found;
    *lines = NULL;
    if (ort_prep_dtype(p, input) != ORT_DTYPE_UNDEFINED &&
        (!table || ort_tensor_count(table) != 256))
        return ort_prep_fail(p, err, "input %d isn't a constant table of 256 codes", input);
    if (!table || !p->k->codes.follow || !ort_byte_lines_of(table->data, &found))
        return ORT_OK;
    ort_byte_lines *kept = ort_arena_alloc(p->arena, sizeof *kept);
    if (!kept)
        return ort_error_memory(err, sizeof *kept);
    *kept = found;
    *lines = kept;
    return ORT_OK;
}

static bool is_there(const ort_prep *p, int input)
{
    return ort_prep_dtype(p, input) != ORT_DTYPE_UNDEFINED;
}

ort_status ort_bytes_after_prepare(ort_prep *p, bool turned, ort_bytes_after *after,
                                   ort_error *err)
{
    ort_codes conv, other, z;
    *after = (ort_bytes_after){.sums = is_there(p, ORT_BYTES_OTHER_IN), .turned = turned};
    after->any = after->sums || is_there(p, ORT_BYTES_TABLE_IN) ||
                 is_there(p, ORT_BYTES_LAST_TABLE_IN);
    ORT_TRY(read_table(p, ORT_BYTES_TABLE_IN, &after->table, err));
    ORT_TRY(read_table(p, ORT_BYTES_LAST_TABLE_IN, &after->last, err));
    if (!after->sums)
        return ORT_OK;
    if (!ort_codes_known(p, ORT_DTYPE_UINT8, ORT_BYTES_SUM_SCALE_IN, ORT_BYTES_SUM_ZERO_IN,
                         &conv) ||
        !ort_codes_known(p, ORT_DTYPE_UINT8, ORT_BYTES_OTHER_SCALE_IN, ORT_BYTES_OTHER_ZERO_IN,
                         &other) ||
        !ort_codes_known(p, ORT_DTYPE_UINT8, ORT_BYTES_Z_SCALE_IN, ORT_BYTES_Z_ZERO_IN, &z))
        return ort_prep_fail(p, err, "a scale or zero point of the sum isn't one constant");
    after->sum = turned ? ort_codes_sum(&other, &conv, &z) : ort_codes_sum(&conv, &other, &z);
    return ORT_OK;
}

ort_status ort_bytes_after_shape(const ort_shaping *sh, const ort_bytes_after *after,
                                 ort_error *err)
{
    if (after->sums && !ort_shape_equal(&sh->in[ORT_BYTES_OTHER_IN]->shape, &sh->out[0]->shape))
        return ort_error_set(err, ORT_ERROR_MODEL, "what is added has another shape");
    return ORT_OK;
}

static const uint8_t *codes_of(const ort_call *call, int input)
{
    const ort_tensor *t = ort_call_in(call, input);
    return t ? t->data : NULL;
}

ort_bytes_after_job ort_bytes_after_begin(const ort_call *call, const ort_bytes_after *after)
{
    return (ort_bytes_after_job){
        .after = after, .k = &call->k->codes, .y = ort_call_out(call, 0)->data,
        .other = codes_of(call, ORT_BYTES_OTHER_IN), .table = codes_of(call, ORT_BYTES_TABLE_IN),
        .last = codes_of(call, ORT_BYTES_LAST_TABLE_IN)};
}

static void look_up(const ort_bytes_after_job *j, const ort_byte_lines *lines,
                    const uint8_t *table, uint8_t *y, size_t n)
{
    if (lines)
        j->k->follow(y, y, n, lines);
    else if (table)
        j->k->look_up(y, y, n, table);
}

void ort_bytes_after_do(const ort_bytes_after_job *j, int64_t first, int64_t count)
{
    for (int64_t end = first + count; first < end; first += PIECE) {
        const size_t n = (size_t)ort_min_i64(PIECE, end - first);
        uint8_t *y = j->y + first;
        look_up(j, j->after->table, j->table, y, n);
        if (j->other && j->after->turned)
            j->k->add(j->other + first, y, y, n, &j->after->sum);
        else if (j->other)
            j->k->add(y, j->other + first, y, n, &j->after->sum);
        look_up(j, j->after->last, j->last, y, n);
    }
}

static void task_after(void *arg, int64_t first, int64_t end, int thread)
{
    ort_bytes_after_do(arg, first, end - first);
}

void ort_bytes_after_run(ort_call *call, const ort_bytes_after_job *j)
{
    ort_call_range(call, ort_tensor_count(ort_call_out(call, 0)), GRAIN, task_after,
                   (void *)(uintptr_t)j);
}
