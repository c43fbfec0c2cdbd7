/* mask.c - areas that a network marked, over the picture; and maps of numbers as colours.
 *
 * A mask is H x W of probabilities (marked above --score), H x W of whole numbers (classes), or
 * C x H x W of scores (the best class of each pixel). Each pixel of the picture asks the mask where
 * its centre lies.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/screen.h"
#include "draw.h"

typedef struct mask {
    const draw_tool *tool;
    const source *from;
    const ort_value *value;
    fit fit;
    int64_t planes, height, width;
    bool whole; /* numbers of classes */
} mask;

enum { NOTHING = -1, MOST_CLASSES = 4096 };

/* [1, 1, H, W] is H x W: leading ones don't count. False where it is no stack of planes. */
static bool planes_of(const ort_value *v, int64_t dims[3])
{
    int rank = ort_value_rank(v), first = 0;
    while (first < rank - 2 && ort_value_dims(v)[first] == 1)
        first++;
    if (rank < 2 || rank - first > 3 || ort_value_dtype(v) == ORT_DTYPE_STRING)
        return false;
    dims[0] = rank - first == 3 ? ort_value_dims(v)[first] : 1;
    dims[1] = ort_value_dims(v)[rank - 2];
    dims[2] = ort_value_dims(v)[rank - 1];
    return ort_value_count(v) > 0;
}

static int64_t class_of_cell(const mask *m, int64_t cell)
{
    int64_t area = m->height * m->width, best = 0;
    double most = ort_value_get_double(m->value, cell);
    if (m->whole)
        return most > 0 && most < MOST_CLASSES ? (int64_t)most : NOTHING;
    if (m->planes == 1)
        return most > m->tool->score ? 0 : NOTHING;
    for (int64_t c = 1; c < m->planes; c++) {
        double score = ort_value_get_double(m->value, c * area + cell);
        if (score > most) {
            most = score;
            best = c;
        }
    }
    return best > 0 ? best : NOTHING; /* class 0 is the background */
}

static int64_t class_at(const mask *m, int64_t px, int64_t py)
{
    double x = (double)px + 0.5, y = (double)py + 0.5;
    fit_to_canvas(&m->fit, &x, &y);
    x = floor(x * (double)m->width / (double)m->fit.canvas_width);
    y = floor(y * (double)m->height / (double)m->fit.canvas_height);
    if (x < 0 || y < 0 || x >= (double)m->width || y >= (double)m->height)
        return NOTHING;
    return class_of_cell(m, (int64_t)y * m->width + (int64_t)x);
}

static tint tint_of(const void *arg, int64_t x, int64_t y)
{
    const mask *m = arg;
    int64_t class = class_at(m, x, y);
    return (tint){class_colour(class), class == NOTHING ? 0 : m->tool->opacity};
}

static int open_mask(const draw_tool *t, const ort_tensors *record, const source *from, mask *m)
{
    char shape[160];
    int64_t dims[3];
    *m = (mask){.tool = t, .from = from, .value = draw_value(record, "--mask", t->mask)};
    if (m->value == NULL)
        return EXIT_USAGE;
    if (ort_value_get_kind(m->value) != ORT_VALUE_TENSOR || !planes_of(m->value, dims) ||
        dims[0] > MOST_CLASSES)
        return tool_error(ORT_ERROR_DATA, "--mask: the value is %s; wanted are HxW or CxHxW "
                          "numbers", shape_text(m->value, shape, sizeof shape));
    m->planes = dims[0];
    m->height = dims[1];
    m->width = dims[2];
    m->whole = !dtype_is_float(ort_value_dtype(m->value)) && m->planes == 1;
    m->fit = from->fit;
    if (t->letterbox == NULL && t->stretch == NULL) { /* the mask covers the picture */
        fit_size all = {dims[1], dims[2], -1, -1};
        int64_t height = from->value != NULL ? from->fit.height : dims[1];
        fit_plan(&m->fit, height, from->value != NULL ? from->fit.width : dims[2], &all, false);
    }
    return 0;
}

