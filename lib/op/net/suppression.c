/* suppression.c - NonMaxSuppression: per batch and class, boxes by falling score, dropping those
 * that overlap a kept one.
 *
 * Invariant: classes are independent tasks, each with its own slice of the selection, and the
 * output lists them in (batch, class) order whatever the number of threads.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/number.h"
#include "op/shared/move.h"

typedef struct nms_state {
    bool centered;
} nms_state;

static const ort_bind nms_bind[] = {
    ORT_BIND_AS(nms_state, centered, "center_point_box", ORT_WITHIN(0, 1)), {0}};

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

static ort_status nms_shape(ort_shaping *s, ort_error *err)
{
    s->thread_bytes = (size_t)s->in[0]->shape.dim[1] * sizeof(candidate);
    return ORT_OK;
}

typedef struct nms_job {
    const ort_call *call;
    const float *boxes, *scores;
    int64_t classes, n, limit; /* limit: most boxes kept per class */
    float overlap, threshold;
    bool centered, has_threshold;
    int64_t *kept, *kept_count; /* [batch * class][limit], [batch * class] */
} nms_job;

typedef struct rect {
    float x0, y0, x1, y1;
} rect;

static rect rect_of(const float *box, bool centered)
{
    if (centered) {
        float w = box[2] / 2, h = box[3] / 2;
        return (rect){box[0] - w, box[1] - h, box[0] + w, box[1] + h};
    }
    return (rect){fminf(box[1], box[3]), fminf(box[0], box[2]), fmaxf(box[1], box[3]),
                  fmaxf(box[0], box[2])};
}

static bool overlaps(rect a, rect b, float limit)
{
    float w = fminf(a.x1, b.x1) - fmaxf(a.x0, b.x0), h = fminf(a.y1, b.y1) - fmaxf(a.y0, b.y0);
    float area_a = (a.x1 - a.x0) * (a.y1 - a.y0), area_b = (b.x1 - b.x0) * (b.y1 - b.y0);
    if (!(w > 0 && h > 0 && area_a > 0 && area_b > 0))
        return false;
    float both = w * h, all = area_a + area_b - both;
    return all > 0 && both / all > limit;
}

/* a comes before b. */
static inline bool before(candidate a, candidate b)
{
    return a.score != b.score ? a.score > b.score : a.box < b.box;
}

static void sift_first(candidate *heap, int64_t count, int64_t at)
{
    candidate moving = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], moving))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

static void nms_task(void *arg, size_t task, int thread)
{
    const nms_job *job = arg;
    const float *scores = job->scores + (int64_t)task * job->n;
    const float *boxes = job->boxes + (int64_t)task / job->classes * job->n * 4;
    int64_t *kept = job->kept + (int64_t)task * job->limit, count = 0, left = 0;
    candidate *heap = ort_call_scratch(job->call, thread);
    ort_pace pace = {0};
    for (int64_t i = 0; i < job->n; i++)
        if (!job->has_threshold || scores[i] > job->threshold)
            heap[left++] = (candidate){scores[i], i};
    for (int64_t i = left / 2 - 1; i >= 0; i--)
        sift_first(heap, left, i);
    while (left > 0 && count < job->limit) {
        int64_t box = heap[0].box, k = 0;
        rect r = rect_of(boxes + box * 4, job->centered);
        if (ort_pace_over(&pace, (uint64_t)count * 4 + 1))
            break;
        heap[0] = heap[--left];
        if (left > 0)
            sift_first(heap, left, 0);
        while (k < count &&
               !overlaps(r, rect_of(boxes + kept[k] * 4, job->centered), job->overlap))
            k++;
        if (k == count)
            kept[count++] = box;
    }
    job->kept_count[task] = count;
}

static ort_status nms_write(ort_call *call, const nms_job *job, int64_t tasks, ort_error *err)
{
    int64_t total = 0;
    for (int64_t t = 0; t < tasks; t++)
        total += job->kept_count[t];
    ort_shape shape = ort_shape_make(2, (int64_t[]){total, 3});
    ORT_TRY(ort_call_output(call, 0, ORT_DTYPE_INT64, &shape, err));
    int64_t *out = ort_call_out(call, 0)->data;
    for (int64_t t = 0; t < tasks; t++)
        for (int64_t i = 0; i < job->kept_count[t]; i++, out += 3) {
            out[0] = t / job->classes;
            out[1] = t % job->classes;
            out[2] = job->kept[t * job->limit + i];
        }
    return ORT_OK;
}

static ort_status nms_run(ort_call *call, ort_error *err)
{
    const ort_tensor *boxes = ort_call_in(call, 0), *scores = ort_call_in(call, 1);
    nms_job job = {.call = call, .boxes = boxes->data, .scores = scores->data};
    int64_t batches = boxes->shape.dim[0];
    job.centered = ((const nms_state *)call->state)->centered;
    job.n = boxes->shape.dim[1];
    job.classes = scores->shape.dim[1];
    if (boxes->shape.dim[2] != 4 || scores->shape.dim[0] != batches ||
        scores->shape.dim[2] != job.n)
        return ort_call_fail(call, err, "boxes must be [batch, n, 4] and scores [batch, classes, "
                             "n]");
    ORT_TRY(ort_call_i64(call, 2, &job.limit, err));
    ORT_TRY(ort_call_f32(call, 3, &job.overlap, err));
    ORT_TRY(ort_call_f32(call, 4, &job.threshold, err));
    job.limit = ort_max_i64(0, ort_min_i64(job.limit, job.n));
    job.has_threshold = ort_call_in(call, 4) != NULL;
    if (!(job.overlap >= 0 && job.overlap <= 1))
        return ort_call_fail(call, err, "iou_threshold is %g, outside [0, 1]",
                             (double)job.overlap);
    int64_t tasks = batches * job.classes;
    size_t slots, bytes;
    if (!ort_mul_size((size_t)tasks, (size_t)job.limit + 1, &slots) ||
        !ort_mul_size(slots, sizeof(int64_t), &bytes))
        return ort_error_memory(err, SIZE_MAX);
    job.kept_count = ort_call_alloc(call, bytes + sizeof(int64_t));
    if (!job.kept_count)
        return ort_error_memory(err, bytes);
    job.kept = job.kept_count + tasks;
    ort_call_parallel(call, (size_t)tasks, nms_task, &job);
    return nms_write(call, &job, tasks, err);
}

static const ort_op_impl nms_impl = {
    .state = sizeof(nms_state), .bind = nms_bind,
    .rule = "[_,_,_] [_,_,_] -> [_,3]", .shape = nms_shape, .run = nms_run, .numbers = 28,
};

const ort_op ort_ops_suppression[] = {
    {ONNX, "NonMaxSuppression", 10,
     "boxes:f32,scores:f32,max_output_boxes_per_class?:i64,iou_threshold?:f32,"
     "score_threshold?:f32 -> selected_indices:i64", "", "center_point_box:i=0",
     ORT_TRAIT_DYNAMIC, &nms_impl, .history = "11"},
    {0},
};
