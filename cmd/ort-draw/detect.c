/* detect.c - the forms in which detectors hand over their boxes.
 *
 * Each form has a reader that adds the boxes above the score, in pixels of the network's input;
 * they are then mapped into the picture. Where formulas come from:
 *   yolox      YOLOX (Ge et al. 2021, arXiv:2107.08430), demo_postprocess: centre
 *              (o + cell) * stride, size exp(o) * stride, score objectness * class
 *   yolov5     [N, 5 + classes]: centre, size, objectness, classes, in pixels
 *   yolov8     [4 + classes, N]: centre, size, classes, in pixels
 *   yunet      YuNet (Wu, Peng, Yu 2023) as OpenCV's FaceDetectorYN reads it: per stride cls, obj,
 *              bbox, kps; score sqrt(cls * obj)
 *   ultraface  corners as shares of the input, scores of background and face
 *   ssd        detection_boxes of TensorFlow's models: top, left, bottom, right as shares;
 *              classes from 1
 *   corners    corners in pixels, with a score and a class beside them or in tensors of their own
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

static void add_box(box_list *list, const box *b)
{
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 64;
        list->items = realloc(list->items, list->capacity * sizeof *list->items);
        if (list->items == NULL)
            tool_alloc(SIZE_MAX / 2);
    }
    list->items[list->count++] = *b;
}

typedef struct reading {
    const draw_tool *tool;
    const ort_tensors *record;
    double height, width; /* of the input */
    box_list *out;
} reading;

typedef int reader(reading *r);

/* ---- tensors by shape and name */

/* Dims without leading ones: [1, 3549, 85] is 3549 x 85. */
static int plain_rank(const ort_value *v, int64_t dims[2])
{
    int rank = ort_value_rank(v), first = 0;
    const int64_t *d = ort_value_dims(v);
    while (first < rank - 2 && d[first] == 1)
        first++;
    if (rank - first > 2 || rank == 0)
        return 0;
    dims[0] = rank - first == 2 ? d[first] : 1;
    dims[1] = d[rank - 1];
    return 2;
}

static bool numbers(const ort_value *v)
{
    return ort_value_get_kind(v) == ORT_VALUE_TENSOR && ort_value_dtype(v) != ORT_DTYPE_STRING;
}

/* The first value of n x columns (columns 0: n numbers), of which the name holds `part`. */
static const ort_value *find(const ort_tensors *record, const char *part, int64_t n,
                             int64_t columns)
{
    for (size_t i = 0; i < ort_tensors_count(record); i++) {
        const ort_value *v = ort_tensors_value(record, i);
        int64_t d[2];
        if (!numbers(v) || (part != NULL && strstr(ort_tensors_name(record, i), part) == NULL))
            continue;
        if (columns == 0 && n == ort_value_count(v))
            return v;
        if (columns > 0 && plain_rank(v, d) == 2 && d[1] == columns && (n < 0 || d[0] == n))
            return v;
    }
    return NULL;
}

static int misfit(const reading *r, const char *wanted)
{
    char shape[160], list[1200] = "";
    for (size_t i = 0; i < ort_tensors_count(r->record); i++) {
        const ort_value *v = ort_tensors_value(r->record, i);
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s %s", i > 0 ? ", " : "",
                 ort_tensors_name(r->record, i), numbers(v) ? shape_text(v, shape, sizeof shape)
                                                            : "(no numbers)");
    }
    return tool_error(ORT_ERROR_DATA, "--detect %s: the tensors are %s; wanted: %s",
                      r->tool->detect, list[0] != '\0' ? list : "none", wanted);
}

static double at(const ort_value *v, int64_t index) { return ort_value_get_double(v, index); }

/* A number that stands for a class; -1 where it doesn't. */
static int64_t class_of(const ort_value *v, int64_t index)
{
    double number = at(v, index);
    return number > -0x1p53 && number < 0x1p53 ? (int64_t)number : -1;
}

static void add_centred(reading *r, double cx, double cy, double w, double h, double score,
                        int64_t class)
{
    box b = {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, class, 0, {0}, {0}};
    add_box(r->out, &b);
}

/* The best of `count` classes that lie `step` apart; NaN never is. */
static int64_t best_class(const ort_value *v, int64_t from, int64_t count, int64_t step,
                          double *score)
{
    int64_t best = 0;
    *score = -INFINITY;
    for (int64_t c = 0; c < count; c++) {
        double s = at(v, from + c * step);
        if (s > *score) {
            *score = s;
            best = c;
        }
    }
    return best;
}

/* ---- forms */

