/* labels.h - names of classes, a line each. */
#ifndef COMMON_LABELS_H
#define COMMON_LABELS_H

#include "common/tool.h"

/* Add the lines of a file ("-": stdin); path NULL adds none. 0 or an exit status, said. */
int labels_load(const char *path, string_list *labels);

#endif
