/* carry.c - recurrence: outputs of one step become inputs of the next, positions count up, masks
 * grow.
 *
 * Outputs that are handed on as they are are states of a binding, which starts those that nobody
 * gave (ort.h: ort_binding_set_state) and extends key/value caches in place. What an expression
 * makes of an output is computed here, between the runs.
 */
#include "common/carry.h"

#include <stdlib.h>
#include <string.h>

#include "common/feed.h"
#include "common/misfit.h"

/* ---- expressions */

int find_output(const ort_session *session, const char *name)
{
    for (size_t i = 0; i < ort_session_output_count(session); i++)
        if (!strcmp(ort_session_output_name(session, i), name))
            return (int)i;
    return -1;
}

int expression_parse(const char *text, expression *e)
{
    size_t length = strlen(text);
    memset(e, 0, sizeof *e);
    e->text = tool_strdup(text);
    if (length > 8 && !strncmp(text, "argmax(", 7) && text[length - 1] == ')') {
        e->argmax = true;
        e->name = tool_strndup(text + 7, length - 8);
    } else {
        e->name = tool_strdup(text);
    }
    return 0;
}

void expression_release(expression *e)
{
    free(e->name);
    free(e->text);
}

/* [..., positions, classes] -> [..., 1]: the best class at the last position. */
static int last_argmax(const char *text, const ort_value *v, ort_value **result)
{
    ort_error err = {0};
    int rank = ort_value_rank(v);
    const int64_t *dims = ort_value_dims(v);
    if (ort_value_get_kind(v) != ORT_VALUE_TENSOR || rank < 1 || ort_value_count(v) == 0 ||
        ort_value_dtype(v) == ORT_DTYPE_STRING) {
        return tool_error(ORT_ERROR_DATA, "%s: needs a numeric tensor that is not empty", text);
    }
    int64_t classes = dims[rank - 1], positions = rank >= 2 ? dims[rank - 2] : 1, out_dims[16];
    int64_t rows = ort_value_count(v) / (classes * positions);
    int out_rank = rank >= 2 ? rank - 1 : 1;
    for (int i = 0; i + 2 < rank; i++)
        out_dims[i] = dims[i];
    if (rank == 2) { /* [batch, classes]: every row is a last position */
        rows = positions;
        positions = 1;
        out_dims[0] = rows;
        out_dims[1] = 1;
        out_rank = 2;
    } else {
        out_dims[out_rank - 1] = 1;
    }
    if (ort_value_new_tensor(ORT_DTYPE_INT64, out_rank, out_dims, result, &err) != ORT_OK)
        return tool_fail(&err);
    int64_t *out = ort_value_data(*result);
    for (int64_t r = 0; r < rows; r++) {
        int64_t begin = (r * positions + positions - 1) * classes, best = 0;
        for (int64_t c = 1; c < classes; c++)
            if (ort_value_get_double(v, begin + c) > ort_value_get_double(v, begin + best))
                best = c;
        out[r] = best;
    }
    return 0;
}

/* A new reference, through a list (values are reference-counted by what holds them). */
static int retain(ort_value *value, ort_value **reference)
{
    ort_error err = {0};
    ort_value *holder = NULL;
    if (ort_value_new_sequence(&holder, &err) != ORT_OK ||
        ort_value_append(holder, value, &err) != ORT_OK)
        return tool_fail(&err);
    *reference = holder;
    return 0;
}

int expression_value(const expression *e, const ort_session *session, ort_value *const *outputs,
                     ort_value **value)
{
    int index = find_output(session, e->name);
    if (index < 0)
        return tool_usage("'%s' is no output of this session", e->name);
    if (e->argmax) {
        ort_value *best = NULL;
        int status = last_argmax(e->text, outputs[index], &best);
        if (status == 0)
            status = retain(best, value);
        ort_value_free(best);
        return status;
    }
    return retain(outputs[index], value);
}

/* ---- links */

static bool is_linked(const carry *c, int input)
{
    for (size_t k = 0; k < c->count; k++)
        if (c->links[k].input == input)
            return true;
    return c->is_state[input];
}

static void add_link(carry *c, const char *from, int input)
{
    c->links = realloc(c->links, (c->count + 1) * sizeof *c->links);
    if (c->links == NULL)
        tool_alloc(SIZE_MAX / 2);
    expression_parse(from, &c->links[c->count].from);
    c->links[c->count++].input = input;
}