/* One tensor whose rows are boxes, at least `columns` wide. */
static const ort_value *rows_of(const reading *r, int64_t columns, int64_t d[2])
{
    for (size_t i = 0; i < ort_tensors_count(r->record); i++) {
        const ort_value *v = ort_tensors_value(r->record, i);
        if (numbers(v) && plain_rank(v, d) == 2 && d[1] >= columns)
            return v;
    }
    return NULL;
}

static int read_yolox(reading *r)
{
    static const char wanted[] = "1xNx(5 + classes), N the cells of strides 8, 16 and 32 of the "
                                 "input that --letterbox or --stretch names";
    int64_t d[2], row = 0;
    const ort_value *v = rows_of(r, 6, d);
    int64_t cells = 0;
    for (int stride = 8; stride <= 32; stride *= 2)
        cells += ((int64_t)r->height / stride) * ((int64_t)r->width / stride);
    if (v == NULL || d[0] != cells)
        return misfit(r, wanted);
    for (int stride = 8; stride <= 32; stride *= 2)
        for (int64_t y = 0; y < (int64_t)r->height / stride; y++)
            for (int64_t x = 0; x < (int64_t)r->width / stride; x++, row++) {
                int64_t o = row * d[1];
                double score;
                int64_t class = best_class(v, o + 5, d[1] - 5, 1, &score);
                score *= at(v, o + 4);
                if (score > r->tool->score)
                    add_centred(r, (at(v, o) + (double)x) * stride,
                                (at(v, o + 1) + (double)y) * stride, exp(at(v, o + 2)) * stride,
                                exp(at(v, o + 3)) * stride, score, class);
            }
    return 0;
}

static int read_yolov5(reading *r)
{
    int64_t d[2];
    const ort_value *v = rows_of(r, 6, d);
    if (v == NULL)
        return misfit(r, "1xNx(5 + classes)");
    for (int64_t row = 0; row < d[0]; row++) {
        int64_t o = row * d[1];
        double score;
        int64_t class = best_class(v, o + 5, d[1] - 5, 1, &score);
        score *= at(v, o + 4);
        if (score > r->tool->score)
            add_centred(r, at(v, o), at(v, o + 1), at(v, o + 2), at(v, o + 3), score, class);
    }
    return 0;
}

static int read_yolov8(reading *r)
{
    int64_t d[2];
    const ort_value *v = rows_of(r, 1, d);
    if (v == NULL || d[0] < 5)
        return misfit(r, "1x(4 + classes)xN");
    for (int64_t i = 0; i < d[1]; i++) {
        double score;
        int64_t class = best_class(v, 4 * d[1] + i, d[0] - 4, d[1], &score);
        if (score > r->tool->score)
            add_centred(r, at(v, i), at(v, d[1] + i), at(v, 2 * d[1] + i), at(v, 3 * d[1] + i),
                        score, class);
    }
    return 0;
}

static int read_ultraface(reading *r)
{
    const ort_value *boxes = find(r->record, NULL, -1, 4);
    const ort_value *scores = boxes == NULL ? NULL
                                            : find(r->record, NULL, ort_value_count(boxes) / 4, 2);
    if (scores == NULL)
        return misfit(r, "boxes 1xNx4 and scores 1xNx2");
    for (int64_t i = 0; i < ort_value_count(boxes) / 4; i++) {
        double score = at(scores, 2 * i + 1);
        box b = {at(boxes, 4 * i) * r->width, at(boxes, 4 * i + 1) * r->height,
                 at(boxes, 4 * i + 2) * r->width, at(boxes, 4 * i + 3) * r->height, score, 0, 0,
                 {0}, {0}};
        if (score > r->tool->score)
            add_box(r->out, &b);
    }
    return 0;
}

static double unit(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

/* The cells of one stride. */
static int read_yunet_stride(reading *r, int stride)
{
    char name[16];
    int64_t down = (int64_t)r->height / stride, across = (int64_t)r->width / stride;
    const ort_value *part[4];
    static const struct {
        const char *name;
        int64_t columns;
    } parts[4] = {{"cls", 1}, {"obj", 1}, {"bbox", 4}, {"kps", 10}};
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s_%d", parts[i].name, stride);
        part[i] = find(r->record, name, down * across, parts[i].columns);
        if (part[i] == NULL)
            return misfit(r, "cls_S, obj_S, bbox_S and kps_S of strides 8, 16 and 32 of the input "
                             "that --letterbox or --stretch names");
    }
    for (int64_t i = 0; i < down * across; i++) {
        double x = (double)(i % across), y = (double)(i / across), s = stride;
        double score = sqrt(unit(at(part[0], i)) * unit(at(part[1], i)));
        if (!(score > r->tool->score))
            continue;
        add_centred(r, (x + at(part[2], 4 * i)) * s, (y + at(part[2], 4 * i + 1)) * s,
                    exp(at(part[2], 4 * i + 2)) * s, exp(at(part[2], 4 * i + 3)) * s, score, 0);
        box *b = &r->out->items[r->out->count - 1];
        for (b->points = 0; b->points < 5; b->points++) {
            b->x[b->points] = (x + at(part[3], 10 * i + 2 * b->points)) * s;
            b->y[b->points] = (y + at(part[3], 10 * i + 2 * b->points + 1)) * s;
        }
    }
    return 0;
}

