/* plan_shown.c - where steps stand that only a watcher reads.
 *
 * Passes append what converts a value for a watcher, as out of a blocked layout, so such steps
 * stand at the end, and every watched value would live until then: an arena of all values, whose
 * pages are all touched, for a run that needs but a few at a time. Each goes right behind the step
 * that gives the last of its inputs instead.
 */
#include "exec/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct mover {
    const ort_step **steps;
    int count;
    int *giver;   /* by value id: the step that gives it; -1: none */
    bool *read;   /* by value id: by a step or a body */
    int *behind;  /* by step: where it goes; -1: it stays */
    int *first;   /* by step: what goes behind it, first to last by `next`; -1: none */
    int *next;
    const ort_step **moved;
} mover;

static void note(mover *m)
{
    for (int i = 0; i < m->count; i++) {
        const ort_step *s = m->steps[i];
        for (int k = 0; k < s->out_count; k++)
            if (s->out[k] != ORT_ID_NONE)
                m->giver[s->out[k]] = i;
        for (int k = 0; k < s->in_count; k++)
            if (s->in[k] != ORT_ID_NONE)
                m->read[s->in[k]] = true;
        for (int b = 0; b < s->body_count; b++)
            for (int c = 0; c < s->bodies[b]->capture_count; c++)
                m->read[s->bodies[b]->captures[c].outer] = true;
    }
}

/* The step that gives the last input; -1 for what keeps its place: whoever is read or has bodies,
 * which read more, and what draws random numbers, since their order is their meaning. */
static int place_of(const mover *m, const ort_step *s)
{
    int last = -1;
    if (s->body_count || (s->traits & ORT_TRAIT_RANDOM))
        return -1;
    for (int k = 0; k < s->out_count; k++)
        if (s->out[k] != ORT_ID_NONE && m->read[s->out[k]])
            return -1;
    for (int k = 0; k < s->in_count; k++)
        if (s->in[k] != ORT_ID_NONE && m->giver[s->in[k]] > last)
            last = m->giver[s->in[k]];
    return last;
}

static void move(mover *m)
{
    int at = 0;
    for (int i = m->count - 1; i >= 0; i--) {
        m->behind[i] = place_of(m, m->steps[i]);
        if (m->behind[i] < 0)
            continue;
        m->next[i] = m->first[m->behind[i]];
        m->first[m->behind[i]] = i;
    }
    for (int i = 0; i < m->count; i++) {
        if (m->behind[i] >= 0)
            continue;
        m->moved[at++] = m->steps[i];
        for (int k = m->first[i]; k >= 0; k = m->next[k])
            m->moved[at++] = m->steps[k]; /* none goes behind one of these: nobody reads it */
    }
    memcpy(m->steps, m->moved, (size_t)at * sizeof(const ort_step *));
}

ort_status ort_plan_show_early(const ort_step **steps, int count, int values, ort_error *err)
{
    const size_t n = (size_t)count + 1, v = (size_t)values + 1;
    int *numbers = malloc((v + 3 * n) * sizeof *numbers);
    mover m = {.steps = steps, .count = count, .giver = numbers,
               .read = calloc(v, sizeof *m.read), .moved = malloc(n * sizeof *m.moved)};
    ort_status status = ORT_OK;
    if (numbers && m.read && m.moved) {
        memset(numbers, 0xff, (v + 3 * n) * sizeof *numbers); /* -1 */
        m.behind = numbers + v;
        m.first = m.behind + n;
        m.next = m.first + n;
        note(&m);
        move(&m);
    } else {
        status = ort_error_memory(err, (v + 3 * n) * sizeof *numbers);
    }
    free(numbers);
    free(m.read);
    free(m.moved);
    return status;
}
