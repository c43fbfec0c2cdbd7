/* matrix.c - threaded matrix products on the tile kernels.
 *
 * A task is a block of rows by a block of columns. Within a task k is walked in steps of the
 * kernel's kc, so that one panel of B stays in the first-level cache while the rows pass over it;
 * the epilogue's additions belong to the first step and its clamp to the last.
 */
#include "op/shared/matrix.h"

#include <assert.h>
#include <math.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/stream.h"
#include "op/shared/matrix_tiles.h"

static bool packed_bytes(int64_t depth, int64_t n, int64_t nr, size_t element, size_t *bytes)
{
    int64_t columns, count;
    return ort_add_i64(n, nr - 1, &columns) &&
           ort_mul_i64(columns / nr * nr, ort_max_i64(depth, 1), &count) &&
           ort_mul_size((size_t)count, element, bytes);
}

bool ort_matrix_packed_bytes_f32(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes)
{
    return packed_bytes(depth, n, k->gemm.nr, sizeof(float), bytes);
}

bool ort_matrix_packed_bytes_16(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes)
{
    return packed_bytes(depth, n, k->gemm.nr, sizeof(uint16_t), bytes);
}

bool ort_matrix_packed_bytes_f64(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes)
{
    return packed_bytes(depth, n, k->gemm.nr64, sizeof(double), bytes);
}

void ort_matrix_pack_f32(const ort_kernels *k, int64_t depth, int64_t n, const float *b,
                         int64_t row, int64_t column, float *packed)
{
    k->gemm.pack_f32(depth, n, b, row, column, depth, packed);
}

/* Rows in one piece each go to all panels at once, as they are read. */
static void stream_rows(int64_t depth, int64_t n, const char *b, int64_t row_bytes, int64_t nr,
                        int64_t panel, float *packed)
{
    const int64_t whole = n / nr, size = sizeof(float);
    for (int64_t kk = 0; kk < depth; kk++, b += row_bytes, packed += nr) {
        for (int64_t j = 0; j < whole; j++)
            ort_stream(packed + j * panel, b + j * nr * size, (size_t)(nr * size));
        if (whole * nr < n) {
            float *last = packed + whole * panel;
            memset(last, 0, (size_t)(nr * size));
            memcpy(last, b + whole * nr * size, (size_t)((n - whole * nr) * size));
        }
    }
}

void ort_matrix_stream_f32(const ort_kernels *k, int64_t depth, int64_t n, const float *b,
                           int64_t row, int64_t column, int64_t depth_total, float *packed)
{
    enum { NEAR = 4096, AHEAD = 128 };
    _Alignas(64) float near[NEAR];
    const int64_t nr = k->gemm.nr, size = sizeof(float), most = ort_min_i64(AHEAD, NEAR / nr);
    if (column == 1) {
        stream_rows(depth, n, (const char *)b, row * size, nr, depth_total * nr, packed);
    } else {
        for (int64_t j = 0; j < n; j += nr, packed += depth_total * nr)
            for (int64_t from = 0, count; from < depth; from += count) {
                const int64_t columns = ort_min_i64(nr, n - j);
                const char *at = (const char *)b + (j * column + from * row) * size;
                count = ort_min_i64(most, depth - from);
                if (row == 1)
                    ort_stream_ahead(at + count * size, columns, column * size, count * size);
                k->gemm.pack_f32(count, columns, (const float *)(const void *)at, row, column,
                                 count, near);
                ort_stream(packed + from * nr, near, (size_t)(count * nr * size));
            }
    }
    ort_stream_end();
}

void ort_matrix_pack_16(const ort_kernels *k, int64_t depth, int64_t n, const uint16_t *b,
                        int64_t row, int64_t column, uint16_t *packed)
{
    k->gemm.pack_16(depth, n, b, row, column, depth, packed);
}

void ort_matrix_pack_f64(const ort_kernels *k, int64_t depth, int64_t n, const double *b,
                         int64_t row, int64_t column, double *packed)
{
    k->gemm.pack_f64(depth, n, b, row, column, depth, packed);
}

/* ---- one block on this thread */

