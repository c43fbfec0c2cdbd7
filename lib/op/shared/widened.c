/* widened.c - products with weights that are widened piece by piece. A task owns a few columns of
 * the output and all of k: nothing depends on the number of threads. */
#include <math.h>

#include "base/checked.h"
#include "op/shared/widened.h"

static int64_t task_columns(const ort_kernels *k)
{
    return 2 * k->gemm.nr;
}

size_t ort_widened_thread_bytes(const ort_kernels *k)
{
    int64_t columns = task_columns(k); /* panels, one row, biases */
    return (size_t)((columns + 1) * k->gemm.kc + columns) * sizeof(float);
}

typedef struct widened_job {
    const ort_call *call;
    const ort_widened *w;
} widened_job;

static void fill_panels(const widened_job *j, int64_t first, int64_t n, int64_t k0, int64_t depth,
                        float *panels, float *row)
{
    int64_t nr = j->call->k->gemm.nr;
    for (int64_t c = 0; c < n; c++) {
        float *to = panels + c / nr * depth * nr + c % nr;
        j->w->row(j->w->weight, first + c, k0, depth, row);
        for (int64_t i = 0; i < depth; i++)
            to[i * nr] = row[i];
    }
}

static void task_columns_run(void *arg, int64_t first, int64_t end, int thread)
{
    const widened_job *j = arg;
    const ort_widened *w = j->w;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    int64_t columns = task_columns(j->call->k), n = end - first;
    float *panels = ort_call_scratch(j->call, thread);
    float *row = panels + columns * g->kc, *bias = row + g->kc, *y = w->y + first;
    if (w->bias)
        ort_tensor_to_f32(w->bias, w->bias_first + first, n, bias);
    for (int64_t k0 = 0; k0 < w->depth; k0 += g->kc) {
        int64_t depth = ort_min_i64(g->kc, w->depth - k0);
        fill_panels(j, first, n, k0, depth, panels, row);
        ort_tile_f32 t = {.a = w->a + k0, .lda = w->depth, .b = panels, .b_step = g->nr,
                          .b_panel = depth * g->nr, .c = y, .ldc = w->rows, .add = k0 ? y : NULL,
                          .ldadd = w->rows, .col_bias = k0 || !w->bias ? NULL : bias,
                          .alpha = 1.0f, .lo = -INFINITY, .hi = INFINITY};
        g->f32(w->m, n, depth, &t);
    }
}

void ort_widened_multiply(const ort_call *call, const ort_widened *w)
{
    widened_job j = {call, w};
    ort_call_range(call, w->rows, task_columns(call->k), task_columns_run, &j);
}
