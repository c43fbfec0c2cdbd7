/* folder.h - folders of inputs: each file in one is the inputs of a run, or each test data set. */
#ifndef COMMON_FOLDER_H
#define COMMON_FOLDER_H

#include "common/tool.h"

bool folder_is(const char *path);
/* A test data set: input_0.pb, input_1.pb and so on for a model of so many inputs; an empty folder
 * and one that can't be read pass for one. */
bool folder_is_set(const char *path, size_t inputs);
/* The sets in a folder and below it, sorted by name; without one the files, which are of one kind
 * (of any where `format` says what they are). Hidden ones are left out. 0 or an exit status. */
int folder_list(const char *path, size_t inputs, ort_format format, string_list *items);

#endif
