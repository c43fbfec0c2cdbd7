/* boxes.c - what a detector found: best first, as a table, as JSON, and on the picture. */
#include <stdlib.h>

#include "common/screen.h"
#include "draw.h"

static double held(double x, double most) { return x < 0 ? 0 : x > most ? most : x; }

/* Boxes end with the picture; those outside of it go. Landmarks stay where they were found. */
static void clip(const fit *f, box_list *boxes)
{
    size_t kept = 0;
    for (size_t i = 0; i < boxes->count; i++) {
        box b = boxes->items[i];
        b.left = held(b.left, (double)f->width);
        b.right = held(b.right, (double)f->width);
        b.top = held(b.top, (double)f->height);
        b.bottom = held(b.bottom, (double)f->height);
        if (b.right > b.left && b.bottom > b.top)
            boxes->items[kept++] = b;
    }
    boxes->count = kept;
}

/* ---- lists */

static void list_csv(const draw_tool *t, const source *from, const box_list *boxes)
{
    if (t->records == 0)
        printf("picture,class,label,score,left,top,right,bottom,points\n");
    for (size_t i = 0; i < boxes->count; i++) {
        const box *b = &boxes->items[i];
        char name[32];
        screen_csv(stdout, from->path != NULL ? from->path : "");
        printf(",%lld,", (long long)b->class);
        screen_csv(stdout, class_name(t, b->class, name, sizeof name));
        printf(",%.4f,%.1f,%.1f,%.1f,%.1f,", b->score, b->left, b->top, b->right, b->bottom);
        for (int k = 0; k < b->points; k++)
            printf("%s%.1f %.1f", k > 0 ? " " : "", b->x[k], b->y[k]);
        putchar('\n');
    }
}

static void list_json(draw_tool *t, const source *from, const box_list *boxes)
{
    json_record(t, from->path);
    printf(", \"width\": %lld, \"height\": %lld, \"boxes\": [", (long long)from->fit.width,
           (long long)from->fit.height);
    for (size_t i = 0; i < boxes->count; i++) {
        const box *b = &boxes->items[i];
        char name[32];
        printf("%s{\"class\": %lld, \"label\": ", i > 0 ? ", " : "", (long long)b->class);
        tool_json_string(stdout, class_name(t, b->class, name, sizeof name));
        printf(", \"score\": %.6g, \"left\": %.3f, \"top\": %.3f, \"right\": %.3f, "
               "\"bottom\": %.3f, \"points\": [", b->score, b->left, b->top, b->right, b->bottom);
        for (int k = 0; k < b->points; k++)
            printf("%s{\"x\": %.3f, \"y\": %.3f}", k > 0 ? ", " : "", b->x[k], b->y[k]);
        printf("]}");
    }
    printf("]}\n");
}

/* ---- the picture */

/* "person 0.93" on a bar of the box's colour: above it, or inside where there is no room. */
static void draw_name(const draw_tool *t, canvas *c, const source *from, const box *b, double size)
{
    char name[32];
    char *words = tool_printf("%s %.2f", class_name(t, b->class, name, sizeof name), b->score);
    double width = canvas_text(c, 0, 0, size, -1, words) + size / 2, height = size * 1.3;
    double x = b->left, y = b->top - height;
    unsigned colour = class_colour(b->class);
    if (x + width > (double)from->fit.width)
        x = (double)from->fit.width > width ? (double)from->fit.width - width : 0;
    canvas_fill(c, x, y < 0 ? b->top : y, width, height, colour, 1);
    canvas_text(c, x + size / 4, (y < 0 ? b->top : y) + size, size, (long)dark_or_light(colour),
                words);
    free(words);
}

static void draw_boxes(const draw_tool *t, canvas *c, const source *from, const box_list *boxes)
{
    int64_t side = from->fit.width > from->fit.height ? from->fit.width : from->fit.height;
    double line = t->line > 0 ? t->line : side > 600 ? (double)side / 300 : 2;
    double size = side > 400 ? (double)side / 36 : 11;
    for (size_t i = boxes->count; i-- > 0;) { /* the best lie on top */
        const box *b = &boxes->items[i];
        canvas_frame(c, b->left, b->top, b->right - b->left, b->bottom - b->top,
                     class_colour(b->class), line);
        for (int k = 0; k < b->points; k++)
            canvas_dot(c, b->x[k], b->y[k], line * 1.5, class_colour(b->class + 1 + k));
    }
    for (size_t i = boxes->count; i-- > 0;)
        draw_name(t, c, from, &boxes->items[i], size);
}

static int draw_all(draw_tool *t, const source *from, const box_list *boxes)
{
    canvas *c = NULL;
    int status = canvas_new(from->fit.width, from->fit.height, &c);
    if (status != 0)
        return status;
    if (from->value != NULL)
        canvas_put_picture(c, ort_value_data((ort_value *)(uintptr_t)from->value),
                           ort_value_dims(from->value)[2]);
    draw_boxes(t, c, from, boxes);
    status = draw_save(t, c);
    canvas_free(c);
    return status;
}

int boxes_record(draw_tool *t, const ort_tensors *record, const source *from)
{
    box_list boxes = {0};
    int status = detect_boxes(t, record, from, &boxes);
    if (status == 0)
        status = suppress(t, &boxes);
    if (status == 0)
        clip(&from->fit, &boxes);
    if (status == 0 && t->output != NULL)
        status = draw_all(t, from, &boxes);
    if (status == 0 && draw_lists(t) && t->settings.json)
        list_json(t, from, &boxes);
    else if (status == 0 && draw_lists(t))
        list_csv(t, from, &boxes);
    free(boxes.items);
    return status;
}
