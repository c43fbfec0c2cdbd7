/* operation.c - what operations share: their environment, their arguments, their complaints. */
#include "common/operations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int operations_env(operations *o, ort_env **env)
{
    int status = o->env != NULL ? 0 : settings_new_env(o->settings, &o->env);
    *env = o->env;
    return status;
}

int bad_value(const operation *op, const ort_value *in, const char *needs)
{
    char shape[200] = "";
    for (int i = 0; i < ort_value_rank(in) && ort_value_get_kind(in) == ORT_VALUE_TENSOR; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i > 0 ? "x" : "",
                 (long long)ort_value_dims(in)[i]);
    const char *place = op->place != NULL ? op->place : "", *behind = *place ? ": " : "";
    if (ort_value_get_kind(in) == ORT_VALUE_TENSOR)
        return tool_error(ORT_ERROR_DATA, "%s%s%s%s%s: the value is %s [%s], needs %s", place,
                          behind, op->option, op->argument != NULL ? " " : "",
                          op->argument != NULL ? op->argument : "",
                          ort_dtype_name(ort_value_dtype(in)), shape, needs);
    return tool_error(ORT_ERROR_DATA, "%s%s%s: the value is no tensor, needs %s", place, behind,
                      op->option, needs);
}

int parse_numbers(const char *option, const char *text, double *out, int capacity)
{
    int n = 0;
    for (const char *p = text;; p++) {
        char *end;
        double v = strtod(p, &end);
        if (*end == '/' && end != p) {
            char *stop;
            double d = strtod(end + 1, &stop);
            v = stop != end + 1 && d != 0 ? v / d : NAN;
            end = stop;
        }
        if (end == p || isnan(v) || n == capacity || (*end != ',' && *end != '\0')) {
            tool_usage("%s: '%s' is no list of up to %d numbers", option, text, capacity);
            return -1;
        }
        out[n++] = v;
        p = end;
        if (*p == '\0')
            return n;
    }
}
