/* suggest.h - which verb suits a model, by what it computes. */
#ifndef ORT_QUANTIZE_SUGGEST_H
#define ORT_QUANTIZE_SUGGEST_H

#include "common/tool.h"

/* Nodes of one kind of work; multiply-accumulates of a run whose open dimensions are one. */
typedef struct kind_of_work {
    double nodes, macs, weight_bytes;
    double in_bodies; /* of the nodes: those of control flow */
} kind_of_work;

typedef enum work_kind {
    WORK_CONV,
    WORK_MATMUL,
    WORK_LSTM,
    WORK_GRU,
    WORK_TREE,
    WORK_KINDS
} work_kind;

typedef struct facts {
    kind_of_work work[WORK_KINDS];
    double weight_bytes, code_bytes; /* initializers: all; on codes */
    double fused; /* of the nodes: those that an optimizer made of several */
    double half_bytes, double_bytes; /* in 16 and 64 bits, of floats */
    bool open;   /* axes behind the first of an input are: work is known per pixel or word alone */
    char *cache; /* an input that goes on where a run before ended, or NULL */
} facts;

typedef struct suggestion {
    facts facts;
    const char *verb;    /* NULL: the model is to stay as it is */
    const char *options; /* beside the defaults, "" without */
    string_list reasons; /* the first one decides */
} suggestion;

/* 0 or an exit status. */
int suggest(ort_model *model, suggestion *s);
void suggestion_release(suggestion *s);

#endif
