/* fit.h - how a picture becomes the input of a network, and the way back.
 *
 * A letterbox keeps the proportions: the picture is scaled until it fits and lies on a canvas, in
 * its centre or at a given place. The way back divides by what the scaled picture truly measures,
 * in whole pixels, so that the corners of the one are the corners of the other.
 */
#ifndef COMMON_FIT_H
#define COMMON_FIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fit_size {
    int64_t height, width; /* width -1: not given */
    int64_t top, left;     /* -1: not given */
} fit_size;

/* "256" or "256x320" (height x width), with an optional "+Y+X". 0 or EXIT_USAGE, said. */
int fit_parse_size(const char *option, const char *text, fit_size *size);

typedef struct fit {
    int64_t height, width;               /* of the picture */
    int64_t canvas_height, canvas_width; /* of the network's input */
    int64_t scaled_height, scaled_width; /* of the picture on the canvas */
    int64_t top, left;
} fit;

/* A picture of height x width on a canvas of that size; `letterbox` false: stretched over it. False
 * when it doesn't fit where it was placed. */
bool fit_plan(fit *f, int64_t height, int64_t width, const fit_size *canvas, bool letterbox);
/* A point of the canvas as one of the picture, and back; not held inside either. */
void fit_to_picture(const fit *f, double *x, double *y);
void fit_to_canvas(const fit *f, double *x, double *y);

#endif
