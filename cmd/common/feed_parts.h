/* feed_parts.h - the pieces of a feed (feed.h), for the files that it is made of. */
#ifndef COMMON_FEED_PARTS_H
#define COMMON_FEED_PARTS_H

#include "common/feed.h"

/* Values without names go to these inputs, in order: those still open first. The caller frees. */
ort_purpose *feed_open_purposes(const feed *f);
/* The columns of --id and --drop, for the reading of a table. */
void feed_choose_columns(feed *f, ort_read_options *options);
/* A file, or a test data set. */
int feed_load(feed *f, const char *path, ort_tensors **tensors);
/* ... for one input alone, and which of its values is meant (borrowed). */
int feed_load_named(feed *f, size_t index, const char *path, ort_tensors **tensors);
int feed_pick(const feed *f, const ort_tensors *tensors, size_t index, const char *path,
              ort_value **value);
/* What the command line makes of a value; *changed is NULL where that is the value itself. */
int feed_change(const feed *f, const ort_tensors *from, const char *place, const ort_value *value,
                ort_value **changed);
/* Is this a required input without a value? */
bool feed_wants_value(const feed *f, ort_value *const *slots, size_t index);
int feed_given_twice(const feed *f, size_t index, const char *label);
/* Spread the values of one file over `slots` (borrowed references). */
int feed_assign(feed *f, const ort_tensors *tensors, const char *label, ort_value **slots);
/* The value of an input in every run, which the feed shares. */
int feed_fix(feed *f, size_t index, ort_value *value);
int feed_open_stream(feed *f, const char *path);

#endif
