/* canvas.c - drawing through cairo's image surfaces (canvas.h).
 *
 * The few calls are declared here as cairo's ABI has had them since 1.0 (2005): nothing of cairo is
 * needed to build.
 */
#include "canvas.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

typedef struct cairo_surface cairo_surface;
typedef struct cairo_context cairo_context;
typedef struct cairo_extents {
    double x_bearing, y_bearing, width, height, x_advance, y_advance;
} cairo_extents;

enum { CAIRO_RGB24 = 1, CAIRO_NORMAL = 0, CAIRO_SUCCESS = 0, LARGEST_SIDE = 32767 };

/* X(result, name, arguments) */
#define CAIRO_CALLS(X)                                                                             \
    X(cairo_surface *, image_surface_create, (int format, int width, int height))                  \
    X(unsigned char *, image_surface_get_data, (cairo_surface * surface))                          \
    X(int, image_surface_get_stride, (cairo_surface * surface))                                    \
    X(void, surface_flush, (cairo_surface * surface))                                              \
    X(void, surface_mark_dirty, (cairo_surface * surface))                                         \
    X(void, surface_destroy, (cairo_surface * surface))                                            \
    X(cairo_context *, create, (cairo_surface * surface))                                          \
    X(void, destroy, (cairo_context * context))                                                    \
    X(int, status, (cairo_context * context))                                                      \
    X(const char *, status_to_string, (int status))                                                \
    X(void, set_source_rgba, (cairo_context * context, double r, double g, double b, double a))    \
    X(void, set_line_width, (cairo_context * context, double width))                               \
    X(void, set_dash, (cairo_context * context, const double *dashes, int count, double offset))   \
    X(void, rectangle, (cairo_context * context, double x, double y, double w, double h))          \
    X(void, arc, (cairo_context * context, double x, double y, double r, double from, double to))  \
    X(void, move_to, (cairo_context * context, double x, double y))                                \
    X(void, line_to, (cairo_context * context, double x, double y))                                \
    X(void, fill, (cairo_context * context))                                                       \
    X(void, stroke, (cairo_context * context))                                                     \
    X(void, paint, (cairo_context * context))                                                      \
    X(void, select_font_face, (cairo_context * context, const char *family, int slant, int bold))  \
    X(void, set_font_size, (cairo_context * context, double size))                                 \
    X(void, text_extents, (cairo_context * context, const char *text, cairo_extents *extents))     \
    X(void, show_text, (cairo_context * context, const char *text))

struct canvas {
    void *library;
    cairo_surface *surface;
    cairo_context *context;
    int64_t width, height;
#define MEMBER(result, name, arguments) result(*name) arguments;
    CAIRO_CALLS(MEMBER)
#undef MEMBER
};