/* C = epilogue(0): what is left of a product without a k. */
static void fill_empty(int64_t m, int64_t n, float *c, int64_t ldc, const ort_epilogue *e)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float v = e->add ? e->add[i * e->ldadd + j] : 0.0f;
            v += e->row_bias ? e->row_bias[i] : 0.0f;
            v += e->col_bias ? e->col_bias[j] : 0.0f;
            v = v < e->lo ? e->lo : v;
            c[i * ldc + j] = v > e->hi ? e->hi : v;
        }
}

/* The steps of k are of one length: a short last one would write C for little. */
static int64_t even_step(int64_t depth, int64_t most)
{
    int64_t steps = ort_max_i64((depth + most - 1) / most, 1);
    return (depth + steps - 1) / steps;
}

/* B as the kernels reach it (gemm.h). */
typedef struct operand {
    const void *b;
    ort_dtype form;
    int64_t step, panel; /* elements */
} operand;

/* `now`: B was packed into the product's space just now. */
static operand operand_of(const ort_kernels *k, const ort_product_f32 *p, bool now)
{
    int64_t nr = k->gemm.nr;
    if (now)
        return (operand){p->space, ORT_DTYPE_FLOAT, nr, p->depth * nr};
    if (!p->packed)
        return (operand){p->b, ORT_DTYPE_FLOAT, p->row, nr};
    return (operand){p->packed, p->form ? p->form : ORT_DTYPE_FLOAT, nr, p->depth * nr};
}

/* Where `elements` past the first of B lie. */
static const void *at_element(const operand *o, int64_t elements)
{
    return (const char *)o->b + elements * (o->form == ORT_DTYPE_FLOAT ? 4 : 2);
}

enum { WIDE_PANELS = 4, PANEL_MAX = 128 * 32 }; /* floats of a panel: kc by nr of the widest tier */

/* B of 16 bits and rows enough to share it: panels are widened, so that they stay in the cache
 * while the rows pass over them. Few rows take one at a time, which fetches the next one ahead;
 * many take several, which reads A less often. */
static void widened_tile(const ort_kernels *k, ort_dtype form, int64_t m, int64_t n, int64_t depth,
                         const ort_tile_f32 *tile)
{
    float wide[WIDE_PANELS * PANEL_MAX] __attribute__((aligned(64)));
    const int64_t nr = k->gemm.nr;
    const uint16_t *b = tile->b;
    assert(depth * nr <= PANEL_MAX);
    const int64_t together = m <= 32 ? nr : WIDE_PANELS * nr;
    for (int64_t j = 0; j < n; j += together) {
        ort_tile_f32 t = *tile;
        int64_t columns = ort_min_i64(together, n - j);
        for (int64_t i = 0; i < columns; i += nr, b += tile->b_panel)
            (form == ORT_DTYPE_FLOAT16 ? k->math.f16_to_f32 : k->math.bf16_to_f32)(
                b, wide + i * depth, (size_t)(depth * nr));
        t.b = wide;
        t.b_panel = depth * nr;
        t.c += j;
        t.add = t.add ? t.add + j : NULL;
        t.col_bias = t.col_bias ? t.col_bias + j : NULL;
        t.ahead = j + columns < n ? b : tile->ahead;
        k->gemm.f32(m, columns, depth, &t);
    }
}

static void tile_of_form(const ort_kernels *k, ort_dtype form, int64_t m, int64_t n, int64_t depth,
                         const ort_tile_f32 *tile)
{
    if (form == ORT_DTYPE_FLOAT)
        k->gemm.f32(m, n, depth, tile);
    else if (m > ORT_HALF_ROWS)
        widened_tile(k, form, m, n, depth, tile);
    else
        (form == ORT_DTYPE_FLOAT16 ? k->gemm.f16 : k->gemm.bf16)(m, n, depth, tile);
}

size_t ort_matrix_fewer_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth)
{
    const size_t crossed = ort_crossed_space(k, m, n, depth);
    return crossed ? crossed : ort_strassen_space(k, m, n, depth);
}

