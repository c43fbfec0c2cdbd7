/* code_rules.c - "ort-overrides/1" read: a table of keys, each with what its value may be. */
#include "quantize/place/code_rules.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "quantize/code_types.h"
#include "quantize/node_names.h"
#include "quantize/seen/range.h"

#define SCHEMA "ort-overrides/1"

typedef struct json_object json_node;

/* Where in the text, for messages. */
typedef struct place {
    size_t index;
    const char *key;
} place;

static ort_status refuse(const place *at, json_node *node, const char *allowed, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_USAGE, "overrides[%zu]: \"%s\" is %.60s; allowed: %s",
                         at->index, at->key,
                         json_object_to_json_string_ext(node, JSON_C_TO_STRING_NOSLASHESCAPE),
                         allowed);
}

/* ---- values of keys */

static ort_status read_flag(const place *at, json_node *node, signed char *flag, ort_error *err)
{
    if (!json_object_is_type(node, json_type_boolean))
        return refuse(at, node, "true, false", err);
    *flag = (signed char)json_object_get_boolean(node);
    return ORT_OK;
}

static ort_status read_type(const place *at, json_node *node, bool floats, ort_dtype *type,
                            ort_error *err)
{
    const char *text = json_object_get_string(node);
    ort_dtype dtype = text && json_object_is_type(node, json_type_string)
                          ? ort_dtype_parse(text) : ORT_DTYPE_UNDEFINED;
    if (!ort_codes_opset(dtype) &&
        !(floats && (dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_FLOAT16)))
        return refuse(at, node, floats ? ORT_CODE_TYPES ", float16, float" : ORT_CODE_TYPES, err);
    *type = dtype;
    return ORT_OK;
}

static ort_status read_observer(const place *at, json_node *node, signed char *observer,
                                ort_error *err)
{
    const char *text = json_object_get_string(node);
    char names[100] = "";
    const ort_observer_row *row;
    for (int i = 0; (row = ort_observer_find((ort_observer)i)); i++) {
        size_t length = strlen(names);
        if (row->kept == ORT_KEPT_AVERAGES) /* of all values, or of none */
            continue;
        snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", row->name);
        if (text && !strcmp(text, row->name)) {
            *observer = (signed char)i;
            return ORT_OK;
        }
    }
    return refuse(at, node, names, err);
}

static bool is_number(json_node *node)
{
    return json_object_is_type(node, json_type_double) || json_object_is_type(node, json_type_int);
}

static ort_status read_percentile(const place *at, json_node *node, double *percentile,
                                  ort_error *err)
{
    double p = is_number(node) ? json_object_get_double(node) : 0;
    if (!(p > 0 && p <= 100))
        return refuse(at, node, "a number above 0, at most 100", err);
    *percentile = p;
    return ORT_OK;
}

static ort_status read_range(const place *at, json_node *node, ort_code_spec *spec, ort_error *err)
{
    static const char allowed[] = "[least, most], finite, least <= 0 <= most, not both 0";
    double ends[2] = {0, 0};
    if (!json_object_is_type(node, json_type_array) || json_object_array_length(node) != 2)
        return refuse(at, node, allowed, err);
    for (size_t i = 0; i < 2; i++) {
        json_node *end = json_object_array_get_idx(node, i);
        ends[i] = is_number(end) ? json_object_get_double(end) : (double)NAN;
    }
    if (!(fabs(ends[0]) <= 3e38 && fabs(ends[1]) <= 3e38 && ends[0] <= 0 && ends[1] >= 0 &&
          ends[1] > ends[0]))
        return refuse(at, node, allowed, err);
    spec->has_range = true;
    spec->least = (float)ends[0];
    spec->most = (float)ends[1];
    return ORT_OK;
}

/* ---- keys */

static const char *const keys[] = {
    "node", "operator", "value", "type", "weights", "symmetric", "symmetric_weights", "per_channel",
    "reduce_range", "observer", "percentile", "range",
};

