/* wave.c - a sound with what a network says of it: curves over time, and stretches above a score.
 *
 * A stream of records is one point per record and a curve per number of it; a single record holds
 * its points along its longest dimension. Points are --hop samples apart, or evenly over the sound.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/screen.h"
#include "draw.h"

enum { MOST_CURVES = 8, SHEET_WIDTH = 1200, SHEET_HEIGHT = 420, MARGIN = 44, TOP = 26 };

struct curves {
    size_t count, points, capacity; /* curves, points of each */
    size_t records;
    double *values; /* point by point */
    char *name;
};

static void room_for(curves *all, size_t points)
{
    if (points <= all->capacity)
        return;
    all->capacity = 2 * points + 256;
    all->values = realloc(all->values, all->capacity * all->count * sizeof *all->values);
    if (all->values == NULL)
        tool_alloc(SIZE_MAX / 2);
}

/* The longest dimension of a record that stands alone: its stride and length. */
static size_t longest(const ort_value *v, size_t *stride)
{
    size_t length = 1, after = 1;
    *stride = 1;
    for (int i = ort_value_rank(v) - 1; i >= 0; i--) {
        size_t d = (size_t)ort_value_dims(v)[i];
        if (d > length) {
            length = d;
            *stride = after;
        }
        after *= d;
    }
    return length;
}

static int too_many(const ort_value *v)
{
    char shape[160];
    return tool_error(ORT_ERROR_DATA, "--curve: the value is %s, more than %d curves; ort-tensor "
                      "--slice takes some of them", shape_text(v, shape, sizeof shape),
                      MOST_CURVES);
}

/* A record with many numbers holds the points themselves. */
static int add_whole(curves *all, const ort_value *v)
{
    size_t stride, points = longest(v, &stride), n = (size_t)ort_value_count(v);
    all->count = n / points;
    if (all->count > MOST_CURVES)
        return too_many(v);
    room_for(all, points);
    for (size_t i = 0; i < n; i++) {
        size_t point = i / stride % points, curve = i % stride + i / (stride * points) * stride;
        all->values[point * all->count + curve] = ort_value_get_double(v, (int64_t)i);
    }
    all->points = points;
    return 0;
}

int curves_add(draw_tool *t, curves **list, const ort_tensors *record)
{
    const ort_value *v = draw_value(record, "--curve", t->curve);
    char shape[160];
    if (v == NULL)
        return EXIT_USAGE;
    if (ort_value_get_kind(v) != ORT_VALUE_TENSOR || ort_value_dtype(v) == ORT_DTYPE_STRING ||
        ort_value_count(v) == 0)
        return tool_error(ORT_ERROR_DATA, "--curve: the value is %s; wanted are numbers",
                          shape_text(v, shape, sizeof shape));
    if (*list == NULL)
        *list = tool_alloc(sizeof **list);
    curves *all = *list;
    size_t n = (size_t)ort_value_count(v);
    if (all->records++ == 0) {
        const char *name = t->curve[0] != '\0' ? t->curve : ort_tensors_name(record, 0);
        all->name = tool_strdup(name);
        all->count = n;
        if (n > MOST_CURVES)
            return add_whole(all, v);
    }
    if (n != all->count || all->points + 1 != all->records)
        return tool_error(ORT_ERROR_DATA, "--curve: record %zu holds %zu numbers, the first %zu",
                          all->records, n, all->records == 2 && all->points > 1
                                               ? all->points * all->count : all->count);
    room_for(all, all->points + 1);
    for (size_t i = 0; i < n; i++)
        all->values[all->points * n + i] = ort_value_get_double(v, (int64_t)i);
    all->points++;
    return 0;
}

void curves_free(curves *all)
{
    if (all == NULL)
        return;
    free(all->values);
    free(all->name);
    free(all);
}

/* ---- time */

typedef struct plot {
    const curves *all;
    const source *from;
    double seconds, hop; /* of everything; of a point */
    double low, high;    /* of the curves' axis */
} plot;