/* ---- lists */

static void list_areas(draw_tool *t, const source *from, const mask *m, const int64_t *pixels)
{
    double all = (double)m->fit.width * (double)m->fit.height;
    bool json = t->settings.json, first = true;
    char name[32];
    if (json) {
        json_record(t, from->path);
        printf(", \"width\": %lld, \"height\": %lld, \"areas\": [", (long long)m->fit.width,
               (long long)m->fit.height);
    } else if (t->records == 0) {
        printf("picture,class,label,pixels,share\n");
    }
    for (int64_t c = 0; c < MOST_CLASSES; c++) {
        const char *label = class_name(t, c, name, sizeof name);
        if (pixels[c] == 0)
            continue;
        if (json) {
            printf("%s{\"class\": %lld, \"label\": ", first ? "" : ", ", (long long)c);
            tool_json_string(stdout, label);
            printf(", \"pixels\": %lld, \"share\": %.6f}", (long long)pixels[c],
                   (double)pixels[c] / all);
        } else {
            screen_csv(stdout, from->path != NULL ? from->path : "");
            printf(",%lld,", (long long)c);
            screen_csv(stdout, label);
            printf(",%lld,%.4f\n", (long long)pixels[c], (double)pixels[c] / all);
        }
        first = false;
    }
    if (json)
        printf("]}\n");
}

/* Names of the classes in the upper left corner, where there are names. */
static void draw_legend(const draw_tool *t, canvas *c, const mask *m, const int64_t *pixels)
{
    double size = (double)m->fit.height > 400 ? (double)m->fit.height / 36 : 11, y = size / 2;
    for (size_t i = 0; i < t->labels.count && i < MOST_CLASSES; i++) {
        unsigned colour = class_colour((int64_t)i);
        double width = canvas_text(c, 0, 0, size, -1, t->labels.items[i]) + size / 2;
        if (pixels[i] == 0)
            continue;
        canvas_fill(c, size / 2, y, width, size * 1.3, colour, 1);
        canvas_text(c, size * 0.75, y + size, size, (long)dark_or_light(colour),
                    t->labels.items[i]);
        y += size * 1.4;
    }
}

static int draw_mask(draw_tool *t, const source *from, const mask *m, const int64_t *pixels)
{
    canvas *c = NULL;
    int status = canvas_new(m->fit.width, m->fit.height, &c);
    if (status != 0)
        return status;
    if (from->value != NULL)
        canvas_put_picture(c, ort_value_data((ort_value *)(uintptr_t)from->value),
                           ort_value_dims(from->value)[2]);
    canvas_tint(c, tint_of, m);
    draw_legend(t, c, m, pixels);
    status = draw_save(t, c);
    canvas_free(c);
    return status;
}

int mask_record(draw_tool *t, const ort_tensors *record, const source *from)
{
    mask m;
    int status = open_mask(t, record, from, &m);
    if (status != 0)
        return status;
    int64_t *pixels = tool_alloc(MOST_CLASSES * sizeof *pixels);
    for (int64_t y = 0; y < m.fit.height; y++)
        for (int64_t x = 0; x < m.fit.width; x++) {
            int64_t class = class_at(&m, x, y);
            if (class != NOTHING)
                pixels[class]++;
        }
    if (t->output != NULL)
        status = draw_mask(t, from, &m, pixels);
    if (status == 0 && draw_lists(t))
        list_areas(t, from, &m, pixels);
    free(pixels);
    return status;
}

/* ---- maps of numbers */

typedef struct heat {
    const ort_value *value;
    int64_t height, width, cell;
    double low, high;
} heat;

