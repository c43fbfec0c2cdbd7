/* test_integer.c - products of bytes are exact modulo 2^32 on every tier, whatever the signs, zero
 * points and layouts of their operands, and however many threads share them. */
#include <math.h>
#include <stdlib.h>

#include "base/pool.h"
#include "op/shared/integer.h"
#include "test.h"
#include "workers.h"

enum { THREADS = 3, GUARD = 64, MARK = 0x5a };

typedef enum layout { ROWS, COLUMNS, SPREAD, LAYOUTS } layout;
typedef enum zeros_kind { NO_ZERO, ONE_ZERO, MANY_ZEROS, ZEROS_KINDS } zeros_kind;

typedef struct sizes {
    int64_t m, n, k;
} sizes;

/* One row, tails of micro tiles, panels and words, rows 4 KiB apart, B beyond a cache, no depth;
 * rows and words of whole tiles and of parts of them. */
static const sizes all[] = {{1, 1, 1}, {1, 300, 67}, {2, 33, 4}, {3, 7, 5}, {13, 31, 6},
                            {14, 64, 64}, {15, 65, 129}, {29, 257, 34}, {9, 40, 4096},
                            {43, 100, 2048}, {5, 600, 4100}, {85, 16, 3}, {4, 9, 0},
                            {8, 32, 32}, {33, 48, 72}, {16, 17, 120}, {70, 270, 197}};

static unsigned state = 1;