static int read_yunet(reading *r)
{
    int status = 0;
    for (int stride = 8; stride <= 32 && status == 0; stride *= 2)
        status = read_yunet_stride(r, stride);
    return status;
}

static int read_ssd(reading *r)
{
    const ort_value *boxes = find(r->record, NULL, -1, 4);
    int64_t n = boxes == NULL ? -1 : ort_value_count(boxes) / 4;
    const ort_value *scores = boxes == NULL ? NULL : find(r->record, "score", n, 0);
    const ort_value *classes = boxes == NULL ? NULL : find(r->record, "class", n, 0);
    if (scores == NULL || classes == NULL)
        return misfit(r, "boxes 1xNx4, and 1xN whose names hold 'score' and 'class'");
    for (int64_t i = 0; i < n; i++) {
        box b = {at(boxes, 4 * i + 1) * r->width, at(boxes, 4 * i) * r->height,
                 at(boxes, 4 * i + 3) * r->width, at(boxes, 4 * i + 2) * r->height, at(scores, i),
                 class_of(classes, i) - 1, 0, {0}, {0}};
        if (b.score > r->tool->score)
            add_box(r->out, &b);
    }
    return 0;
}

static int read_corners(reading *r)
{
    const ort_value *boxes = find(r->record, NULL, -1, 6), *scores = NULL, *classes = NULL;
    int64_t columns = 6;
    if (boxes == NULL && (boxes = find(r->record, NULL, -1, 4)) != NULL) {
        columns = 4;
        scores = find(r->record, "score", ort_value_count(boxes) / 4, 0);
        classes = find(r->record, "label", ort_value_count(boxes) / 4, 0);
        if (classes == NULL)
            classes = find(r->record, "class", ort_value_count(boxes) / 4, 0);
    }
    if (boxes == NULL || (columns == 4 && scores == NULL))
        return misfit(r, "Nx6 (left, top, right, bottom, score, class), or Nx4 and N numbers whose "
                         "name holds 'score', perhaps others with 'label' or 'class'");
    for (int64_t i = 0; i < ort_value_count(boxes) / columns; i++) {
        int64_t o = i * columns;
        box b = {at(boxes, o), at(boxes, o + 1), at(boxes, o + 2), at(boxes, o + 3),
                 columns == 6 ? at(boxes, o + 4) : at(scores, i),
                 columns == 6      ? class_of(boxes, o + 5)
                 : classes != NULL ? class_of(classes, i)
                                   : 0,
                 0, {0}, {0}};
        if (b.score > r->tool->score)
            add_box(r->out, &b);
    }
    return 0;
}

static const struct {
    const char *name;
    reader *read;
} forms[] = {
    {"yolox", read_yolox},         {"yolov5", read_yolov5}, {"yolov8", read_yolov8},
    {"yunet", read_yunet},         {"ssd", read_ssd},       {"corners", read_corners},
    {"ultraface", read_ultraface},
};

static reader *reader_of(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].name, name))
            return forms[i].read;
    return NULL;
}

/* ---- into the picture */

/* False for a box of numbers that aren't any. */
static bool into_picture(const fit *f, box *b)
{
    fit_to_picture(f, &b->left, &b->top);
    fit_to_picture(f, &b->right, &b->bottom);
    bool points = true;
    for (int i = 0; i < b->points; i++) {
        fit_to_picture(f, &b->x[i], &b->y[i]);
        points = points && isfinite(b->x[i]) && isfinite(b->y[i]);
    }
    return points && isfinite(b->score) && isfinite(b->left) && isfinite(b->top) &&
           isfinite(b->right) && isfinite(b->bottom);
}

int detect_boxes(const draw_tool *t, const ort_tensors *record, const source *from, box_list *out)
{
    reading r = {t, record, (double)from->fit.canvas_height, (double)from->fit.canvas_width, out};
    int status = reader_of(t->detect)(&r);
    size_t kept = 0;
    for (size_t i = 0; i < out->count && status == 0; i++)
        if (into_picture(&from->fit, &out->items[i]))
            out->items[kept++] = out->items[i];
    out->count = kept;
    return status;
}