static plot plan(const draw_tool *t, const curves *all, const source *from)
{
    plot p = {.all = all, .from = from, .low = 0, .high = 1};
    double samples = from->value != NULL ? (double)ort_value_dims(from->value)[0] : 0;
    double rate = from->rate > 0 ? from->rate : 16000;
    p.hop = t->hop > 0 ? (double)t->hop / rate : samples > 0 ? samples / rate / (double)all->points
                                                             : 1;
    p.seconds = p.hop * (double)all->points;
    if (samples / rate > p.seconds)
        p.seconds = samples / rate;
    for (size_t i = 0; i < all->points * all->count; i++) {
        double v = all->values[i];
        p.low = v < p.low && isfinite(v) ? v : p.low;
        p.high = v > p.high && isfinite(v) ? v : p.high;
    }
    return p;
}

/* ---- stretches above the score */

typedef void stretch_fn(void *arg, size_t curve, double begin, double end, double mean);

static void each_stretch(const draw_tool *t, const plot *p, stretch_fn *fn, void *arg)
{
    const curves *all = p->all;
    for (size_t c = 0; c < all->count; c++)
        for (size_t i = 0, begin; i < all->points; i++) {
            double sum = 0;
            for (begin = i; i < all->points && all->values[i * all->count + c] > t->score; i++)
                sum += all->values[i * all->count + c];
            if (i > begin)
                fn(arg, c, (double)begin * p->hop, (double)i * p->hop, sum / (double)(i - begin));
        }
}

typedef struct listing {
    const draw_tool *tool;
    const plot *plot;
    size_t count;
} listing;

static const char *curve_name(const draw_tool *t, const curves *all, size_t curve, char *buffer,
                              size_t size)
{
    if (curve < t->labels.count)
        return t->labels.items[curve];
    snprintf(buffer, size, all->count > 1 ? "%.80s %zu" : "%.80s", all->name, curve);
    return buffer;
}

static void list_stretch(void *arg, size_t curve, double begin, double end, double mean)
{
    listing *l = arg;
    char name[120];
    const char *label = curve_name(l->tool, l->plot->all, curve, name, sizeof name);
    if (l->tool->settings.json) {
        printf("%s{\"label\": ", l->count > 0 ? ", " : "");
        tool_json_string(stdout, label);
        printf(", \"begin_s\": %.3f, \"end_s\": %.3f, \"mean\": ", begin, end);
        json_number(mean);
        putchar('}');
    } else {
        screen_csv(stdout, label);
        printf(",%.3f,%.3f,%.4f\n", begin, end, mean);
    }
    l->count++;
}

static void list_stretches(draw_tool *t, const plot *p)
{
    listing l = {t, p, 0};
    if (t->settings.json) {
        json_record(t, p->from->path);
        printf(", \"points\": %zu, \"seconds\": %.3f, \"stretches\": [", p->all->points,
               p->seconds);
    } else {
        printf("label,begin_s,end_s,mean\n");
    }
    each_stretch(t, p, list_stretch, &l);
    if (t->settings.json)
        printf("]}\n");
}

/* ---- the sheet */

static double x_of(const plot *p, double second)
{
    return MARGIN + second / p->seconds * (SHEET_WIDTH - 2 * MARGIN);
}

static double y_of(const plot *p, double value)
{
    double share = (value - p->low) / (p->high - p->low);
    return SHEET_HEIGHT - MARGIN - share * (SHEET_HEIGHT - MARGIN - TOP);
}

typedef struct sheet {
    canvas *canvas;
    const plot *plot;
} sheet;

static void shade(void *arg, size_t curve, double begin, double end, double mean)
{
    sheet *s = arg;
    double x = x_of(s->plot, begin);
    canvas_fill(s->canvas, x, TOP, x_of(s->plot, end) - x, SHEET_HEIGHT - MARGIN - TOP,
                class_colour((int64_t)curve), 0.16);
}

