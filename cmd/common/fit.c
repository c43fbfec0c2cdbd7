/* fit.c - letterboxes and their inverse (fit.h). */
#include "common/fit.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "common/tool.h"

enum { LARGEST_SIDE = 65536, FARTHEST = 1 << 30 };

/* `+N`: from the top or the left. False: it is none, or none that an image has. */
static bool parse_offset(char **at, int64_t *offset)
{
    if (!isdigit((unsigned char)(*at)[1]))
        return false;
    *offset = strtoll(*at + 1, at, 10);
    return *offset <= FARTHEST;
}

int fit_parse_size(const char *option, const char *text, fit_size *size)
{
    char *end;
    *size = (fit_size){.width = -1, .top = -1, .left = -1};
    size->height = strtoll(text, &end, 10);
    if (*end == 'x')
        size->width = strtoll(end + 1, &end, 10);
    bool placed = *end != '+' || (parse_offset(&end, &size->top) && *end == '+' &&
                                  parse_offset(&end, &size->left));
    if (!placed || *end != '\0' || size->height < 1 || size->height > LARGEST_SIDE ||
        size->width == 0 || size->width < -1 || size->width > LARGEST_SIDE)
        return tool_usage("%s: '%s' is no size such as 224, 224x320 or 224x320+10+20", option,
                          text);
    return 0;
}

/* At least a pixel: a ruler of 4000 x 2 fits, too. */
static int64_t scaled(int64_t side, double factor)
{
    int64_t pixels = (int64_t)nearbyint((double)side * factor);
    return pixels < 1 ? 1 : pixels;
}

bool fit_plan(fit *f, int64_t height, int64_t width, const fit_size *canvas, bool letterbox)
{
    *f = (fit){.height = height, .width = width};
    f->canvas_height = f->scaled_height = canvas->height;
    f->canvas_width = f->scaled_width = canvas->width < 0 ? canvas->height : canvas->width;
    if (!letterbox)
        return true;
    double down = (double)f->canvas_height / (double)height;
    double across = (double)f->canvas_width / (double)width;
    double factor = down < across ? down : across;
    f->scaled_height = scaled(height, factor);
    f->scaled_width = scaled(width, factor);
    f->top = canvas->top >= 0 ? canvas->top : (f->canvas_height - f->scaled_height) / 2;
    f->left = canvas->left >= 0 ? canvas->left : (f->canvas_width - f->scaled_width) / 2;
    return f->top + f->scaled_height <= f->canvas_height &&
           f->left + f->scaled_width <= f->canvas_width;
}

void fit_to_picture(const fit *f, double *x, double *y)
{
    *x = (*x - (double)f->left) * (double)f->width / (double)f->scaled_width;
    *y = (*y - (double)f->top) * (double)f->height / (double)f->scaled_height;
}

void fit_to_canvas(const fit *f, double *x, double *y)
{
    *x = *x * (double)f->scaled_width / (double)f->width + (double)f->left;
    *y = *y * (double)f->scaled_height / (double)f->height + (double)f->top;
}
