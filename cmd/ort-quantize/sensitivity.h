/* sensitivity.h - which nodes' codes harm the outputs, and how much. */
#ifndef ORT_QUANTIZE_SENSITIVITY_H
#define ORT_QUANTIZE_SENSITIVITY_H

#include "quantize.h"

typedef struct node_harm {
    size_t index; /* of ort_quantizer_node */
    const char *name, *op_type, *part; /* the quantizer's */
    double alone_db;      /* SQNR of the model in which it alone reads codes */
    double cumulative_db; /* with all nodes behind it in the list on codes, too; NaN: not run */
} node_harm;

typedef struct harm_list {
    node_harm *rows; /* the most harmful first */
    size_t count;
} harm_list;

/* Nodes that multiply, step or look up; those that only move codes go with these. */
int harm_nodes(harm_list *list, const ort_quantizer *quantizer);

/* --sensitivity: the list on stdout. `total`: how many samples calibration saw. */
int sensitivity(quantizing *q, ort_quantizer *quantizer, size_t total);

#endif
