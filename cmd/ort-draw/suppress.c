/* suppress.c - of boxes that overlap, the best stays: onnx's own NonMaxSuppression decides.
 *
 * Boxes of one class compete, or with --across-classes all; the result is sorted, best first.
 */
#include <stdlib.h>
#include <string.h>

#include "draw.h"

static int by_score(const void *a, const void *b)
{
    const box *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return x->left < y->left ? -1 : x->left > y->left;
}

static int tensor(ort_dtype dtype, int rank, const int64_t *dims, ort_value **v)
{
    ort_error err = {0};
    return ort_value_new_tensor(dtype, rank, dims, v, &err) == ORT_OK ? 0 : tool_fail(&err);
}

/* One scalar input of the operator. */
static int scalar(ort_dtype dtype, double number, ort_value **v)
{
    int status = tensor(dtype, 0, NULL, v);
    if (status == 0)
        ort_value_set_double(*v, 0, number);
    return status;
}

/* The operator on the boxes that `member` lists; it marks those that stay. */
static int suppress_group(draw_tool *t, const box_list *boxes, const size_t *member, size_t count,
                          bool *stays)
{
    ort_error err = {0};
    ort_value *in[5] = {NULL}, *chosen = NULL;
    int64_t n = (int64_t)count;
    int status = tensor(ORT_DTYPE_FLOAT, 3, (int64_t[]){1, n, 4}, &in[0]);
    if (status == 0)
        status = tensor(ORT_DTYPE_FLOAT, 3, (int64_t[]){1, 1, n}, &in[1]);
    if (status == 0)
        status = scalar(ORT_DTYPE_INT64, (double)n, &in[2]);
    if (status == 0)
        status = scalar(ORT_DTYPE_FLOAT, t->iou, &in[3]);
    for (size_t i = 0; i < count && status == 0; i++) {
        const box *b = &boxes->items[member[i]];
        float *corner = (float *)ort_value_data(in[0]) + 4 * i;
        corner[0] = (float)b->top;
        corner[1] = (float)b->left;
        corner[2] = (float)b->bottom;
        corner[3] = (float)b->right;
        ((float *)ort_value_data(in[1]))[i] = (float)b->score;
    }
    if (status == 0 && ort_op_run(t->env, "", "NonMaxSuppression", 0, NULL, 0, in, 4, &chosen, 1,
                                  &err) != ORT_OK)
        status = tool_fail(&err);
    for (int64_t i = 0; status == 0 && i < ort_value_count(chosen) / 3; i++)
        stays[member[(size_t)ort_value_get_double(chosen, 3 * i + 2)]] = true;
    for (int i = 0; i < 5; i++)
        ort_value_free(in[i]);
    ort_value_free(chosen);
    return status;
}

int suppress(draw_tool *t, box_list *boxes)
{
    int status = t->env != NULL ? 0 : settings_new_env(&t->settings, &t->env);
    size_t n = boxes->count, kept = 0;
    size_t *member = tool_alloc(n * sizeof *member);
    bool *stays = tool_alloc(n), *seen = tool_alloc(n);
    if (n > 0)
        qsort(boxes->items, n, sizeof *boxes->items, by_score);
    for (size_t first = 0; first < n && status == 0; first++) {
        size_t count = 0;
        for (size_t i = first; i < n && !seen[first]; i++)
            if (t->across_classes || boxes->items[i].class == boxes->items[first].class)
                member[count++] = i;
        for (size_t i = 0; i < count; i++)
            seen[member[i]] = true;
        if (count > 0)
            status = suppress_group(t, boxes, member, count, stays);
    }
    for (size_t i = 0; i < n && kept < (size_t)t->most; i++)
        if (stays[i])
            boxes->items[kept++] = boxes->items[i];
    boxes->count = kept;
    free(member);
    free(stays);
    free(seen);
    return status;
}
