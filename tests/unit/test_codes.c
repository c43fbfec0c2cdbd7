/* test_codes.c - the kernels of 8-bit codes of every tier this machine has, bit for bit those of
 * the scalar tier, which is held against formulas. Counts run over all tail lengths; a guard
 * element behind each output must stay. */
#include <math.h>
#include <string.h>

#include "kernel/kernel.h"
#include "test.h"

#define MOST 700

static struct {
    const ort_code_kernels *reference, *tier;
} under_test;
static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 8;
}

static void fill(uint8_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (uint8_t)draw();
}

#define EACH_COUNT(n) for (size_t n = 1; n < MOST; n += n < 260 ? 1 : 109)

static void tables(test_state *test)
{
    uint8_t x[MOST], a[MOST], want[MOST], got[MOST + 1], table[256];
    EACH_COUNT(n)
    {
        fill(x, n);
        fill(a, n);
        fill(table, sizeof table);
        got[n] = 77;
        under_test.tier->look_up(x, got, n, table);
        CHECK(got[n] == 77);
        for (size_t i = 0; i < n; i++)
            CHECK(got[i] == table[x[i]]);
        for (size_t i = 0; i < n; i++)
            want[i] = draw() % 2 ? (uint8_t)draw() : 0;
        under_test.tier->choose(want, x, a, got, n);
        CHECK(got[n] == 77);
        for (size_t i = 0; i < n; i++)
            CHECK(got[i] == (want[i] ? x[i] : a[i]));
        under_test.reference->look_up(x, want, n, table);
        under_test.tier->look_up(x, x, n, table); /* in place */
        CHECK(!memcmp(x, want, n));
    }
}

/* What codes of [low, high] become by a function, in codes that are steps apart. */
static void fill_table(uint8_t *table, int kind, double low, double high, double step)
{
    for (int i = 0; i < 256; i++) {
        const double x = low + (high - low) * i / 255;
        const double y = kind == 0   ? x * fmin(fmax(x + 3, 0), 6) / 6
                         : kind == 1 ? x / (1 + exp(-x))
                         : kind == 2 ? 1 / (1 + exp(-x))
                         : kind == 3 ? -fmax(x, x / 8)
                                     : fmin(fmax(x / 6 + 0.5, 0), 1);
        table[i] = (uint8_t)(int)fmin(fmax(rint(y / step) + 60, 0), 255);
    }
}

/* Tables as lines: codes below and above 128, of one plane and two, steep and flat. */
static void lines(test_state *test)
{
    uint8_t x[MOST], want[MOST], got[MOST + 1], table[256];
    ort_byte_lines l;
    int forms[3][8] = {{0}}, refused = 0;
    for (int kind = 0; kind < 5; kind++)
        for (double high = 1; high < 9; high += 1.3)
            for (double low = -8; low < 0; low += 1.7) {
                const size_t n = 1 + draw() % (MOST - 1);
                fill_table(table, kind, low, high, high / 140);
                fill(x, n);
                if (!ort_byte_lines_of(table, &l)) {
                    refused++;
                    continue;
                }
                forms[l.planes][l.shift]++;
                for (int i = 0; i < 256; i++) {
                    const int line = l.slope[i / 16] * (i % 16) + l.fine[i / 16];
                    int y = l.base[i / 16] + (line + (64 << l.shift)) / (1 << l.shift) - 64;
                    for (int p = 0; p < l.planes; p++)
                        y += (l.more[p][i / 8] >> i % 8 & 1) << p;
                    CHECK((uint8_t)y == table[i]);
                }
                if (!under_test.tier->follow)
                    continue;
                under_test.reference->look_up(x, want, n, table);
                got[n] = 77;
                under_test.tier->follow(x, got, n, &l);
                CHECK(got[n] == 77 && !memcmp(got, want, n));
                under_test.tier->follow(x, x, n, &l);
                CHECK(!memcmp(x, want, n));
            }
    CHECK(forms[1][5] && forms[1][6] && forms[2][5] && forms[2][6] && refused);
    fill(table, sizeof table);
    CHECK(!ort_byte_lines_of(table, &l));
}