static int open_cairo(canvas *c)
{
    const char *missing = NULL;
    c->library = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (c->library == NULL)
        return tool_error(ORT_ERROR_IO, "pictures are drawn by the library libcairo.so.2, which "
                          "can't be opened; install the package libcairo2, or leave out -o");
/* A pointer to a function is stored as POSIX has dlsym used: through a pointer to it. */
#define FIND(result, name, arguments)                                                              \
    if ((*(void **)&c->name = dlsym(c->library, "cairo_" #name)) == NULL)                          \
        missing = "cairo_" #name;
    CAIRO_CALLS(FIND)
#undef FIND
    return missing == NULL ? 0 : tool_error(ORT_ERROR_IO, "libcairo.so.2 has no %s", missing);
}

int canvas_new(int64_t width, int64_t height, canvas **out)
{
    if (width < 1 || height < 1 || width > LARGEST_SIDE || height > LARGEST_SIDE)
        return tool_error(ORT_ERROR_DATA, "a picture of %lld x %lld pixels can't be drawn; 1 to %d "
                          "on each side can", (long long)width, (long long)height, LARGEST_SIDE);
    canvas *c = tool_alloc(sizeof *c);
    c->width = width;
    c->height = height;
    int status = open_cairo(c);
    if (status != 0) {
        canvas_free(c);
        return status;
    }
    c->surface = c->image_surface_create(CAIRO_RGB24, (int)width, (int)height);
    c->context = c->create(c->surface);
    int problem = c->status(c->context);
    if (problem != CAIRO_SUCCESS) {
        status = tool_error(ORT_ERROR_RUN, "cairo: %s", c->status_to_string(problem));
        canvas_free(c);
        return status;
    }
    c->select_font_face(c->context, "sans-serif", CAIRO_NORMAL, CAIRO_NORMAL);
    c->set_source_rgba(c->context, 1, 1, 1, 1);
    c->paint(c->context);
    *out = c;
    return 0;
}

void canvas_free(canvas *c)
{
    if (c == NULL)
        return;
    if (c->context != NULL)
        c->destroy(c->context);
    if (c->surface != NULL)
        c->surface_destroy(c->surface);
    if (c->library != NULL)
        dlclose(c->library);
    free(c);
}

/* RGB24 keeps a pixel in a native 32-bit word. */
static uint32_t *pixel_row(const canvas *c, int64_t y)
{
    unsigned char *data = c->image_surface_get_data(c->surface);
    return (uint32_t *)(void *)(data + y * c->image_surface_get_stride(c->surface));
}

void canvas_put_picture(canvas *c, const uint8_t *pixels, int64_t channels)
{
    c->surface_flush(c->surface);
    for (int64_t y = 0; y < c->height; y++) {
        uint32_t *row = pixel_row(c, y);
        for (int64_t x = 0; x < c->width; x++, pixels += channels) {
            const uint8_t *p = pixels;
            bool gray = channels < 3;
            row[x] = (uint32_t)p[0] << 16 | (uint32_t)p[gray ? 0 : 1] << 8 | p[gray ? 0 : 2];
        }
    }
    c->surface_mark_dirty(c->surface);
}

static uint32_t mixed(uint32_t pixel, const tint *t)
{
    uint32_t result = 0;
    for (int shift = 0; shift < 24; shift += 8) {
        double was = (double)(pixel >> shift & 255), is = (double)(t->colour >> shift & 255);
        result |= (uint32_t)(was + (is - was) * t->opacity + 0.5) << shift;
    }
    return result;
}

void canvas_tint(canvas *c, tint_fn *fn, const void *arg)
{
    c->surface_flush(c->surface);
    for (int64_t y = 0; y < c->height; y++) {
        uint32_t *row = pixel_row(c, y);
        for (int64_t x = 0; x < c->width; x++) {
            tint t = fn(arg, x, y);
            if (t.opacity > 0)
                row[x] = mixed(row[x], &t);
        }
    }
    c->surface_mark_dirty(c->surface);
}

static void use(canvas *c, unsigned colour, double opacity)
{
    c->set_source_rgba(c->context, (double)(colour >> 16 & 255) / 255,
                       (double)(colour >> 8 & 255) / 255, (double)(colour & 255) / 255, opacity);
}

void canvas_fill(canvas *c, double x, double y, double width, double height, unsigned colour,
                 double opacity)
{
    use(c, colour, opacity);
    c->rectangle(c->context, x, y, width, height);
    c->fill(c->context);
}

void canvas_frame(canvas *c, double x, double y, double width, double height, unsigned colour,
                  double line)
{
    use(c, colour, 1);
    c->set_line_width(c->context, line);
    c->rectangle(c->context, x, y, width, height);
    c->stroke(c->context);
}

void canvas_dot(canvas *c, double x, double y, double radius, unsigned colour)
{
    use(c, colour, 1);
    c->arc(c->context, x, y, radius, 0, 2 * 3.141592653589793);
    c->fill(c->context);
}

void canvas_line(canvas *c, const double *xy, size_t points, unsigned colour, double line,
                 bool dashed)
{
    static const double dashes[] = {6, 4};
    use(c, colour, 1);
    c->set_line_width(c->context, line);
    c->set_dash(c->context, dashes, dashed ? 2 : 0, 0);
    for (size_t i = 0; i < points; i++) {
        if (i == 0)
            c->move_to(c->context, xy[0], xy[1]);
        else
            c->line_to(c->context, xy[2 * i], xy[2 * i + 1]);
    }
    c->stroke(c->context);
    c->set_dash(c->context, dashes, 0, 0);
}

/* Cairo refuses what isn't UTF-8, and draws nothing more; such bytes become question marks. */
static char *drawable(const char *text)
{
    char *copy = tool_strdup(text);
    size_t whole;
    for (char *p = copy; *p != '\0'; p += whole > 0 ? whole : 1) {
        whole = text_character(p);
        if (whole == 0)
            *p = '?';
    }
    return copy;
}

double canvas_text(canvas *c, double x, double y, double size, long colour, const char *given)
{
    cairo_extents extents = {0};
    char *text = drawable(given);
    c->set_font_size(c->context, size);
    c->text_extents(c->context, text, &extents);
    if (colour >= 0) {
        use(c, (unsigned)colour, 1);
        c->move_to(c->context, x, y);
        c->show_text(c->context, text);
    }
    free(text);
    return extents.x_advance;
}

int canvas_take(canvas *c, ort_value **picture)
{
    ort_error err = {0};
    int64_t dims[3] = {c->height, c->width, 3};
    int problem = c->status(c->context);
    if (problem != CAIRO_SUCCESS)
        return tool_error(ORT_ERROR_RUN, "cairo: %s", c->status_to_string(problem));
    if (ort_value_new_tensor(ORT_DTYPE_UINT8, 3, dims, picture, &err) != ORT_OK)
        return tool_fail(&err);
    uint8_t *to = ort_value_data(*picture);
    c->surface_flush(c->surface);
    for (int64_t y = 0; y < c->height; y++) {
        const uint32_t *row = pixel_row(c, y);
        for (int64_t x = 0; x < c->width; x++, to += 3) {
            to[0] = (uint8_t)(row[x] >> 16);
            to[1] = (uint8_t)(row[x] >> 8);
            to[2] = (uint8_t)row[x];
        }
    }
    return 0;
}
