/* dispatch.c - the kernel tiers and the function table of each.
 *
 * The table of a tier starts as the scalar one. Each better tier that the machine has, up to the
 * chosen one, then replaces the functions that it has itself. All tables are built once and never
 * change afterwards.
 */
#include "kernel/kernel.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/cpu.h"

static bool has_scalar(void)
{
    return true;
}

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return ort_cpu_get()->avx2;
}
static bool has_avx512(void)
{
    return ort_cpu_get()->avx2 && ort_cpu_get()->avx512;
}
static bool has_vnni(void)
{
    return has_avx512() && ort_cpu_get()->avx512_vnni;
}
static bool has_avxvnni(void)
{
    return ort_cpu_get()->avx2 && ort_cpu_get()->avx_vnni;
}
#ifdef ORT_KERNEL_AMX
static bool has_amx(void)
{
    return has_vnni() && ort_cpu_get()->amx_int8 && ort_cpu_permit_tiles();
}
#endif
static void no_math(ort_vmath_kernels *table)
{
}
static void no_codes(ort_code_kernels *table)
{
}
static void no_blocked(ort_blocked_kernels *of8, ort_blocked_kernels *of16)
{
    (void)of8, (void)of16;
}
static void no_bytes(ort_bytes_kernels *table)
{
}
static void no_grids(ort_grid_kernels *table)
{
}
#endif

static const ort_kernel_tier tiers[] = {
    {"scalar", has_scalar, ort_gemm_plug_scalar, ort_vmath_plug_scalar, ort_code_plug_scalar,
     ort_blocked_plug_scalar, ort_bytes_plug_scalar, ort_grid_plug_scalar, 8},
#if defined(__x86_64__)
    {"avx2", has_avx2, ort_gemm_plug_avx2, ort_vmath_plug_avx2, ort_code_plug_avx2,
     ort_blocked_plug_avx2, ort_bytes_plug_avx2, ort_grid_plug_avx2, 8},
    {"avxvnni", has_avxvnni, ort_gemm_plug_avxvnni, no_math, no_codes, no_blocked,
     ort_bytes_plug_avxvnni, no_grids, 8},
    {"avx512", has_avx512, ort_gemm_plug_avx512, ort_vmath_plug_avx512, ort_code_plug_avx512,
     ort_blocked_plug_avx512, no_bytes, ort_grid_plug_avx512, 16, .over = "avx2"},
    {"vnni", has_vnni, ort_gemm_plug_vnni, no_math, no_codes, no_blocked, ort_bytes_plug_vnni,
     no_grids, 16},
#ifdef ORT_KERNEL_AMX /* the assembler knows its instructions */
    {"amx", has_amx, ort_gemm_plug_amx, no_math, no_codes, ort_blocked_plug_amx,
     ort_bytes_plug_amx, no_grids, 16},
#endif
#endif
};
enum { TIER_COUNT = sizeof tiers / sizeof tiers[0] };

static ort_kernels tables[TIER_COUNT];
static ort_kernels common[2]; /* on 256 bits, and on 512 where the machine has them */
static int best_tier;
static pthread_once_t built = PTHREAD_ONCE_INIT;

static int tier_named(const char *name)
{
    for (int i = 0; i < TIER_COUNT; i++)
        if (!strcmp(tiers[i].name, name))
            return i;
    return -1;
}

static void build_table(int i)
{
    const ort_kernel_tier *tier = &tiers[i];
    if (i > 0)
        tables[i] = tables[tier->over ? tier_named(tier->over) : i - 1];
    tables[i].isa = tier->name;
    tier->plug_gemm(&tables[i].gemm);
    tier->plug_math(&tables[i].math);
    tier->plug_codes(&tables[i].codes);
    tier->plug_blocked(&tables[i].blocked8, &tables[i].blocked16);
    tier->plug_bytes(&tables[i].bytes);
    tier->plug_grids(&tables[i].grids);
    tables[i].block = tier->block;
    tables[i].narrows = tier->block == 16 && ort_cpu_get()->avx512_by_halves;
    assert(tables[i].blocked8.block == 8 && tables[i].blocked16.block == 16);
    assert(tables[i].gemm.nr % 2 == 0 && tables[i].gemm.mr > 0 && tables[i].gemm.kc % 8 == 0);
}

#if defined(__x86_64__)
/* AVX2's kernels, and blocks of 16 channels, which both widths have. What sums each element on its
 * own, in one order, gives the same bits at any width; what sums lanes (dot products, reductions)
 * stays on 256 bits. */
static void build_common(void)
{
    ort_kernels *narrow = &common[0], *wide = &common[1];
    if (!has_avx2())
        return;
    *narrow = tables[tier_named("avx2")];
    narrow->isa = "common";
    narrow->block = 16;
    narrow->gemm.whole_rows = 0; /* a batch gives the bits of its samples alone */
    narrow->gemm.strassen = (ort_strassen_kernels){0};
    *wide = *narrow;
    if (!has_avx512())
        return;
    const ort_kernels *from = &tables[tier_named("avx512")];
    wide->blocked16 = from->blocked16;
    wide->blocked16.conv_crossed = NULL;
    wide->blocked16.is_sparse = NULL;
    wide->blocked16.line_filter = narrow->blocked16.line_filter; /* none: both go the same way */
    wide->blocked16.line_input = narrow->blocked16.line_input;
    wide->blocked16.line_output = narrow->blocked16.line_output;
    wide->gemm.mr = from->gemm.mr;
    wide->gemm.nr = from->gemm.nr;
    wide->gemm.f32 = from->gemm.f32;
    wide->gemm.f16 = from->gemm.f16;
    wide->gemm.bf16 = from->gemm.bf16;
    wide->gemm.pack_f32 = from->gemm.pack_f32;
    wide->gemm.pack_16 = from->gemm.pack_16;
    assert(from->gemm.kc == narrow->gemm.kc);
}
#else
static void build_common(void)
{
}
#endif

/* What a machine has of a tier it has of those below. */
static void build_tables(void)
{
    for (int i = 0; i < TIER_COUNT; i++) {
        if (!tiers[i].has())
            continue;
        build_table(i);
        if (!tiers[i].untried)
            best_tier = i;
    }
    build_common();
    for (int i = 0; i < ORT_UNARY_COUNT; i++) /* the scalar tier has them all */
        assert(tables[0].math.unary[i] && tables[0].math.unary_f64[i]);
}

const ort_kernel_tier *ort_kernel_tier_at(int index)
{
    return index >= 0 && index < TIER_COUNT ? &tiers[index] : NULL;
}

const ort_kernels *ort_kernels_get(const char *isa)
{
    pthread_once(&built, build_tables);
    if (!isa || !*isa)
        return &tables[best_tier];
    const ort_kernels *same = !strcmp(isa, "common")    ? &common[1]
                              : !strcmp(isa, "common256") ? &common[0]
                                                          : NULL;
    if (same)
        return same->isa ? same : NULL;
    int i = tier_named(isa);
    return i >= 0 && tables[i].isa ? &tables[i] : NULL;
}
