/* stamp_made.c - the file says how it was made: the options that belong to its verb, and the
 * samples that decided. What a rewriting of the library has said itself is left as it is.
 */
#include <stdlib.h>
#include <string.h>

#include "quantize.h"

/* Names of files are no part of how it was made. What the first three hold is in q->choice, what
 * the next holds in q->ranges_of; what --auto found is there as if these had been given. */
static bool told_elsewhere(const option_row *row)
{
    static const char *const names[] = {"exclude-from", "include-from", "overrides", "ranges",
                                        "auto", "assignment", "plot"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(row->name, names[i]))
            return true;
    return false;
}

static bool belongs(const option_row *row, const char *verb)
{
    const bool tells = row->verbs != NULL && !row->gate && !told_elsewhere(row);
    const char *at = tells ? strstr(row->verbs, verb) : NULL;
    size_t length = strlen(verb);
    return at != NULL && (at == row->verbs || at[-1] == '|') &&
           (at[length] == '\0' || at[length] == '|');
}

/* " --name VALUE" of an option that was given. */
static char *words_of(const option_row *row, const void *field)
{
    switch (row->kind) {
    case OPTION_FLAG:
        return *(const bool *)field ? tool_printf(" --%s", row->name) : NULL;
    case OPTION_STRING:
        return *(const char *const *)field
                   ? tool_printf(" --%s %s", row->name, *(const char *const *)field)
                   : NULL;
    case OPTION_INT:
        return *(const int64_t *)field > 0
                   ? tool_printf(" --%s %lld", row->name, (long long)*(const int64_t *)field)
                   : NULL;
    case OPTION_DOUBLE:
        return *(const double *)field > 0
                   ? tool_printf(" --%s %.9g", row->name, *(const double *)field)
                   : NULL;
    default:
        return NULL;
    }
}

static char *options_text(const quantizing *q)
{
    char *text = tool_strdup("");
    for (const option_row *row = q->rows; row->name != NULL; row++) {
        char *words = belongs(row, q->options.verb)
                          ? words_of(row, (const char *)&q->options + row->offset)
                          : NULL;
        if (words == NULL)
            continue;
        char *longer = tool_printf("%s%s", text, *text ? words : words + 1);
        free(text);
        free(words);
        text = longer;
    }
    if (q->choice != NULL) {
        char *longer = tool_printf("%s%s%s", text, *text ? " " : "", q->choice);
        free(text);
        text = longer;
    }
    return text;
}

/* NULL: none was looked at. */
static char *samples_text(const quantizing *q)
{
    const char *digest = samples_digest(&q->samples);
    if (q->ranges_of[0] != '\0')
        return tool_strdup(q->ranges_of);
    if (digest == NULL)
        return NULL;
    return q->samples.random
               ? tool_printf("%zu made up by --random %s, digest %s", q->samples.at,
                             q->options.random, digest)
               : tool_printf("%zu, digest %s", q->samples.at, digest);
}

static bool says_already(const quantizing *q)
{
    char *key = tool_printf("ort.quantize.%s", q->options.verb);
    const char *now = ort_model_property(q->made, key);
    const char *before = q->original != NULL ? ort_model_property(q->original, key) : NULL;
    bool says = now != NULL && (before == NULL || strcmp(now, before));
    free(key);
    return says;
}

int stamp_made(quantizing *q)
{
    ort_error err = {0};
    if (q->options.verb == NULL || says_already(q))
        return 0;
    char *options = options_text(q), *seen = samples_text(q);
    const char *tier = q->tier[0] != '\0' ? q->tier : seen != NULL ? ort_quantize_tier() : NULL;
    ort_status status = ort_model_stamp_quantized(q->made, q->options.verb, options, seen, tier,
                                                  &err);
    free(options);
    free(seen);
    return status == ORT_OK ? 0 : tool_fail(&err);
}