/* The least and the largest sample of each column of pixels. */
static void draw_sound(canvas *c, const plot *p)
{
    const ort_value *v = p->from->value;
    int64_t frames = v != NULL ? ort_value_dims(v)[0] : 0;
    int64_t channels = frames > 0 ? ort_value_count(v) / frames : 1;
    double middle = (SHEET_HEIGHT - MARGIN + TOP) / 2.0, half = (SHEET_HEIGHT - MARGIN - TOP) / 2.0;
    int64_t at = 0;
    for (int x = MARGIN; x < SHEET_WIDTH - MARGIN && at < frames; x++) {
        double until = (double)(x + 1 - MARGIN) / (SHEET_WIDTH - 2 * MARGIN) * p->seconds;
        double low = INFINITY, high = -INFINITY;
        for (; at < frames && (double)at < until * p->from->rate; at++) {
            double s = ort_value_get_double(v, at * channels);
            low = s < low ? s : low;
            high = s > high ? s : high;
        }
        if (low <= high)
            canvas_fill(c, x, middle - high * half, 1, (high - low) * half + 1, 0x9aa7b8, 1);
    }
}

/* 1, 2 or 5 times a power of ten, so that at most twelve ticks stand on the axis. */
static double tick_step(double range)
{
    static const double steps[] = {2, 2.5, 2};
    double step = 1e-6;
    for (int i = 0; range / step > 12; i++)
        step *= steps[i % 3];
    return step;
}

static void draw_axes(canvas *c, const plot *p)
{
    char words[32];
    double bottom = SHEET_HEIGHT - MARGIN, right = SHEET_WIDTH - MARGIN;
    double step = tick_step(p->seconds);
    canvas_frame(c, MARGIN, TOP, right - MARGIN, bottom - TOP, 0x606060, 1);
    for (double s = 0; s <= p->seconds * 1.0001; s += step) {
        double x = x_of(p, s), tick[] = {x, bottom, x, bottom + 5};
        canvas_line(c, tick, 2, 0x606060, 1, false);
        snprintf(words, sizeof words, "%.6g s", s);
        canvas_text(c, x - canvas_text(c, 0, 0, 12, -1, words) / 2, bottom + 20, 12, 0x303030,
                    words);
    }
    for (int i = 0; i <= 4; i++) {
        double value = p->low + (p->high - p->low) * i / 4;
        snprintf(words, sizeof words, "%.4g", value);
        canvas_text(c, MARGIN - 6 - canvas_text(c, 0, 0, 12, -1, words), y_of(p, value) + 4, 12,
                    0x303030, words);
    }
}

static void draw_curves(const draw_tool *t, canvas *c, const plot *p)
{
    const curves *all = p->all;
    double *xy = tool_alloc(2 * all->points * sizeof *xy), x = MARGIN;
    for (size_t k = 0; k < all->count; k++) {
        char name[120];
        const char *label = curve_name(t, all, k, name, sizeof name);
        size_t n = 0;
        for (size_t i = 0; i < all->points; i++) {
            double v = all->values[i * all->count + k];
            if (!isfinite(v))
                continue;
            xy[2 * n] = x_of(p, ((double)i + 0.5) * p->hop);
            xy[2 * n++ + 1] = y_of(p, v);
        }
        canvas_line(c, xy, n, class_colour((int64_t)k), 1.6, false);
        canvas_fill(c, x, TOP - 14, 10, 10, class_colour((int64_t)k), 1);
        x += 14 + canvas_text(c, x + 14, TOP - 5, 13, 0x202020, label) + 16;
    }
    free(xy);
    if (t->score > p->low && t->score < p->high) {
        double limit[] = {MARGIN, y_of(p, t->score), SHEET_WIDTH - MARGIN, y_of(p, t->score)};
        canvas_line(c, limit, 2, 0x606060, 1, true);
    }
}

static int draw_sheet(draw_tool *t, const plot *p)
{
    canvas *c = NULL;
    int status = canvas_new(SHEET_WIDTH, SHEET_HEIGHT, &c);
    if (status != 0)
        return status;
    sheet s = {c, p};
    each_stretch(t, p, shade, &s);
    draw_sound(c, p);
    draw_axes(c, p);
    draw_curves(t, c, p);
    status = draw_save(t, c);
    canvas_free(c);
    return status;
}

int curves_finish(draw_tool *t, const curves *all, const source *from)
{
    if (all == NULL || all->points == 0)
        return tool_error(ORT_ERROR_DATA, "--curve: no record came");
    plot p = plan(t, all, from);
    int status = t->output != NULL ? draw_sheet(t, &p) : 0;
    if (status == 0 && draw_lists(t))
        list_stretches(t, &p);
    return status;
}