size_t ort_matrix_notes_f32(const ort_kernels *k, int64_t depth, int64_t n)
{
    const size_t crossed = ort_crossed_notes(k, depth, n);
    return crossed ? crossed : ort_strassen_notes(k, depth, n);
}

static bool on_tiles(const ort_kernels *k, const ort_product_f32 *p, const operand *o)
{
    return p->tiles && ort_tiles_pay(k, p->m, p->n, p->depth) && o->step == k->gemm.nr &&
           o->panel == p->depth * k->gemm.nr && o->form == ORT_DTYPE_FLOAT;
}

/* Can k be summed in parts within one call that begins at k0? */
static bool takes_parts(const ort_kernels *k, const ort_product_f32 *p, const operand *o,
                        const ort_epilogue *e, int64_t k0)
{
    return ort_gemm_parts(&k->gemm) > 1 && o->form == ORT_DTYPE_FLOAT && o->step == k->gemm.nr &&
           p->m > k->gemm.whole_rows && e->alpha == 1.0f &&
           (k0 > 0 || (!e->row_bias && !e->col_bias));
}

/* Rows that are one micro tile read B once, as it lies, if each panel is taken whole: that comes as
 * fast as memory gives it. One or two rows have ways of their own, and rows that collide in the
 * first-level cache are copied by shorter calls. */
enum { FLOW_LEAST = 3, FLOW_COLLIDE = 8, FLOW_AHEAD = (8 << 10) / sizeof(float) };
static bool flows(const ort_kernels *k, const ort_product_f32 *p, const operand *o,
                  const ort_epilogue *e)
{
    const bool collides = p->m > FLOW_COLLIDE && p->lda * (int64_t)sizeof(float) % 4096 == 0;
    return ort_gemm_whole_panels(&k->gemm) && p->m >= FLOW_LEAST && p->m <= k->gemm.mr &&
           !collides && takes_parts(k, p, o, e, 0);
}

/* k of the call that begins at k0: as many parts of kc as leave half of the second-level cache to A
 * and C, so that C is read and written less often. The sums are the same. Of few rows each waits
 * for B, of which less is fetched ahead at a time. */
enum { ROWS_FOR_PARTS = 48 };
static int64_t call_depth(const ort_kernels *k, const ort_product_f32 *p, const operand *o,
                          const ort_epilogue *e, int64_t k0, int64_t kc)
{
    const int64_t nr = k->gemm.nr, column = (p->n + nr - 1) / nr * nr * (int64_t)sizeof(float);
    if (flows(k, p, o, e))
        return p->depth;
    if (p->m < ROWS_FOR_PARTS || !takes_parts(k, p, o, e, k0))
        return kc;
    const int64_t room = (int64_t)ort_cpu_get()->l2_bytes / 2 / column;
    const int64_t reach = ort_min_i64(room, k->gemm.kc * ort_gemm_parts(&k->gemm));
    const int64_t most = ort_max_i64(reach / kc, 1);
    const int64_t parts = (p->depth - k0 + kc - 1) / kc, calls = (parts + most - 1) / most;
    return (parts + calls - 1) / calls * kc;
}

/* B that a call fetches meanwhile, which takes k up to `end`. */
static const void *fetched(const ort_kernels *k, const ort_product_f32 *p, const operand *o,
                           const ort_epilogue *e, int64_t end, const void *next)
{
    if (flows(k, p, o, e))
        return at_element(o, FLOW_AHEAD);
    return end == p->depth || o->step != k->gemm.nr ? next : at_element(o, end * o->step);
}

/* next: the packed B of what this thread is likely to compute then, or NULL. rows: of the whole
 * product, on which sums depend, and not on how it is cut. */