static int check_link(const ort_session *session, const char *from, const char *to, carry *c)
{
    expression e;
    ort_error err = {0};
    int input = feed_input_index(session, to);
    if (input < 0)
        return EXIT_USAGE;
    expression_parse(from, &e);
    if (find_output(session, e.name) < 0) {
        char list[1500] = "";
        for (size_t i = 0; i < ort_session_output_count(session) && strlen(list) < 1300; i++)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s'%s'", i > 0 ? ", " : "",
                     ort_session_output_name(session, i));
        tool_usage("--carry: the model has no output '%s'; its outputs are %s", e.name, list);
        expression_release(&e);
        return EXIT_USAGE;
    }
    if (is_linked(c, input)) {
        expression_release(&e);
        return tool_usage("--carry: input '%s' is fed twice, one output can be carried to it", to);
    }
    if (!e.argmax) {
        c->is_state[input] = true;
        c->source[input] = find_output(session, e.name);
        c->states++;
    }
    bool refused = !e.argmax && ort_binding_set_state(c->binding, to, e.name, &err) != ORT_OK;
    expression_release(&e);
    if (refused)
        return tool_usage("--carry: %s", err.message);
    if (!c->is_state[input])
        add_link(c, from, input);
    return 0;
}

/* "present_*=past_*": one link per output that matches, the star's text put into the right side. */
static int add_pattern(carry *c, const ort_session *session, const char *from, const char *to)
{
    const char *star = strchr(from, '*'), *to_star = strchr(to, '*');
    size_t head = (size_t)(star - from), tail = strlen(star + 1), found = 0;
    if (to_star == NULL)
        return tool_usage("--carry: '%s' has a star, '%s' needs one too", from, to);
    for (size_t i = 0; i < ort_session_output_count(session); i++) {
        const char *name = ort_session_output_name(session, i);
        size_t length = strlen(name);
        if (length < head + tail || strncmp(name, from, head) ||
            strcmp(name + length - tail, star + 1))
            continue;
        char *input = tool_printf("%.*s%.*s%s", (int)(to_star - to), to,
                                  (int)(length - head - tail), name + head, to_star + 1);
        int status = check_link(session, name, input, c);
        free(input);
        if (status != 0)
            return status;
        found++;
    }
    return found > 0 ? 0 : tool_usage("--carry: no output matches '%s'", from);
}

int carry_open(carry *c, const string_list *carries, const string_list *counts,
               const ort_session *session)
{
    ort_error err = {0};
    memset(c, 0, sizeof *c);
    c->inputs = ort_session_input_count(session);
    c->state = tool_alloc((c->inputs + 1) * sizeof *c->state);
    c->is_state = tool_alloc((c->inputs + 1) * sizeof *c->is_state);
    c->source = tool_alloc((c->inputs + 1) * sizeof *c->source);
    if (carries->count > 0 && ort_binding_new(session, &c->binding, &err) != ORT_OK)
        return tool_fail(&err);
    for (size_t i = 0; i < carries->count; i++) {
        char *from;
        const char *to;
        if (!split_assignment(carries->items[i], &from, &to))
            return tool_usage("--carry: '%s' is not OUT=IN", carries->items[i]);
        int status = strchr(from, '*') != NULL ? add_pattern(c, session, from, to)
                                               : check_link(session, from, to, c);
        free(from);
        if (status != 0)
            return status;
    }
    c->counted = tool_alloc((counts->count + 1) * sizeof *c->counted);
    for (size_t i = 0; i < counts->count; i++) {
        int input = feed_input_index(session, counts->items[i]);
        if (input < 0)
            return EXIT_USAGE;
        if (is_linked(c, input))
            return tool_usage("--count: input '%s' is fed by --carry", counts->items[i]);
        c->counted[c->counted_count++] = input;
    }
    return 0;
}

int carry_restart(carry *c, const ort_session *session)
{
    ort_error err = {0};
    c->started = false;
    c->position = 0;
    if (c->binding != NULL)
        ort_binding_restart(c->binding);
    for (size_t i = 0; i < c->inputs; i++) {
        ort_value_free(c->state[i]);
        c->state[i] = NULL;
        if (c->is_state[i] &&
            ort_binding_set_input(c->binding, ort_session_input_name(session, i), NULL, &err) !=
                ORT_OK)
            return tool_fail(&err);
    }
    return 0;
}

/* ---- made inputs */

/* Tokens of this step: the last dim of the first other input of the same rank. */
static int64_t step_length(const carry *c, ort_value *const *inputs, int counted)
{
    for (size_t i = 0; i < c->inputs; i++)
        if ((int)i != counted && !c->is_state[i] && inputs[i] != NULL &&
            ort_value_rank(inputs[i]) == 2)
            return ort_value_dims(inputs[i])[1];
    return 1;
}

static int64_t step_batch(const carry *c, ort_value *const *inputs, int counted)
{
    for (size_t i = 0; i < c->inputs; i++)
        if ((int)i != counted && !c->is_state[i] && inputs[i] != NULL &&
            ort_value_rank(inputs[i]) == 2)
            return ort_value_dims(inputs[i])[0];
    return 1;
}

static void keep(carry *c, size_t index, ort_value *value)
{
    ort_value_free(c->state[index]);
    c->state[index] = value;
}