/* matplotlib's viridis (van der Walt and Smith, CC0), nine of its 256 colours and lines between. */
static unsigned viridis(double share)
{
    static const unsigned stop[] = {0x440154, 0x472d7b, 0x3b528b, 0x2c728e, 0x21918c,
                                    0x28ae80, 0x5ec962, 0xaddc30, 0xfde725};
    double at = (share > 0 ? share < 1 ? share : 1 : 0) * 8;
    int i = at >= 8 ? 7 : (int)at;
    unsigned colour = 0;
    for (int shift = 0; shift < 24; shift += 8) {
        double a = (double)(stop[i] >> shift & 255), b = (double)(stop[i + 1] >> shift & 255);
        colour |= (unsigned)(a + (b - a) * (at - i) + 0.5) << shift;
    }
    return colour;
}

static tint heat_at(const void *arg, int64_t x, int64_t y)
{
    const heat *h = arg;
    int64_t row = y / h->cell, column = x / h->cell;
    double range = h->high - h->low;
    if (row >= h->height || column >= h->width) {
        bool bar = x >= h->width * h->cell + 8 && x < h->width * h->cell + 20;
        return (tint){viridis(1 - (double)y / (double)(h->height * h->cell)), bar ? 1 : 0};
    }
    double v = ort_value_get_double(h->value, row * h->width + column);
    return (tint){isfinite(v) ? viridis(range > 0 ? (v - h->low) / range : 0) : 0xff00ff, 1};
}

/* The colours, and a bar beside them with its ends. */
static int draw_map(draw_tool *t, const heat *h)
{
    canvas *c = NULL;
    char words[32];
    double right = (double)(h->width * h->cell) + 24, bottom = (double)(h->height * h->cell);
    int status = canvas_new(h->width * h->cell + 84, h->height * h->cell, &c);
    if (status != 0)
        return status;
    canvas_tint(c, heat_at, h);
    snprintf(words, sizeof words, "%.4g", h->high);
    canvas_text(c, right, 12, 11, 0, words);
    snprintf(words, sizeof words, "%.4g", h->low);
    canvas_text(c, right, bottom - 3, 11, 0, words);
    status = draw_save(t, c);
    canvas_free(c);
    return status;
}

int map_record(draw_tool *t, const ort_tensors *record, const source *from)
{
    char shape[160];
    int64_t dims[3];
    const ort_value *v = draw_value(record, "--map", t->map);
    int status = 0;
    if (v == NULL)
        return EXIT_USAGE;
    if (ort_value_get_kind(v) != ORT_VALUE_TENSOR || !planes_of(v, dims) || dims[0] != 1)
        return tool_error(ORT_ERROR_DATA, "--map: the value is %s; wanted are HxW numbers "
                          "(ort-tensor --slice takes one of several maps)",
                          shape_text(v, shape, sizeof shape));
    heat h = {v, dims[1], dims[2], 1, INFINITY, -INFINITY};
    for (int64_t i = 0; i < ort_value_count(v); i++) {
        double x = ort_value_get_double(v, i);
        h.low = x < h.low && isfinite(x) ? x : h.low;
        h.high = x > h.high && isfinite(x) ? x : h.high;
    }
    if (h.low > h.high) /* no number is finite */
        h.low = h.high = NAN;
    while (h.cell < 16 && (h.cell + 1) * h.width <= 800 && (h.cell + 1) * h.height <= 600)
        h.cell++;
    if (t->output != NULL)
        status = draw_map(t, &h);
    if (status != 0 || !draw_lists(t))
        return status;
    if (t->settings.json) {
        json_record(t, from->path);
        printf(", \"rows\": %lld, \"columns\": %lld, \"min\": ", (long long)h.height,
               (long long)h.width);
        json_number(h.low);
        printf(", \"max\": ");
        json_number(h.high);
        printf("}\n");
    } else {
        printf("rows,columns,min,max\n%lld,%lld,%.6g,%.6g\n", (long long)h.height,
               (long long)h.width, h.low, h.high);
    }
    return 0;
}
