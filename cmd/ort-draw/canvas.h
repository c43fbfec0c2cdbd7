/* canvas.h - a sheet of pixels with lines, areas and words on it, drawn by cairo.
 *
 * Cairo is opened when the first canvas is made (libcairo.so.2), so that a machine without it still
 * lists boxes; coordinates are pixels from the upper left corner, colours are 0xRRGGBB.
 */
#ifndef DRAW_CANVAS_H
#define DRAW_CANVAS_H

#include "common/tool.h"

typedef struct canvas canvas;

/* A white sheet. 0, or an exit status after saying why (EXIT_DATA: no cairo). */
int canvas_new(int64_t width, int64_t height, canvas **out);
void canvas_free(canvas *c);

/* The sheet becomes a picture of height x width x channels bytes (1, 3 or 4) of its own size. */
void canvas_put_picture(canvas *c, const uint8_t *pixels, int64_t channels);
/* Mix a colour into every pixel. */
typedef struct tint {
    unsigned colour;
    double opacity; /* 0: the pixel stays */
} tint;
typedef tint tint_fn(const void *arg, int64_t x, int64_t y);
void canvas_tint(canvas *c, tint_fn *fn, const void *arg);

void canvas_fill(canvas *c, double x, double y, double width, double height, unsigned colour,
                 double opacity);
void canvas_frame(canvas *c, double x, double y, double width, double height, unsigned colour,
                  double line);
void canvas_dot(canvas *c, double x, double y, double radius, unsigned colour);
/* A line through points; `dashed` for limits. */
void canvas_line(canvas *c, const double *xy, size_t points, unsigned colour, double line,
                 bool dashed);
/* Words whose box begins at x, its baseline at y; returns its width. Colour < 0 measures only. */
double canvas_text(canvas *c, double x, double y, double size, long colour, const char *text);

/* Height x width x 3 bytes; checks that all drawing succeeded. */
int canvas_take(canvas *c, ort_value **picture);

#endif