static void block_f32(const ort_kernels *k, const ort_product_f32 *p, const operand *o,
                      const void *next, int64_t rows)
{
    const ort_epilogue none = ort_epilogue_none(), *of = p->epilogue ? p->epilogue : &none;
    const ort_epilogue plain = ort_matrix_plainer(of), *e = &plain;
    if (p->depth == 0)
        fill_empty(p->m, p->n, p->c, p->ldc, e);
    const int64_t kc = rows <= k->gemm.whole_rows ? p->depth : even_step(p->depth, k->gemm.kc);
    for (int64_t k0 = 0, step; k0 < p->depth; k0 += step) {
        step = ort_min_i64(call_depth(k, p, o, e, k0, kc), p->depth - k0);
        bool first = k0 == 0, last = p->depth - k0 <= step;
        ort_tile_f32 t = {.a = p->a + k0, .b = at_element(o, k0 * o->step), .lda = p->lda,
                          .b_step = o->step, .b_panel = o->panel, .c = p->c, .ldc = p->ldc,
                          .alpha = e->alpha,
                          .add = first ? e->add : p->c, .ldadd = first ? e->ldadd : p->ldc,
                          .row_bias = first ? e->row_bias : NULL,
                          .col_bias = first ? e->col_bias : NULL,
                          .lo = last ? e->lo : -INFINITY, .hi = last ? e->hi : INFINITY,
                          .part = step > kc ? kc : 0,
                          .ahead = fetched(k, p, o, e, k0 + step, next)};
        tile_of_form(k, o->form, p->m, p->n, step, &t);
    }
    ort_matrix_activate(k, p->m, p->n, p->c, p->ldc, e);
}

/* Some rows and columns of the product, of which the first column begins a panel. */
static void part_f32(const ort_kernels *k, const ort_product_f32 *of, const operand *b,
                     int64_t row, int64_t rows, int64_t column, int64_t columns, const void *next)
{
    ort_epilogue e = of->epilogue ? *of->epilogue : ort_epilogue_none();
    if (e.add)
        e.add += row * e.ldadd + column;
    if (e.row_bias)
        e.row_bias += row;
    if (e.col_bias)
        e.col_bias += column;
    const ort_product_f32 p = {.m = rows,
                               .n = columns,
                               .depth = of->depth,
                               .a = of->a + row * of->lda,
                               .lda = of->lda,
                               .c = of->c + row * of->ldc + column,
                               .ldc = of->ldc,
                               .epilogue = &e};
    operand o = *b;
    o.b = at_element(&o, column / k->gemm.nr * o.panel);
    block_f32(k, &p, &o, next, of->m);
}

static void direct_f32(const ort_kernels *k, const ort_product_f32 *p, int64_t row, int64_t rows,
                       int64_t column, int64_t columns)
{
    const operand o = operand_of(k, p, false);
    part_f32(k, p, &o, row, rows, column, columns, NULL);
}

/* block_f32 from the last columns on, some panels at a time. */
static void block_backwards(const ort_kernels *k, const ort_product_f32 *p, const operand *o)
{
    const int64_t together = 128 << 10, nr = k->gemm.nr, panel = p->depth * nr;
    const int64_t columns = ort_max_i64(together / ort_max_i64(panel * 4, 1), 1) * nr;
    for (int64_t j = (p->n - 1) / columns * columns; j >= 0; j -= columns) {
        ort_epilogue e = p->epilogue ? *p->epilogue : ort_epilogue_none();
        ort_product_f32 part = *p;
        operand of = *o;
        const void *next = j ? at_element(o, (j - columns) / nr * o->panel) : NULL;
        e.add = e.add ? e.add + j : NULL;
        e.col_bias = e.col_bias ? e.col_bias + j : NULL;
        part.epilogue = &e;
        part.n = ort_min_i64(columns, p->n - j);
        part.c += j;
        of.b = at_element(o, j / nr * o->panel);
        block_f32(k, &part, &of, next, p->m);
    }
}

static bool goes_backwards(const ort_kernels *k, const ort_product_f32 *p)
{
    return p->backwards && p->packed && p->m <= k->gemm.whole_rows;
}

/* Packing reads and writes B once: worth it when enough rows pass over it. */
static bool packs(const ort_kernels *k, int64_t m, int64_t column)
{
    return column != 1 || m > 2 * k->gemm.mr;
}
static bool packs_now(const ort_kernels *k, const ort_product_f32 *p)
{
    return !p->packed && p->space && packs(k, p->m, p->column);
}