static int count_up(carry *c, const ort_session *session, int input, ort_value **inputs)
{
    ort_error err = {0};
    int64_t dims[16], length = step_length(c, inputs, input);
    int rank = ort_session_input_dims(session, (size_t)input, dims, 16);
    ort_value *value = NULL;
    int64_t shape[2] = {step_batch(c, inputs, input), length};
    if (rank == 0)
        length = 1;
    else if (rank == 1)
        shape[0] = length;
    if (ort_value_new_tensor(ort_session_input_dtype(session, (size_t)input),
                             rank < 0 || rank > 2 ? 2 : rank, shape, &value, &err) != ORT_OK)
        return tool_fail(&err);
    for (int64_t i = 0; i < ort_value_count(value); i++)
        ort_value_set_double(value, i, (double)(c->position + i % length));
    keep(c, (size_t)input, value);
    inputs[input] = value;
    return 0;
}

static int grow_mask(carry *c, const ort_session *session, size_t input, int64_t total,
                     ort_value **inputs)
{
    ort_error err = {0};
    ort_value *value = NULL;
    int64_t shape[2] = {step_batch(c, inputs, (int)input), total};
    if (ort_value_new_tensor(ort_session_input_dtype(session, input), 2, shape, &value, &err) !=
        ORT_OK)
        return tool_fail(&err);
    for (int64_t i = 0; i < ort_value_count(value); i++)
        ort_value_set_double(value, i, 1);
    keep(c, input, value);
    inputs[input] = value;
    return 0;
}

static ort_value *held(ort_value *state)
{
    return state != NULL && ort_value_get_kind(state) == ORT_VALUE_SEQUENCE
               ? ort_value_item(state, 0)
               : state;
}

/* A state is given once, before its first step. */
static int bind(carry *c, const ort_session *session, ort_value *const *inputs)
{
    ort_error err = {0};
    for (size_t i = 0; i < c->inputs; i++)
        if ((!c->is_state[i] || (!c->started && inputs[i] != NULL)) &&
            ort_binding_set_input(c->binding, ort_session_input_name(session, i), inputs[i],
                                  &err) != ORT_OK) {
            misfit_explain(session, inputs, &err);
            return tool_fail(&err);
        }
    c->started = true;
    return 0;
}

int carry_before(carry *c, const ort_session *session, ort_value **inputs)
{
    int status = 0;
    if (c->binding == NULL && c->counted_count == 0)
        return 0;
    for (size_t k = 0; k < c->count; k++) {
        int i = c->links[k].input;
        if (c->state[i] != NULL)
            inputs[i] = held(c->state[i]);
        else if (inputs[i] == NULL)
            return tool_usage("--carry: input '%s' needs a first value (-i)",
                              ort_session_input_name(session, (size_t)i));
    }
    int64_t length = step_length(c, inputs, c->counted_count > 0 ? c->counted[0] : -1);
    for (size_t k = 0; k < c->counted_count && status == 0; k++)
        if (c->position > 0 || inputs[c->counted[k]] == NULL)
            status = count_up(c, session, c->counted[k], inputs);
    for (size_t i = 0; i < c->inputs && c->binding != NULL && status == 0; i++)
        if (strstr(ort_session_input_name(session, i), "attention_mask") != NULL &&
            (inputs[i] == NULL || c->position > 0))
            status = grow_mask(c, session, i, c->position + length, inputs);
    c->position += length;
    return status == 0 && c->binding != NULL ? bind(c, session, inputs) : status;
}

int carry_after(carry *c, const ort_session *session, ort_value *const *outputs)
{
    for (size_t k = 0; k < c->count; k++) {
        ort_value *value = NULL;
        int status = expression_value(&c->links[k].from, session, outputs, &value);
        if (status != 0)
            return status;
        keep(c, (size_t)c->links[k].input, value);
    }
    return 0;
}

bool carry_reads(const carry *c, const ort_session *session, size_t output)
{
    const char *name = ort_session_output_name(session, output);
    for (size_t k = 0; k < c->count; k++)
        if (!strcmp(c->links[k].from.name, name))
            return true;
    return false;
}

int carry_source(const carry *c, size_t input)
{
    return c->is_state[input] ? c->source[input] : -1;
}

size_t carry_growing(const carry *c, const ort_session *session)
{
    size_t count = 0;
    for (size_t i = 0; i < c->inputs && c->binding != NULL; i++)
        count += ort_binding_state_grows(c->binding, ort_session_input_name(session, i));
    return count;
}

void carry_close(carry *c)
{
    for (size_t k = 0; k < c->count; k++)
        expression_release(&c->links[k].from);
    for (size_t i = 0; c->state != NULL && i < c->inputs; i++)
        ort_value_free(c->state[i]);
    ort_binding_free(c->binding);
    free(c->state);
    free(c->is_state);
    free(c->source);
    free(c->links);
    free(c->counted);
}