static unsigned draw(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* Mostly the ends of the range: sums are as large as they can be. */
static uint8_t draw_byte(void)
{
    unsigned x = draw();
    return x % 4 == 0 ? (uint8_t)(x >> 3) : x % 4 == 1 ? 0x80 : x % 4 == 2 ? 0xff : 0x7f;
}

typedef struct matrix {
    uint8_t *memory, *zero_memory;
    ort_bytes of;
    ort_zeros zeros;
} matrix;

static int value_of(const ort_bytes *b, int64_t index)
{
    return b->is_signed ? ((const int8_t *)b->data)[index] : ((const uint8_t *)b->data)[index];
}

/* rows x columns bytes that begin at an odd address when spread. */
static matrix make(int64_t rows, int64_t columns, layout how, bool is_signed, zeros_kind zeros,
                   int64_t zero_count)
{
    int64_t row = how == ROWS ? columns : how == COLUMNS ? 1 : 3 * columns + 1;
    int64_t column = how == ROWS ? 1 : how == COLUMNS ? rows : 3, count = rows * columns * 4 + 8;
    matrix x = {.memory = malloc((size_t)count), .zero_memory = malloc((size_t)zero_count + 1)};
    for (int64_t i = 0; x.memory && i < count; i++)
        x.memory[i] = draw_byte();
    for (int64_t i = 0; x.zero_memory && i < zero_count; i++)
        x.zero_memory[i] = draw_byte();
    x.of = (ort_bytes){x.memory + (how == SPREAD), is_signed, row, column};
    x.zeros = (ort_zeros){zeros == NO_ZERO ? NULL : x.zero_memory, is_signed,
                          zeros == MANY_ZEROS ? zero_count : 1};
    return x;
}

static void drop(matrix *x)
{
    free(x->memory);
    free(x->zero_memory);
}

/* The sums modulo 2^32, of 64 bits. */
static int32_t *reference(const sizes *s, const matrix *a, const matrix *b)
{
    int32_t *sums = malloc((size_t)(s->m * s->n) * sizeof *sums);
    for (int64_t i = 0; sums && i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            int64_t sum = 0, za = ort_zero_at(&a->zeros, i), zb = ort_zero_at(&b->zeros, j);
            for (int64_t kk = 0; kk < s->k; kk++)
                sum += (value_of(&a->of, i * a->of.row + kk * a->of.column) - za) *
                       (value_of(&b->of, kk * b->of.row + j * b->of.column) - zb);
            sums[i * s->n + j] = (int32_t)(uint32_t)(uint64_t)sum;
        }
    return sums;
}

typedef struct place {
    int32_t *to;
    int64_t ld;
} place;

static void keep(void *arg, const ort_integer_tile *t)
{
    const place *p = arg;
    for (int64_t i = 0; i < t->m; i++) {
        int32_t *to = p->to + (t->row + i) * p->ld + t->column;
        for (int64_t j = 0; j < t->n; j++)
            to[j] = (int32_t)((uint32_t)t->sums[i * t->ld + j] +
                              (uint32_t)(t->more ? t->more[i] : 0));
    }
}

typedef struct spaces {
    char *rows, *packed;
    void *thread;
    int32_t *got;
} spaces;

static char *guarded(size_t bytes)
{
    char *p = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    if (p)
        memset(p + bytes, MARK, GUARD);
    return p;
}

static bool is_whole(const char *p, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        if (p[bytes + i] != MARK)
            return false;
    return true;
}

/* Mostly weights of which two of one sign are no more than 128, and few others. */
static void soften(matrix *x, int64_t count)
{
    const int zero = x->of.is_signed ? 0 : 128;
    for (int64_t i = 0; i < count; i++)
        if (draw() % 509)
            x->memory[i] = (uint8_t)(zero + (int)(draw() % 129) - 64);
}

/* Sums are left in place, handed over, or handed over while what rows lack is still to be added;
 * FOURS: the same of panels by fours, where weights allow it. */
typedef enum hand_over { IN_PLACE, WHOLE, LACKING, FOURS } hand_over;

static int seen_fours; /* products that were by fours */

/* The product by one tier; does it equal `expected`? */
static bool agrees(const ort_kernels *k, ort_pool *pool, const sizes *s, const matrix *a,
                   const matrix *b, const int32_t *expected, hand_over how)
{
    const bool in_place = how == IN_PLACE;
    size_t rows = 0, packed = 0, count = (size_t)(s->m * s->n);
    if (!ort_integer_rows_bytes(k, s->m, s->k, &rows) ||
        !(how == FOURS ? ort_integer_fours_bytes
                       : ort_integer_packed_bytes)(k, s->k, s->n, &packed))
        return false;
    spaces p = {guarded(rows), guarded(packed), malloc(THREADS * ort_integer_thread_bytes(k)),
                malloc(count * sizeof *expected)};
    if (!p.rows || !p.packed || !p.thread || !p.got)
        return false;
    ort_call call = {.k = k, .pool = pool, .thread_space = p.thread,
                     .thread_bytes = ort_integer_thread_bytes(k)};
    place to = {p.got, s->n};
    ort_integer_product q = {.m = s->m, .n = s->n, .depth = s->k, .a = a->of, .a_zero = a->zeros,
                             .packed = p.packed, .space = p.rows, .ld = s->n,
                             .sums = in_place ? p.got : NULL, .finish = in_place ? NULL : keep,
                             .arg = &to, .adds_rows = how == LACKING};
    if (in_place)
        ort_integer_pack(k, s->k, s->n, &b->of, &b->zeros, p.packed);
    else if (how == FOURS)
        ort_integer_pack_fours(k, s->k, s->n, &b->of, &b->zeros, p.packed);
    else
        ort_integer_pack_now(&call, s->k, s->n, &b->of, &b->zeros, p.packed);
    seen_fours += ort_integer_parts_of(k, s->n, p.packed).fours;
    ort_integer_multiply(&call, &q);
    bool same = !memcmp(p.got, expected, count * sizeof *expected) && is_whole(p.rows, rows) &&
                is_whole(p.packed, packed);
    free(p.rows);
    free(p.packed);
    free(p.thread);
    free(p.got);
    return same;
}

static bool on_every_tier(ort_pool *pool, const sizes *s, const matrix *a, const matrix *b)
{
    int32_t *expected = reference(s, a, b);
    bool good = expected != NULL;
    for (int i = 0; good && ort_kernel_tier_at(i); i++) {
        if (!ort_kernel_tier_at(i)->has())
            continue;
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        good = agrees(k, NULL, s, a, b, expected, IN_PLACE) &&
               agrees(k, pool, s, a, b, expected, WHOLE) &&
               agrees(k, NULL, s, a, b, expected, LACKING) &&
               agrees(k, pool, s, a, b, expected, FOURS);
    }
    free(expected);
    return good;
}

/* Every size with every mix of signs; layouts and zero points take turns, so that each pair of them
 * comes about. */
static void every_mix(test_state *test)
{
    ort_pool *pool = ort_pool_new_of(THREADS, false, &workers_at_once);
    int turn = 0;
    CHECK(pool);
    for (size_t i = 0; pool && i < sizeof all / sizeof *all; i++)
        for (int signs = 0; signs < 4; signs++)
            for (int kind = 0; kind < ZEROS_KINDS * ZEROS_KINDS; kind++, turn++) {
                const sizes *s = &all[i];
                matrix a = make(s->m, s->k, (layout)(turn % LAYOUTS), signs & 1,
                                (zeros_kind)(kind % ZEROS_KINDS), s->m);
                matrix b = make(s->k, s->n, (layout)(turn / LAYOUTS % LAYOUTS), signs & 2,
                                (zeros_kind)(kind / ZEROS_KINDS), s->n);
                CHECK(a.memory && b.memory && a.zero_memory && b.zero_memory);
                CHECK(on_every_tier(pool, s, &a, &b));
                drop(&a);
                drop(&b);
            }
    ort_pool_free(pool);
}

/* Weights that mostly allow products by fours, of which every tier that has them makes some. */
static void by_fours(test_state *test)
{
    ort_pool *pool = ort_pool_new_of(THREADS, false, &workers_at_once);
    bool some = false;
    CHECK(pool);
    seen_fours = 0;
    for (size_t i = 0; pool && i < sizeof all / sizeof *all; i++)
        for (int turn = 0; turn < 4 * LAYOUTS; turn++) {
            const sizes *s = &all[i];
            matrix a = make(s->m, s->k, (layout)((turn / 2 + (int)i) % LAYOUTS), turn & 1,
                            (zeros_kind)(turn % ZEROS_KINDS), s->m);
            matrix b = make(s->k, s->n, (layout)(turn / 4), turn & 2,
                            (zeros_kind)((turn / 3 + (int)i) % ZEROS_KINDS), s->n);
            CHECK(a.memory && b.memory && a.zero_memory && b.zero_memory);
            soften(&b, s->k * s->n * 4 + 8);
            CHECK(on_every_tier(pool, s, &a, &b));
            drop(&a);
            drop(&b);
        }
    for (int i = 0; ort_kernel_tier_at(i); i++)
        some |= ort_kernel_tier_at(i)->has() &&
                ort_kernels_get(ort_kernel_tier_at(i)->name)->gemm.bytes_fours;
    CHECK((seen_fours > 0) == some);
    ort_pool_free(pool);
}

/* Sums of the largest products, beyond 2^31. */
static void extremes(test_state *test)
{
    const sizes s = {3, 34, 70000};
    for (int signs = 0; signs < 4; signs++)
        for (int high = 0; high < 2; high++) {
            matrix a = make(s.m, s.k, ROWS, signs & 1, ONE_ZERO, 1);
            matrix b = make(s.k, s.n, ROWS, signs & 2, ONE_ZERO, 1);
            CHECK(a.memory && b.memory);
            memset(a.memory, signs & 1 ? 0x80 : high ? 0xff : 0, (size_t)(s.m * s.k));
            memset(b.memory, signs & 2 ? 0x80 : high ? 0xff : 0, (size_t)(s.k * s.n));
            *a.zero_memory = signs & 1 ? 0x7f : high ? 0 : 0xff;
            *b.zero_memory = signs & 2 ? (high ? 0 : 0x7f) : high ? 0 : 0xff;
            CHECK(on_every_tier(NULL, &s, &a, &b));
            drop(&a);
            drop(&b);
        }
}

/* Floats that are quantized on the way give the sums of their codes. */
static void floats(test_state *test)
{
    const sizes s = {17, 50, 1037};
    matrix a = make(s.m, s.k, ROWS, false, ONE_ZERO, 1);
    matrix b = make(s.k, s.n, ROWS, true, NO_ZERO, 1);
    float *x = malloc((size_t)(s.m * s.k) * sizeof *x);
    int32_t *expected = reference(&s, &a, &b), got[17 * 50];
    CHECK(a.memory && b.memory && x && expected);
    const float scale = 0.25f;
    for (int64_t i = 0; i < s.m * s.k; i++)
        x[i] = scale * (float)(a.memory[i] - ort_zero_at(&a.zeros, 0));
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        if (!ort_kernel_tier_at(i)->has())
            continue;
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        size_t rows = 0, packed = 0;
        CHECK(ort_integer_rows_bytes(k, s.m, s.k, &rows) &&
              ort_integer_packed_bytes(k, s.k, s.n, &packed));
        char *row_space = guarded(rows), *pack = guarded(packed);
        void *thread = malloc(ort_integer_thread_bytes(k));
        CHECK(row_space && pack && thread);
        ort_call call = {.k = k, .thread_space = thread,
                         .thread_bytes = ort_integer_thread_bytes(k)};
        ort_integer_pack(k, s.k, s.n, &b.of, &b.zeros, pack);
        ort_integer_product q = {.m = s.m, .n = s.n, .depth = s.k, .floats = x, .scale = scale,
                                 .a_zero = a.zeros, .packed = pack, .space = row_space,
                                 .sums = got, .ld = s.n};
        ort_integer_multiply(&call, &q);
        CHECK(!memcmp(got, expected, sizeof got));
        free(row_space);
        free(pack);
        free(thread);
    }
    free(x);
    free(expected);
    drop(&a);
    drop(&b);
}

