/* verb_suggest.c - ort-quantize suggest: which verb suits the model, and why; and what the tool
 * does where no verb is given: that.
 */
#include <stdlib.h>
#include <string.h>

#include "common/look.h"
#include "common/screen.h"
#include "quantize.h"
#include "suggest.h"

static int load(quantizing *q, suggestion *s)
{
    ort_model *model = NULL;
    bool stream = !strcmp(q->path, "-"); /* is read once: what comes is kept for the verb */
    int status = settings_load_model(&q->options.settings, q->env, q->path,
                                     stream ? LOAD_ALL : LOAD_SKELETON, &model);
    if (status == 0)
        status = suggest(model, s);
    if (stream && status == 0)
        q->original = model;
    else
        ort_model_free(model);
    return status;
}

/* As it is typed. The caller frees it. */
static char *command_of(const quantizing *q, const suggestion *s)
{
    const char *input = !strcmp(s->verb, "static") ? " -i SAMPLES" : "";
    return tool_printf("ort-quantize %s %s%s%s%s -o OUTPUT", s->verb, q->path,
                       *s->options ? " " : "", s->options, input);
}

static void print_text(const quantizing *q, const suggestion *s)
{
    if (s->verb) {
        char *command = command_of(q, s);
        screen_printf(stdout, "%s\n", command);
        free(command);
    } else {
        screen_printf(stdout, "leave %s as it is\n", q->path);
    }
    for (size_t i = 0; i < s->reasons.count; i++)
        screen_printf(stdout, "  %s\n", s->reasons.items[i]);
}

static void add(json_object *to, const char *key, json_object *value)
{
    json_object_object_add(to, key, value);
}

static json_object *facts_json(const facts *f)
{
    static const char *const names[WORK_KINDS] = {"convolution", "matrix_product", "lstm",
                                                  "gru_rnn", "trees"};
    json_object *j = json_object_new_object(), *work = json_object_new_object();
    for (int i = 0; i < WORK_KINDS; i++) {
        json_object *kind = json_object_new_object();
        add(kind, "nodes", json_object_new_int64((int64_t)f->work[i].nodes));
        add(kind, "in_bodies", json_object_new_int64((int64_t)f->work[i].in_bodies));
        add(kind, "macs", json_object_new_int64((int64_t)f->work[i].macs));
        add(work, names[i], kind);
    }
    add(j, "work", work);
    add(j, "weight_bytes", json_object_new_int64((int64_t)f->weight_bytes));
    add(j, "code_bytes", json_object_new_int64((int64_t)f->code_bytes));
    add(j, "half_bytes", json_object_new_int64((int64_t)f->half_bytes));
    add(j, "open_sizes", json_object_new_boolean(f->open));
    add(j, "cache", f->cache ? json_object_new_string(f->cache) : NULL);
    return j;
}

static void print_json(const quantizing *q, const suggestion *s)
{
    json_object *j = json_object_new_object(), *reasons = json_object_new_array();
    add(j, "schema", json_object_new_string("ort-quantize/1"));
    add(j, "model", json_object_new_string(q->path));
    add(j, "verb", json_object_new_string("suggest"));
    add(j, "suggested", s->verb ? json_object_new_string(s->verb) : NULL);
    char *command = s->verb ? command_of(q, s) : NULL;
    add(j, "options", json_object_new_string(s->options));
    add(j, "command", command ? json_object_new_string(command) : NULL);
    free(command);
    for (size_t i = 0; i < s->reasons.count; i++)
        json_object_array_add(reasons, json_object_new_string(s->reasons.items[i]));
    add(j, "reasons", reasons);
    add(j, "facts", facts_json(&s->facts));
    tool_reported();
    printf("%s\n", json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY |
                                                     JSON_C_TO_STRING_SPACED |
                                                     JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(j);
}

int verb_suggest(quantizing *q)
{
    suggestion s = {0};
    if (q->options.output)
        return tool_usage("-o: 'suggest' writes no model");
    int status = load(q, &s);
    if (status == 0 && q->options.settings.json)
        print_json(q, &s);
    else if (status == 0)
        print_text(q, &s);
    suggestion_release(&s);
    return status;
}

/* The words of its options are constants of this tool, without values that hold spaces. */
static int take_options(quantizing *q, const suggestion *s)
{
    if (!strcmp(s->options, "--bits 4"))
        return 0; /* what 'weights' does by default */
    return *s->options ? tool_usage("this model asks for options: ort-quantize %s %s %s", s->verb,
                                    q->path, s->options)
                       : 0;
}

int suggest_verb(quantizing *q)
{
    suggestion s = {0};
    int status = load(q, &s);
    if (status == 0 && s.verb == NULL)
        status = tool_usage("no verb suits %s: %s; a verb before it quantizes it all the same",
                            q->path, s.reasons.items[0]);
    if (status == 0)
        status = take_options(q, &s);
    if (status == 0) {
        q->options.verb = s.verb;
        if (!q->options.settings.quiet)
            fprintf(stderr, "ort-quantize: %s, as no verb is given: %s\n", s.verb,
                    s.reasons.items[0]);
    }
    suggestion_release(&s);
    return status;
}
