/* draw.h - the pieces of ort-draw: what a network said, as lists and on its picture.
 *
 * A record of tensors (and the picture or sound it came from) becomes boxes, a map of classes, or
 * curves; these are listed on stdout and drawn where -o says. Once they are made, boxes are in
 * pixels of the picture.
 */
#ifndef DRAW_H
#define DRAW_H

#include "canvas.h"
#include "common/fit.h"
#include "common/settings.h"
#include "common/whole_file.h"

enum { MOST_POINTS = 8 };

typedef struct box {
    double left, top, right, bottom, score;
    int64_t class;
    int points; /* landmarks */
    double x[MOST_POINTS], y[MOST_POINTS];
} box;

typedef struct box_list {
    box *items;
    size_t count, capacity;
} box_list;

typedef struct draw_tool {
    settings settings;
#define OPTION OPTION_MEMBER /* a member for each option that has a value */
#define GROUP OPTION_NO_MEMBER
#define ROWS OPTION_NO_MEMBER
#include "options.def"
    ort_env *env; /* made when suppression first needs it */
    string_list labels;
    fit_size canvas; /* of the network's input */
    size_t records;
    ort_out_file *direct; /* -o where it is a device or a pipe, which takes all pictures */
    whole_files waiting;  /* else: their files, until the last record is drawn */
} draw_tool;

/* A picture of rank 3 (uint8, RGB), or sound with its rate; what a record came from. */
typedef struct source {
    const char *path; /* NULL: none given */
    ort_tensors *tensors;
    const ort_value *value;
    int rate; /* of sound; 0: a picture */
    fit fit;  /* how the picture became the input */
} source;

/* ---- colour.c */
const char *class_name(const draw_tool *t, int64_t class, char *buffer, size_t size);
unsigned class_colour(int64_t class);
unsigned dark_or_light(unsigned background); /* for words on it */

/* ---- detect.c: tensors to boxes above the score, in pixels of the picture, not clipped yet */
#define DETECT_FORMS "yolox|yolov5|yolov8|yunet|ultraface|ssd|corners"
int detect_boxes(const draw_tool *t, const ort_tensors *record, const source *from, box_list *out);

/* ---- suppress.c: best first, without those that overlap a better one (NonMaxSuppression) */
int suppress(draw_tool *t, box_list *boxes);

/* ---- boxes.c */
int boxes_record(draw_tool *t, const ort_tensors *record, const source *from);

/* ---- mask.c: areas over the picture, and maps of numbers as colours */
int mask_record(draw_tool *t, const ort_tensors *record, const source *from);
int map_record(draw_tool *t, const ort_tensors *record, const source *from);

/* ---- wave.c: sound with curves under it; takes all records of a stream */
typedef struct curves curves;
int curves_add(draw_tool *t, curves **all, const ort_tensors *record);
int curves_finish(draw_tool *t, const curves *all, const source *from);
void curves_free(curves *all);

/* ---- values.c */
/* The value of that name ("": the first), or NULL after saying what there is. */
const ort_value *draw_value(const ort_tensors *record, const char *option, const char *name);
/* "1x3x8" */
const char *shape_text(const ort_value *v, char *buffer, size_t size);

/* ---- output.c */
/* Where -o says: the file of the record in work. */
int draw_save(draw_tool *t, canvas *c);
/* True where lists go to stdout (a picture doesn't). */
bool draw_lists(const draw_tool *t);
/* The opening of a report, up to the name of the picture. */
void json_record(draw_tool *t, const char *path);
/* null where it isn't finite: JSON has no such number. */
void json_number(double number);

#endif