static ort_status unknown_key(const place *at, ort_error *err)
{
    char near[300];
    ort_nearest n;
    ort_nearest_begin(&n, at->key);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ort_nearest_try(&n, keys[i]);
    return ort_error_set(err, ORT_ERROR_USAGE, "overrides[%zu]: no key \"%.60s\"%s; keys: node, "
                         "operator, value, type, weights, symmetric, symmetric_weights, "
                         "per_channel, reduce_range, observer, percentile, range", at->index,
                         at->key, ort_nearest_text(&n, near, sizeof near));
}

static ort_status read_pattern(const place *at, json_node *node, ort_rule_of of,
                               ort_code_rule *rule, ort_error *err)
{
    if (!json_object_is_type(node, json_type_string))
        return refuse(at, node, "a name, with * and ?", err);
    if (rule->pattern)
        return ort_error_set(err, ORT_ERROR_USAGE, "overrides[%zu]: one of \"node\", \"operator\" "
                             "and \"value\", not two", at->index);
    rule->of = of;
    rule->pattern = strdup(json_object_get_string(node));
    return rule->pattern ? ORT_OK : ort_error_memory(err, 1);
}

static ort_status read_member(const place *at, json_node *node, ort_code_rule *rule,
                              ort_error *err)
{
    ort_code_spec *s = &rule->spec;
    const char *key = at->key;
    for (int i = 0; i < 3; i++)
        if (!strcmp(key, keys[i]))
            return read_pattern(at, node, (const ort_rule_of[]){ORT_RULE_NODE, ORT_RULE_OPERATOR,
                                                                ORT_RULE_VALUE}[i], rule, err);
    if (!strcmp(key, "type"))
        return read_type(at, node, true, &s->type, err);
    if (!strcmp(key, "weights"))
        return read_type(at, node, false, &s->weights, err);
    if (!strcmp(key, "symmetric"))
        return read_flag(at, node, &s->symmetric, err);
    if (!strcmp(key, "symmetric_weights"))
        return read_flag(at, node, &s->symmetric_weights, err);
    if (!strcmp(key, "per_channel"))
        return read_flag(at, node, &s->per_channel, err);
    if (!strcmp(key, "reduce_range"))
        return read_flag(at, node, &s->reduce_range, err);
    if (!strcmp(key, "observer"))
        return read_observer(at, node, &s->observer, err);
    if (!strcmp(key, "percentile"))
        return read_percentile(at, node, &s->percentile, err);
    if (!strcmp(key, "range"))
        return read_range(at, node, s, err);
    return unknown_key(at, err);
}

/* What a value can't have. */
static ort_status check_rule(const ort_code_rule *rule, size_t index, ort_error *err)
{
    const ort_code_spec *s = &rule->spec;
    if (!rule->pattern)
        return ort_error_set(err, ORT_ERROR_USAGE, "overrides[%zu]: it names nothing: one of "
                             "\"node\", \"operator\" and \"value\" is needed", index);
    if (rule->of == ORT_RULE_VALUE &&
        (s->weights || s->per_channel >= 0 || s->symmetric_weights >= 0))
        return ort_error_set(err, ORT_ERROR_USAGE, "overrides[%zu]: \"weights\", \"per_channel\" "
                             "and \"symmetric_weights\" are of nodes, not of values", index);
    if (rule->of == ORT_RULE_VALUE && s->type == ORT_DTYPE_FLOAT16)
        return ort_error_set(err, ORT_ERROR_USAGE, "overrides[%zu]: \"float16\" is what nodes "
                             "compute in, not what values are", index);
    return ORT_OK;
}