void ort_matrix_block_f32(const ort_kernels *k, const ort_product_f32 *p)
{
    if (p->m <= 0 || p->n <= 0)
        return;
    bool now = packs_now(k, p);
    if (now)
        ort_matrix_pack_f32(k, p->depth, p->n, p->b, p->row, p->column, p->space);
    operand o = operand_of(k, p, now);
    if (ort_crossed_takes(k, p))
        ort_crossed_block(k, p, direct_f32);
    else if (ort_strassen_takes(k, p))
        ort_strassen_block(k, p, direct_f32);
    else if (on_tiles(k, p, &o))
        ort_tiles_block(k, p, o.b);
    else if (goes_backwards(k, p))
        block_backwards(k, p, &o);
    else
        block_f32(k, p, &o, NULL, p->m);
}

void ort_matrix_block_f64(const ort_kernels *k, const ort_product_f64 *p)
{
    int64_t nr = k->gemm.nr64, kc = k->gemm.kc;
    if (p->m <= 0 || p->n <= 0)
        return;
    for (int64_t k0 = 0; k0 == 0 || k0 < p->depth; k0 += kc) {
        ort_tile_f64 t = {.a = p->a + k0, .b = p->packed + k0 * nr, .lda = p->lda, .b_step = nr,
                          .b_panel = p->depth * nr, .c = p->c, .ldc = p->ldc, .alpha = p->alpha,
                          .add = k0 ? p->c : p->add, .ldadd = k0 ? p->ldc : p->ldadd};
        k->gemm.f64(p->m, p->n, ort_min_i64(kc, p->depth - k0), &t);
    }
}

/* ---- the task grid */

typedef struct grid {
    int64_t rows, columns;   /* of one task, at most */
    int64_t row_tasks, column_tasks;
    int64_t unit, units; /* rows are cut between units of so many; 0: after each `rows` */
    int64_t parts;       /* of the row tasks, one a thread, whose tasks follow each other; 0: one */
    bool by_rows; /* within these, tasks of the same rows do, otherwise of the same columns */
} grid;

/* Bytes from beyond the second-level cache when every one of `passes` reads an operand again. */
static double streamed(int64_t elements, size_t size, int64_t passes)
{
    double bytes = (double)elements * (double)size, cache = (double)ort_cpu_get()->l2_bytes;
    return bytes <= cache / 2 ? bytes : bytes * (double)passes;
}

/* A small product is worth several threads from some 10 microseconds on: 2^18 multiply-adds a task,
 * 2^16 where few rows wait for B, and fewer where one does, which takes 1.3 microseconds for 24,576
 * from the third-level cache. Columns are parted first, since a panel of B serves all rows. */
static void part_small(grid *g, int64_t m, int64_t n, int64_t depth, int64_t mr, int64_t nr)
{
    const int64_t most = 8, panels = (n + nr - 1) / nr;
    const int64_t least = m == 1 ? 3 << 13 : m <= 8 ? 1 << 16 : 1 << 18;
    double work = (double)m * (double)n * (double)depth / (double)least;
    int64_t wanted = work < (double)most ? (int64_t)work : most;
    if (wanted < 2 || g->row_tasks * ((n + g->columns - 1) / g->columns) >= wanted)
        return;
    g->columns = ort_max_i64(panels * g->row_tasks / wanted, 1) * nr;
    int64_t column_tasks = (n + g->columns - 1) / g->columns;
    int64_t rows = m * column_tasks / wanted / mr * mr;
    if (g->row_tasks * column_tasks < wanted && rows > 0 && rows < g->rows)
        g->row_tasks = (m + rows - 1) / rows;
}

/* Columns of a task at most, for which A is read once. Where A comes from beyond the second-level
 * cache, as many as leave room there for C and what one call reads of B. */
static int64_t most_columns(bool in_parts, int64_t a_bytes)
{
    const int64_t cache = (int64_t)ort_cpu_get()->l2_bytes, share = in_parts ? cache / 2 : cache;
    if (a_bytes <= cache / 2)
        return 128;
    return share >= 1 << 20 ? 384 : share >= 1 << 19 ? 256 : 128;
}

