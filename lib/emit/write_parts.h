/* write_parts.h - what write.c makes nodes of: names, attributes, numbers and lists of a text. */
#ifndef ORT_EMIT_WRITE_PARTS_H
#define ORT_EMIT_WRITE_PARTS_H

#include "emit/write.h"

enum { ORT_WRITE_INPUTS = 32, ORT_WRITE_NAME = 64 };

/* What a name stands for in the match; NULL: nothing. */
const ort_bound *ort_write_bound(const ort_writer *w, const char *name, int length);
/* The node that was found as this; "_": the one whose rule runs. */
const ort_node *ort_write_node(const ort_writer *w, const char *name, int length);
/* So many letters of a text, in the model's arena; "" without memory, which is noted. */
const char *ort_write_copied(const ort_writer *w, const char *text, int length);
/* Does the text give this attribute? Not where its names stand for nothing in what was found. */
bool ort_write_has_attr(const ort_writer *w, const ort_text_attr *a);
/* An attribute of a node, of the kind that the row says. `list` of ORT_WRITE_INPUTS elements holds
 * what it points to. */
ort_attr ort_write_attr(ort_writer *w, const ort_op *op, const ort_text_attr *a, int64_t *list);
/* The element type that a number has as input `slot`: ORT_DTYPE_UNDEFINED when the others don't
 * say. */
ort_dtype ort_write_number_type(const ort_writer *w, const ort_op *op, const ort_id *inputs,
                                int count, int slot);
/* 0.5, or a $n that stands for a number; [0 1], or a $n that stands for a list. */
bool ort_write_is_number(const ort_writer *w, const ort_term *t);
bool ort_write_is_list(const ort_writer *w, const ort_term *t);
double ort_write_term_number(const ort_writer *w, const ort_term *t); /* of the first kind */
/* A scalar of this type, UNDEFINED: of writer->like's. */
ort_id ort_write_number(ort_writer *w, const ort_term *t, ort_dtype dtype);
/* The numbers of "[0 $n -1]", which go to `list` of ORT_WRITE_INPUTS, or of a list that has a
 * name. */
const int64_t *ort_write_list(const ort_writer *w, const ort_term *t, int64_t *list, int *count);
/* A list or number that this version of the operator has as an attribute, as axes and bounds were:
 * that attribute. False: it is an input. */
bool ort_write_attribute_of(const ort_writer *w, const ort_term *t, const ort_op *op, int slot,
                            ort_attr *attr, int64_t *list);

#endif