static ort_status read_rule(json_node *node, size_t index, ort_code_rules *rules, ort_error *err)
{
    ort_code_rule rule = {.spec = ORT_CODE_SPEC_NONE};
    ort_status status = ORT_OK;
    if (!json_object_is_type(node, json_type_object))
        return ort_error_set(err, ORT_ERROR_USAGE, "overrides[%zu] is no object", index);
    json_object_object_foreach(node, key, member) {
        place at = {index, key};
        if (status == ORT_OK)
            status = read_member(&at, member, &rule, err);
    }
    if (status == ORT_OK)
        status = check_rule(&rule, index, err);
    if (status == ORT_OK && !ort_vec_push(&rules->list, rule))
        status = ort_error_memory(err, sizeof rule);
    if (status != ORT_OK)
        free(rule.pattern);
    return status;
}

static ort_status read_top(json_node *root, ort_code_rules *rules, ort_error *err)
{
    json_node *schema = NULL, *list = NULL;
    if (!json_object_is_type(root, json_type_object) ||
        !json_object_object_get_ex(root, "schema", &schema) ||
        !json_object_is_type(schema, json_type_string) ||
        strcmp(json_object_get_string(schema), SCHEMA))
        return ort_error_set(err, ORT_ERROR_USAGE, "overrides: no object whose \"schema\" is \""
                             SCHEMA "\"");
    json_object_object_foreach(root, key, member) {
        if (!strcmp(key, "overrides"))
            list = member;
        else if (strcmp(key, "schema"))
            return ort_error_set(err, ORT_ERROR_USAGE, "overrides: no key \"%.60s\" beside "
                                 "\"schema\" and \"overrides\"", key);
    }
    if (!json_object_is_type(list, json_type_array))
        return ort_error_set(err, ORT_ERROR_USAGE, "overrides: \"overrides\" is no list");
    for (size_t i = 0; i < json_object_array_length(list); i++)
        ORT_TRY(read_rule(json_object_array_get_idx(list, i), i, rules, err));
    return ORT_OK;
}

ort_status ort_code_rules_parse(const char *text, ort_code_rules *rules, ort_error *err)
{
    enum json_tokener_error problem;
    if (!text)
        return ORT_OK;
    json_node *root = json_tokener_parse_verbose(text, &problem);
    if (problem != json_tokener_success)
        return ort_error_set(err, ORT_ERROR_USAGE, "overrides: no JSON (%s)",
                             json_tokener_error_desc(problem));
    ort_status status = read_top(root, rules, err);
    json_object_put(root);
    return status;
}

void ort_code_rules_release(ort_code_rules *rules)
{
    for (size_t i = 0; i < rules->list.count; i++)
        free(rules->list.data[i].pattern);
    ort_vec_release(&rules->list);
}

bool ort_code_rules_observe(const ort_code_rules *rules)
{
    for (size_t i = 0; i < rules->list.count; i++)
        if (rules->list.data[i].spec.observer > ORT_OBSERVE_MIN_MAX)
            return true;
    return false;
}

bool ort_code_rule_meets(const ort_code_rule *rule, const ort_node *node)
{
    if (rule->of == ORT_RULE_NODE)
        return ort_node_is_called(node, rule->pattern);
    return rule->of == ORT_RULE_OPERATOR && ort_name_matches(rule->pattern, node->op_type);
}

void ort_code_spec_join(ort_code_spec *spec, const ort_code_spec *later)
{
    spec->type = later->type ? later->type : spec->type;
    spec->weights = later->weights ? later->weights : spec->weights;
    spec->symmetric = later->symmetric >= 0 ? later->symmetric : spec->symmetric;
    spec->symmetric_weights = later->symmetric_weights >= 0 ? later->symmetric_weights
                                                            : spec->symmetric_weights;
    spec->per_channel = later->per_channel >= 0 ? later->per_channel : spec->per_channel;
    spec->reduce_range = later->reduce_range >= 0 ? later->reduce_range : spec->reduce_range;
    spec->observer = later->observer >= 0 ? later->observer : spec->observer;
    spec->percentile = later->percentile > 0 ? later->percentile : spec->percentile;
    if (later->has_range) {
        spec->has_range = true;
        spec->least = later->least;
        spec->most = later->most;
    }
}
