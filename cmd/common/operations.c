/* operations.c - the list of operations: made by options, run over values. */
#include "common/operations.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    operation_fn *apply;
} known[] = {
    {"resize", apply_resize},     {"crop", apply_crop},           {"pad", apply_pad},
    {"letterbox", apply_letterbox},
    {"layout", apply_layout},     {"float", apply_normalize},     {"scale", apply_scale},
    {"gray", apply_gray},         {"bgr", apply_bgr},             {"cast", apply_cast},
    {"reshape", apply_reshape},   {"transpose", apply_transpose}, {"slice", apply_slice},
    {"argmax", apply_argmax},     {"softmax", apply_softmax},     {"squeeze", apply_squeeze},
    {"unsqueeze", apply_unsqueeze}, {"mono", apply_mono},         {"rate", apply_rate},
    {"mean", apply_normalize},    {"std", apply_normalize},
};

static void push(operations *o, operation_fn *apply, const char *name, const char *argument)
{
    o->items = realloc(o->items, (o->count + 1) * sizeof *o->items);
    if (o->items == NULL)
        tool_alloc(SIZE_MAX / 2);
    o->items[o->count++] = (operation){apply, tool_printf("--%s", name), argument, NULL};
}

/* --mean and --std together are one operation, where the first of them stands. */
static bool joins(operations *o, const char *name, const char *value)
{
    bool mean = !strcmp(name, "mean");
    if (!mean && strcmp(name, "std"))
        return false;
    bool second = o->normalizes;
    o->normalizes = true;
    *(mean ? &o->mean : &o->std) = value;
    return second;
}

int operations_add(void *target, const option_row *row, const char *value)
{
    operations *o = (operations *)((char *)target + row->offset);
    bool normal = !strcmp(row->name, "mean") || !strcmp(row->name, "std");
    if (joins(o, row->name, value))
        return 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, row->name))
            push(o, known[i].apply, row->name, normal ? NULL : value);
    return 0;
}

void operations_release(operations *o)
{
    for (size_t i = 0; i < o->count; i++)
        free((char *)o->items[i].option);
    free(o->items);
    ort_env_free(o->env);
    o->items = NULL;
    o->env = NULL;
    o->count = 0;
}

int operations_apply(operations *o, const ort_value *in, ort_value **out)
{
    ort_value *present = NULL;
    int status = 0;
    bool sound = o->rate > 0 && ort_value_rank(in) == 2 && !o->keep_channels;
    if (sound)
        status = apply_mono(o, &(operation){.option = "--mono", .place = o->place}, in, &present);
    for (size_t i = 0; i < o->count && status == 0; i++) {
        ort_value *next = NULL;
        operation *op = &o->items[i];
        op->place = o->place;
        if (ort_value_get_kind(in) != ORT_VALUE_TENSOR)
            status = bad_value(op, in, "a tensor");
        else
            status = op->apply(o, op, present != NULL ? present : in, &next);
        ort_value_free(present);
        present = next;
    }
    *out = present;
    return status;
}