/* Sixteen entries that span all that eight bits hold, and a little more. */
static void steep_lines(test_state *test)
{
    uint8_t x[256], got[256], table[256];
    ort_byte_lines l;
    int given = 0;
    for (int i = 0; i < 256; i++)
        x[i] = (uint8_t)i;
    for (double slope = -8.8; slope < 8.8; slope += slope < -8.2 || slope > 8.2 ? 0.003 : 0.4)
        for (double from = 0; from < 1; from += 0.2) {
            for (int i = 0; i < 256; i++)
                table[i] = (uint8_t)(int)rint((slope < 0 ? 220 : 28) + (i / 16 == 6) * from +
                                              (i / 16 == 6) * slope * (i % 16));
            if (!under_test.tier->follow || !ort_byte_lines_of(table, &l))
                continue;
            given++;
            under_test.tier->follow(x, got, sizeof got, &l);
            CHECK(!memcmp(got, table, sizeof got));
        }
    CHECK(given > 0 || !under_test.tier->follow);
}

/* Ratios whose results end in exact halves, leave the range, and the range of int32. */
static void binaries(test_state *test)
{
    static const float ratios[] = {0.5f, 0.0371f, 1.0f, 1e8f, -0.25f, INFINITY};
    uint8_t a[MOST], b[MOST], want[MOST], got[MOST + 1];
    EACH_COUNT(n)
    {
        ort_byte_sum s = {ratios[n % 6], ratios[n / 3 % 5], (float)(draw() % 300), n % 2};
        ort_byte_product p = {(int)(draw() % 100), (int)(draw() % 128), ratios[n % 6] / 8,
                              (float)(draw() % 100), n % 2};
        fill(a, n);
        fill(b, n);
        got[n] = 77;
        under_test.reference->add(a, b, want, n, &s);
        under_test.tier->add(a, b, got, n, &s);
        CHECK(got[n] == 77 && !memcmp(got, want, n));
        for (size_t i = 0; n % 2 == 0 && s.a_ratio < 1 && i < n; i++) { /* unsigned ones, exactly */
            double sum = (double)a[i] * (double)s.a_ratio + (double)b[i] * (double)s.b_ratio +
                         (double)s.fixed;
            CHECK(fabs((sum < 0 ? 0 : sum > 255 ? 255 : sum) - got[i]) < 0.5001);
        }
        under_test.reference->multiply(a, b, want, n, &p);
        under_test.tier->multiply(a, b, got, n, &p);
        CHECK(got[n] == 77 && !memcmp(got, want, n));
        const size_t rows = n / ORT_BYTE_ROW, whole = rows * ORT_BYTE_ROW;
        got[whole] = 77;
        if (rows > 0) {
            under_test.reference->multiply_rows(a, b, want, rows, &p);
            under_test.tier->multiply_rows(a, b, got, rows, &p);
            CHECK(got[whole] == 77 && !memcmp(got, want, whole));
            for (size_t i = 0; i < whole; i += ORT_BYTE_ROW)
                under_test.reference->multiply(a + i, b, got + i, ORT_BYTE_ROW, &p);
            CHECK(!memcmp(got, want, whole));
        }
        under_test.reference->multiply(a, b, want, n, &p);
        under_test.tier->multiply(a, b, a, n, &p);
        CHECK(!memcmp(a, want, n));
    }
}

static void sums(test_state *test)
{
    uint8_t x[3 * MOST];
    int32_t want[MOST], got[MOST + 1];
    EACH_COUNT(n)
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            int64_t sum = 0, squares = 0;
            int top = -128;
            fill(x, 3 * n);
            for (size_t i = 0; i < n; i++) {
                int code = is_signed ? (int8_t)x[i] : x[i];
                sum += code;
                squares += code * code;
                top = code > top ? code : top;
                want[i] = got[i] = (int32_t)draw();
            }
            got[n] = 77;
            CHECK(under_test.tier->sum(x, n, is_signed) == sum);
            CHECK(under_test.tier->sum_squares(x, n, is_signed) == squares);
            CHECK(under_test.tier->largest(x, n, is_signed ? 128 : 0) ==
                  top + (is_signed ? 128 : 0));
            under_test.reference->add_rows(want, x, 2, n + 3, n, is_signed);
            under_test.tier->add_rows(got, x, 2, n + 3, n, is_signed);
            CHECK(got[n] == 77 && !memcmp(got, want, n * sizeof *want));
        }
}