/* Each thread takes rows of its own: it finds them in its own cache where it wrote them in the step
 * before, and will in the next one. Not where each then reads more of B than it would read of what
 * others wrote and write over theirs, which takes longer. */
static void part_rows(grid *g, int64_t m, int64_t n, int64_t depth, int width)
{
    int64_t parts = ort_min_i64(width, g->units);
    if (parts < 2 || n * depth > 2 * m * (n + depth))
        return;
    g->row_tasks = ort_min_i64((g->row_tasks + parts - 1) / parts * parts, g->units);
    g->parts = g->row_tasks % parts ? 0 : parts;
}

/* What the plan below makes one task of, at the price of ten divisions: a product that takes no
 * longer than these. */
static bool is_one_task(int64_t m, int64_t n, int64_t depth, int64_t mr, int64_t nr, int width)
{
    return m <= (width > 1 ? mr : 64) && n <= 4 * nr && depth <= 256 && m * n * depth <= 1 << 16;
}

/* About 2 million multiply-adds a task, blocks of whole micro tiles; more where each of so many
 * threads (`width`) still finds three tasks. */
static grid plan_grid(int64_t m, int64_t n, int64_t depth, const ort_gemm_kernels *k, bool is_f64,
                      int width)
{
    const int64_t target = 2 << 20, least = width > 1 ? 3 * width : 1;
    const int64_t mr = is_f64 ? k->mr64 : k->mr, nr = is_f64 ? k->nr64 : k->nr;
    const size_t size = is_f64 ? sizeof(double) : sizeof(float);
    if (is_one_task(m, n, depth, mr, nr, width))
        return (grid){.rows = m, .columns = 4 * nr, .row_tasks = 1, .column_tasks = 1};
    grid g = {.unit = mr, .units = (m + mr - 1) / mr};
    g.rows = ort_min_i64(m, 168);
    int64_t per_panel = ort_max_i64(g.rows * ort_max_i64(depth, 1), 1) * nr;
    int64_t panels = ort_min_i64(ort_max_i64(target / per_panel, 1), 16);
    g.row_tasks = (m + g.rows - 1) / g.rows;
    int64_t share = (n + nr - 1) / nr * g.row_tasks / least;
    const bool in_parts = !is_f64 && ort_gemm_parts(k) > 1;
    const int64_t most = most_columns(in_parts, m * depth * (int64_t)size) / nr;
    panels = ort_max_i64(panels, ort_min_i64(share, most));
    g.columns = panels * nr;
    if (m <= 8)
        g.columns = ort_max_i64(g.columns, 4 * nr);
    if (width > 1)
        part_small(&g, m, n, depth, mr, nr);
    part_rows(&g, m, n, depth, width);
    g.column_tasks = (n + g.columns - 1) / g.columns;
    g.by_rows = streamed(m * depth, size, 1) + streamed(n * depth, size, g.row_tasks) <
                streamed(m * depth, size, g.column_tasks) + streamed(n * depth, size, 1);
    return g;
}

typedef struct block { /* of the result, that a task computes */
    int64_t first_row, rows, first_column, columns;
} block;

static int64_t first_row(const grid *g, int64_t task)
{
    return g->units ? g->units * task / g->row_tasks * g->unit : task * g->rows;
}

static block block_of(const grid *g, int64_t task, int64_t m, int64_t n)
{
    if (g->row_tasks == 1 && g->column_tasks == 1)
        return (block){.rows = m, .columns = n};
    int64_t parts = ort_max_i64(g->parts, 1), rows = g->row_tasks / parts;
    int64_t part = task / (rows * g->column_tasks), index = task % (rows * g->column_tasks);
    int64_t row = part * rows + (g->by_rows ? index / g->column_tasks : index % rows);
    int64_t column = g->by_rows ? index % g->column_tasks : index / rows;
    block b = {.first_row = first_row(g, row), .first_column = column * g->columns};
    b.rows = ort_min_i64(first_row(g, row + 1), m) - b.first_row;
    b.columns = ort_min_i64(g->columns, n - b.first_column);
    return b;
}

typedef struct job_f32 {
    const ort_kernels *k;
    const ort_product_f32 *p;
    operand b;
    grid g;
} job_f32;