/* Sums that pass by the caches are those that don't: whole tiles and parts of them, more steps than
 * rows that wait, and fewer. */
static void far_sums(test_state *test)
{
    static const sizes far[] = {{32, 64, 4}, {32, 32, 32 * 64}, {64, 96, 68}, {70, 64, 192},
                                {32, 48, 64}, {48, 32, 76}, {32, 256, 1024}};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        const sizes *s = &far[i];
        const size_t bytes = (size_t)(s->m * s->n) * sizeof(int32_t);
        int32_t *got[2] = {aligned_alloc(64, bytes), aligned_alloc(64, bytes)};
        matrix a = make(s->m, s->k, ROWS, false, NO_ZERO, 1);
        matrix b = make(s->k, s->n, ROWS, true, NO_ZERO, 1);
        CHECK(got[0] && got[1] && a.memory && b.memory);
        for (int t = 0; ort_kernel_tier_at(t); t++) {
            const ort_kernel_tier *tier = ort_kernel_tier_at(t);
            const ort_kernels *k = tier->has() ? ort_kernels_get(tier->name) : NULL;
            if (!k || !k->gemm.bytes_tiles)
                continue;
            char *panels = guarded((size_t)((s->n + k->gemm.nri) * (s->k + 4)));
            const int64_t words = s->k / 4;
            CHECK(panels);
            k->gemm.pack_bytes(s->k, s->n, b.of.data, b.of.row, 1, true, panels);
            for (int far_too = 0; far_too < 2; far_too++) {
                ort_tile_i32 tile = {.a = a.of.data, .lda = words, .b = panels,
                                     .b_step = k->gemm.nri, .b_panel = words * k->gemm.nri,
                                     .c = got[far_too], .ldc = s->n, .far = far_too};
                memset(got[far_too], MARK, bytes);
                k->gemm.bytes_tiles(s->m, s->n, words, &tile);
            }
            CHECK(!memcmp(got[0], got[1], bytes));
            free(panels);
        }
        free(got[0]);
        free(got[1]);
        drop(&a);
        drop(&b);
    }
}