static void exponentials(test_state *test)
{
    static ort_byte_exps exps;
    uint8_t x[MOST];
    for (int i = 0; i < 256; i++) {
        exps.whole[i] = draw() & (((uint64_t)1 << 48) - 1);
        for (int p = 0; p < ORT_BYTE_PLANES; p++)
            exps.planes[p][i] = (uint8_t)(exps.whole[i] >> 8 * p);
    }
    EACH_COUNT(n)
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            uint64_t sum = 0;
            fill(x, n);
            for (size_t i = 0; i < n && n % 2; i++)
                x[i] = (uint8_t)((x[i] % 60) ^ (is_signed ? 128 : 0));
            uint8_t flip = is_signed ? 128 : 0;
            int top = under_test.tier->largest(x, n, flip);
            for (size_t i = 0; i < n; i++)
                sum += exps.whole[(x[i] ^ flip) + 255 - top];
            CHECK(under_test.tier->exp_sum(x, n, top, flip, &exps) == sum);
        }
}

/* More rows of the largest codes than 16 bits hold the sum of. */
static void many_rows(test_state *test)
{
    enum { ROWS = 1030 };
    static uint8_t x[ROWS * ORT_BYTE_ROW];
    int32_t sums[ORT_BYTE_ROW];
    memset(x, 255, sizeof x);
    for (size_t rows = 255; rows <= ROWS; rows += rows < 260 || rows > 510 ? 1 : 250) {
        for (int i = 0; i < ORT_BYTE_ROW; i++) {
            sums[i] = i - 7;
            x[(rows - 1) * ORT_BYTE_ROW + (size_t)i] = (uint8_t)(i * 16);
        }
        under_test.tier->add_rows(sums, x, rows, ORT_BYTE_ROW, ORT_BYTE_ROW, false);
        for (int i = 0; i < ORT_BYTE_ROW; i++)
            CHECK(sums[i] == i - 7 + (int32_t)(rows - 1) * 255 + i * 16);
        memset(x + (rows - 1) * ORT_BYTE_ROW, 255, ORT_BYTE_ROW);
    }
}

/* Products between two whole numbers, of both signs, and some that no integer holds. */
static void rounded(test_state *test)
{
    static const double factors[] = {0.5, -0.5, 1 / 3.0};
    double x[MOST];
    uint8_t want[MOST], got[MOST + 1];
    EACH_COUNT(n)
        for (int kind = 0; kind < 6; kind++) {
            for (size_t i = 0; i < n; i++)
                x[i] = i % 9 == 8 ? (i % 2 ? 1e300 : -1e300) : (double)(draw() % 700);
            got[n] = 77;
            const double factor = factors[kind / 2];
            const bool is_signed = kind % 2;
            const int zero = is_signed ? -30 : 3;
            under_test.reference->round_f64(x, factor, zero, is_signed, want, n);
            under_test.tier->round_f64(x, factor, zero, is_signed, got, n);
            CHECK(got[n] == 77 && !memcmp(got, want, n));
            for (size_t i = 0; i < n; i++) {
                double code = rint(x[i] * factor) + zero, low = is_signed ? -128 : 0;
                code = code < low ? low : code > low + 255 ? low + 255 : code;
                CHECK(want[i] == (uint8_t)(int)code);
            }
        }
}

int main(void)
{
    test_state test = {0};
    under_test.reference = &ort_kernels_get("scalar")->codes;
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        if (!k)
            continue;
        printf("# tier %s\n", k->isa);
        under_test.tier = &k->codes;
        RUN(&test, tables);
        RUN(&test, lines);
        RUN(&test, steep_lines);
        RUN(&test, binaries);
        RUN(&test, sums);
        RUN(&test, many_rows);
        RUN(&test, exponentials);
        RUN(&test, rounded);
    }
    return test.failures != 0;
}