/* Packed panels that the task after this one on the same thread reads: weights that stream come
 * at a third of their speed when each is fetched at its first use. */
static const void *next_panels(const job_f32 *j, size_t task)
{
    int64_t next = (int64_t)task + 1, nr = j->k->gemm.nr;
    if (j->b.step != nr || next >= j->g.row_tasks * j->g.column_tasks)
        return NULL;
    int64_t column = block_of(&j->g, next, j->p->m, j->p->n).first_column;
    return at_element(&j->b, column / nr * j->b.panel);
}

static void task_f32(void *arg, size_t task, int thread)
{
    const job_f32 *j = arg;
    const block at = block_of(&j->g, (int64_t)task, j->p->m, j->p->n);
    part_f32(j->k, j->p, &j->b, at.first_row, at.rows, at.first_column, at.columns,
             next_panels(j, task));
}

static void task_pack(void *arg, int64_t first, int64_t end, int thread)
{
    const job_f32 *j = arg;
    const ort_product_f32 *p = j->p;
    ort_matrix_pack_f32(j->k, p->depth, end - first, p->b + first * p->column, p->row, p->column,
                        (float *)p->space + first * p->depth);
}

void ort_matrix_multiply_f32(const ort_call *call, const ort_product_f32 *p)
{
    const int64_t nr = call->k->gemm.nr;
    if (p->m <= 0 || p->n <= 0)
        return;
    if (ort_crossed_takes(call->k, p)) {
        ort_crossed_multiply(call, p, direct_f32);
        return;
    }
    if (ort_strassen_takes(call->k, p)) {
        ort_strassen_multiply(call, p, direct_f32);
        return;
    }
    int width = ort_call_width(call);
    job_f32 j = {.k = call->k, .p = p,
                 .g = plan_grid(p->m, p->n, p->depth, &call->k->gemm, false, width)};
    bool now = packs_now(j.k, p);
    if (now) {
        int64_t panels = ort_max_i64((64 << 10) / (ort_max_i64(p->depth, 1) * nr), 1);
        ort_call_range(call, p->n, panels * nr, task_pack, &j);
    }
    j.b = operand_of(j.k, p, now);
    if (on_tiles(j.k, p, &j.b))
        ort_tiles_multiply(call, p, j.b.b);
    else if (width == 1 && goes_backwards(j.k, p))
        block_backwards(j.k, p, &j.b);
    else if (j.g.row_tasks * j.g.column_tasks == 1)
        block_f32(j.k, p, &j.b, NULL, p->m);
    else
        ort_call_parallel(call, (size_t)(j.g.row_tasks * j.g.column_tasks), task_f32, &j);
}

typedef struct job_f64 {
    const ort_kernels *k;
    const ort_product_f64 *p;
    grid g;
} job_f64;

static void task_f64(void *arg, size_t task, int thread)
{
    const job_f64 *j = arg;
    ort_product_f64 p = *j->p;
    const block at = block_of(&j->g, (int64_t)task, p.m, p.n);
    const int64_t i0 = at.first_row, j0 = at.first_column;
    p.m = at.rows;
    p.n = at.columns;
    p.a += i0 * p.lda;
    p.packed += j0 * p.depth;
    p.c += i0 * p.ldc + j0;
    p.add = p.add ? p.add + i0 * p.ldadd + j0 : NULL;
    ort_matrix_block_f64(j->k, &p);
}

void ort_matrix_multiply_f64(const ort_call *call, const ort_product_f64 *p)
{
    if (p->m <= 0 || p->n <= 0)
        return;
    grid g = plan_grid(p->m, p->n, p->depth, &call->k->gemm, true, ort_call_width(call));
    job_f64 j = {call->k, p, g};
    ort_call_parallel(call, (size_t)(j.g.row_tasks * j.g.column_tasks), task_f64, &j);
}

size_t ort_matrix_space_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth,
                            int64_t column)
{
    size_t bytes = 0;
    if (packs(k, m, column) && !ort_matrix_packed_bytes_f32(k, depth, n, &bytes))
        return SIZE_MAX;
    return bytes;
}
