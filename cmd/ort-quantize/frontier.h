/* frontier.h - models that trade signal to noise for latency or size, measured whole. */
#ifndef ORT_QUANTIZE_FRONTIER_H
#define ORT_QUANTIZE_FRONTIER_H

#include <json-c/json.h>

#include "trial.h"

typedef struct point {
    char *what;      /* "12 int8, 3 float" */
    char *overrides; /* its assignment: JSON of "ort-overrides/1" */
    nearness_to_float near;
    double ms, bytes;
    bool holds;      /* the gates, on the samples of the trial */
} point;

typedef struct frontier {
    point points[20];
    size_t count;
    int chosen;   /* -1: none */
    bool by_size; /* what is to be low */
    double gate_db; /* --min-sqnr; negative: none */
} frontier;

/* Measures the model, which was made by these overrides (both texts are taken), and adds it. */
int frontier_add(frontier *f, const trial *t, ort_model *model, char *what, char *overrides);
bool frontier_holds(const quantizing *q, const nearness_to_float *near);
/* Orders by cost and picks the lowest that holds. */
void frontier_choose(frontier *f);
void frontier_text(const frontier *f, FILE *out);
json_object *frontier_json(const frontier *f);

/* ---- frontier_plot.c */
/* '*' the chosen one, '+' one that holds the gates, 'o' one that doesn't. */
char frontier_mark(const frontier *f, size_t point);
void frontier_characters(const frontier *f, FILE *out);
int frontier_plot(const frontier *f, const char *path); /* SVG */

void frontier_release(frontier *f);

#endif