enum { REQUANT_ROWS = 3, REQUANT_COLUMNS = 150 };

typedef struct requant_case {
    bool is_signed, per_column, biased, more;
} requant_case;

static uint8_t requant_one(const ort_requant *r, int32_t sum, int32_t more, int64_t j)
{
    const int64_t at = r->per_column ? j : 0;
    const int32_t whole = (int32_t)((uint32_t)sum + (uint32_t)more +
                                    (uint32_t)(r->bias ? r->bias[at] : 0));
    const float v = (float)whole * r->scale[at];
    const float low = (float)(r->lo - r->zero), high = (float)(r->hi - r->zero);
    return (uint8_t)((int)rintf(v < low ? low : v > high ? high : v) + r->zero);
}

/* Sums of all sizes, and some whose codes would lie between two. */
static bool requants(const ort_kernels *k, const requant_case *c, int64_t n)
{
    int32_t sums[REQUANT_ROWS * REQUANT_COLUMNS], bias[REQUANT_COLUMNS], more[REQUANT_ROWS];
    float scale[REQUANT_COLUMNS];
    uint8_t got[REQUANT_ROWS * REQUANT_COLUMNS + 1];
    const int64_t row = REQUANT_COLUMNS;
    for (int i = 0; i < REQUANT_ROWS * REQUANT_COLUMNS; i++)
        sums[i] = draw() % 3 ? (int32_t)(draw() % 800) - 400 : (int32_t)(draw() << 8);
    for (int j = 0; j < REQUANT_COLUMNS; j++) {
        bias[j] = (int32_t)(draw() % 100) - 50;
        scale[j] = c->per_column && j % 3 ? 0.37f : 0.5f;
    }
    for (int i = 0; i < REQUANT_ROWS; i++)
        more[i] = (int32_t)(draw() % 200) - 100;
    ort_requant r = {.bias = c->biased ? bias : NULL, .scale = scale, .per_column = c->per_column,
                     .zero = c->is_signed ? -7 : 131, .lo = c->is_signed ? -128 : 0,
                     .hi = c->is_signed ? 127 : 255};
    memset(got, MARK, sizeof got);
    k->gemm.requant_rows(REQUANT_ROWS, n, sums, row, c->more ? more : NULL, &r, got, row);
    for (int i = 0; i < REQUANT_ROWS; i++)
        for (int64_t j = 0; j < row; j++) {
            uint8_t expected = j >= n ? MARK : requant_one(&r, sums[i * row + j],
                                                           c->more ? more[i] : 0, j);
            if (got[i * row + j] != expected)
                return false;
        }
    return got[REQUANT_ROWS * row] == MARK;
}

static void requantized(test_state *test)
{
    for (int i = 0; ort_kernel_tier_at(i); i++)
        for (int kind = 0; kind < 16 && ort_kernel_tier_at(i)->has(); kind++)
            for (int64_t n = 1; n <= REQUANT_COLUMNS; n++) {
                const requant_case c = {kind & 1, kind & 2, kind & 4, kind & 8};
                CHECK(requants(ort_kernels_get(ort_kernel_tier_at(i)->name), &c, n));
            }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, every_mix);
    RUN(&test, by_fours);
    RUN(&test, extremes);
    RUN(&test, floats);
    RUN(&test, far_sums);
    RUN(&test, requantized);
    return test.failures != 0;
}
