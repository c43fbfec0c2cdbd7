/* ranges.c - samples handed to a quantizer, and files of ranges read. */
#include "ranges.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words */

static void list_observers(char *text, size_t room)
{
    const char *name;
    for (int i = 0; (name = ort_observer_name((ort_observer)i, NULL)) != NULL; i++) {
        size_t used = strlen(text);
        snprintf(text + used, room - used, "%s%s", used > 0 ? "|" : "", name);
    }
}

static int find_observer(const char *word)
{
    const char *name;
    for (int i = 0; (name = ort_observer_name((ort_observer)i, NULL)) != NULL; i++)
        if (!strcmp(name, word))
            return i;
    return -1;
}

static bool is_observer(const char *word) { return find_observer(word) >= 0; }

const option_words observer_words = {list_observers, is_observer};

ort_observer observer_named(const char *word, ort_observer otherwise)
{
    return word != NULL && is_observer(word) ? (ort_observer)find_observer(word) : otherwise;
}

/* ---- files */

static char *read_all(FILE *f, size_t *size)
{
    size_t room = 1 << 16;
    char *text = tool_alloc(room);
    *size = 0;
    for (size_t n; (n = fread(text + *size, 1, room - *size, f)) > 0;) {
        *size += n;
        if (*size < room)
            continue;
        char *larger = tool_alloc(2 * room);
        memcpy(larger, text, room);
        free(text);
        text = larger;
        room *= 2;
    }
    return text;
}

int ranges_read(FILE *f, const char *name, ort_ranges *ranges)
{
    ort_error err = {0};
    size_t size;
    char *text = read_all(f, &size);
    int status = 0;
    if (ferror(f))
        status = tool_error(ORT_ERROR_IO, "%s: can't be read: %s", name, strerror(errno));
    else if (ort_ranges_read(ranges, text, size, name, &err) != ORT_OK)
        status = tool_fail(&err);
    free(text);
    return status;
}

static int load_one(const char *path, ort_ranges *ranges)
{
    if (!strcmp(path, "-"))
        return ranges_read(stdin, "stdin", ranges);
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return tool_error(ORT_ERROR_IO, "%s: can't be read: %s", path, strerror(errno));
    int status = ranges_read(f, path, ranges);
    fclose(f);
    return status;
}

int ranges_load(const string_list *files, ort_ranges **ranges)
{
    ort_error err = {0};
    if (ort_ranges_new(ranges, &err) != ORT_OK)
        return tool_fail(&err);
    int status = 0;
    for (size_t i = 0; i < files->count && status == 0; i++)
        status = load_one(files->items[i], *ranges);
    return status;
}

/* ---- learning */

typedef struct learner {
    const quantizing *q;
    ort_quantizer *quantizer;
} learner;

static ort_status see(void *arg, ort_value *const *inputs, size_t count, ort_error *err)
{
    const learner *l = arg;
    return is_held_out(l->q, l->q->samples.at - 1)
               ? ORT_OK
               : ort_quantizer_calibrate(l->quantizer, inputs, count, err);
}

void ranges_tell(quantizing *q, const ort_ranges *ranges)
{
    uint64_t made_up = 0, all = ort_ranges_samples(ranges, &made_up);
    snprintf(q->ranges_of, sizeof q->ranges_of,
             "ranges of %" PRIu64 ", %" PRIu64 " of them made up", all, made_up);
}

static int use_files(quantizing *q, ort_quantizer *quantizer)
{
    const string_list *files = &q->options.ranges;
    ort_ranges *ranges = NULL;
    ort_error err = {0};
    uint64_t made_up = 0;
    int status = ranges_load(files, &ranges);
    if (status == 0 && ort_quantizer_use_ranges(quantizer, ranges,
                                                files->count == 1 ? files->items[0] : "--ranges",
                                                &err) != ORT_OK)
        status = tool_fail(&err);
    uint64_t all = ort_ranges_samples(ranges, &made_up);
    const char *tier = ort_ranges_tier(ranges);
    snprintf(q->tier, sizeof q->tier, "%s", tier ? tier : "");
    ranges_tell(q, ranges);
    if (status == 0 && made_up > 0)
        tool_warn("--ranges: %" PRIu64 " of %" PRIu64 " samples were made up", made_up, all);
    ort_ranges_free(ranges);
    return status;
}

int ranges_smooth(quantizing *q, ort_quantizer *quantizer)
{
    ort_error err = {0};
    int status = each_sample(q, "channels", see, &(learner){q, quantizer});
    return status == 0 && ort_quantizer_smooth(quantizer, &err) != ORT_OK
               ? tool_fail_in(q->path, &err)
               : status;
}

int ranges_learn(quantizing *q, ort_quantizer *quantizer)
{
    return q->options.ranges.count > 0
               ? use_files(q, quantizer)
               : each_sample(q, "calibrating", see, &(learner){q, quantizer});
}
