/* squashed.c - outputs followed back through the nodes that the report of a model lists. */
#include "squashed.h"

#include <string.h>

#include "common/look.h"

static bool is_one_of(const char *op_type, const char *const *list)
{
    for (; *list != NULL; list++)
        if (!strcmp(op_type, *list))
            return true;
    return false;
}

static int read_nodes(ort_model *model, json_object **nodes)
{
    ort_error err = {0};
    char *text = NULL;
    if (ort_model_report(model, ORT_REPORT_NODES, &text, &err) != ORT_OK)
        return tool_fail(&err);
    json_object *report = json_tokener_parse(text);
    *nodes = json_object_get(member(report, "nodes"));
    json_object_put(report);
    ort_text_free(text);
    return 0;
}

static const char *name_at(json_object *list, size_t i)
{
    return json_object_get_string(json_object_array_get_idx(list, i));
}

/* The node that gives a value, or NULL. */
static json_object *source_of(json_object *nodes, const char *value)
{
    for (size_t i = 0; i < length_of(nodes); i++) {
        json_object *node = json_object_array_get_idx(nodes, i);
        json_object *outputs = member(node, "outputs");
        for (size_t o = 0; o < length_of(outputs); o++)
            if (!strcmp(name_at(outputs, o), value))
                return node;
    }
    return NULL;
}

/* The value that a node computes from, where that is one and no constant. */
static const char *read_by(json_object *nodes, json_object *node)
{
    json_object *inputs = member(node, "inputs");
    const char *first = length_of(inputs) > 0 ? name_at(inputs, 0) : "";
    const char *second = length_of(inputs) > 1 ? name_at(inputs, 1) : "";
    return source_of(nodes, first) == NULL && source_of(nodes, second) != NULL ? second : first;
}

/* What the nearest node behind a value reads that is of `wanted`, with only such of `passed`
 * between; "": there is none. */
static const char *followed(json_object *nodes, const char *value, const char *const *wanted,
                            const char *const *passed, bool *is_row)
{
    json_object *node = source_of(nodes, value);
    for (size_t left = length_of(nodes); node != NULL && left > 0; left--) {
        const char *op_type = text_of(node, "op_type");
        *is_row = strstr(op_type, "Softmax") != NULL;
        if (is_one_of(op_type, wanted))
            return read_by(nodes, node);
        if (!is_one_of(op_type, passed))
            return "";
        node = source_of(nodes, read_by(nodes, node));
    }
    return "";
}

static bool is_computed(json_object *nodes, json_object *theirs, const char *name)
{
    return name[0] && source_of(nodes, name) != NULL && source_of(theirs, name) != NULL;
}

/* What the product behind logits reads, a bias between aside: its many numbers say more than the
 * few of logits, whose errors are chance. "" where no product gives them. */
static const char *features_of(json_object *nodes, const char *logits)
{
    json_object *node = source_of(nodes, logits);
    if (node != NULL && !strcmp(text_of(node, "op_type"), "Add"))
        node = source_of(nodes, read_by(nodes, node));
    const char *op_type = node != NULL ? text_of(node, "op_type") : "";
    return !strcmp(op_type, "Gemm") || !strcmp(op_type, "MatMul") ? read_by(nodes, node) : "";
}

static bool is_logarithm(json_object *nodes, const char *output)
{
    json_object *node = source_of(nodes, output);
    return node != NULL && !strcmp(text_of(node, "op_type"), "LogSoftmax");
}

void squashed_release(squashed *found)
{
    string_list_release(&found->names);
    string_list_release(&found->rows);
    string_list_release(&found->replaced);
    string_list_release(&found->answers);
    string_list_release(&found->features);
}

int squashed_find(ort_model *floats, ort_model *other, const string_list *outputs,
                  squashed *found)
{
    static const char *const ends[] = {"Softmax", "LogSoftmax", "Sigmoid", NULL};
    static const char *const moves[] = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze",
                                        "Transpose", "Cast", NULL};
    json_object *nodes = NULL, *theirs = NULL;
    int status = read_nodes(floats, &nodes);
    if (status == 0)
        status = read_nodes(other, &theirs);
    for (size_t i = 0; i < outputs->count && status == 0; i++) {
        bool is_row = false;
        const char *read = followed(nodes, outputs->items[i], ends, moves, &is_row);
        if (!is_computed(nodes, theirs, read))
            continue;
        string_list_add(&found->replaced, outputs->items[i]);
        string_list_add(&found->names, read);
        if (is_row)
            string_list_add(&found->rows, read);
        if (is_row && !is_logarithm(nodes, outputs->items[i]))
            string_list_add(&found->answers, outputs->items[i]);
        read = features_of(nodes, read);
        if (is_row && is_computed(nodes, theirs, read))
            string_list_add(&found->features, read);
    }
    json_object_put(nodes);
    json_object_put(theirs);
    return status;
}

ort_value *squashed_centered(const ort_value *value)
{
    ort_value *made = NULL;
    ort_error err = {0};
    const int rank = ort_value_rank(value);
    if (ort_value_dtype(value) != ORT_DTYPE_FLOAT || rank == 0 ||
        ort_value_new_tensor(ORT_DTYPE_FLOAT, rank, ort_value_dims(value), &made, &err) != ORT_OK)
        return NULL;
    const int64_t count = ort_value_count(value), row = ort_value_dims(value)[rank - 1];
    const float *from = ort_value_data((ort_value *)value);
    float *to = ort_value_data(made);
    for (int64_t first = 0; first < count; first += row) {
        double mean = 0;
        for (int64_t i = first; i < first + row; i++)
            mean += (double)from[i] / (double)row;
        for (int64_t i = first; i < first + row; i++)
            to[i] = (float)((double)from[i] - mean);
    }
    return made;
}
