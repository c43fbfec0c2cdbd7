/* spell.c - see spell.h. The first two runs of a trial find their values in the caches of the way
 * before; of the others, and of as many at the end of a spell, the best counts. */
#include "base/spell.h"

enum {
    TRIAL = 8,    /* runs */
    LEAST = 64,   /* of a spell */
    MOST = 1024,
    WORTH = 20,   /* what gains less than one part in so many isn't worth a processor */
};

static void decide(ort_spell *s)
{
    bool alone = s->best[false] > s->best[true] - s->best[true] / WORTH;
    bool agrees = alone != s->alone && s->length > 0;
    s->length = !agrees ? LEAST : s->length < MOST / 2 ? 2 * s->length : MOST;
    s->alone = alone;
    s->left = s->length;
}

void ort_spell_note(ort_spell *s, uint64_t took)
{
    uint64_t *best = &s->best[s->alone];
    if (s->left == 0) /* the very first */
        s->left = 2 * TRIAL;
    if (s->left == TRIAL)
        *best = UINT64_MAX;
    else if (s->left < TRIAL - 1 && took < *best)
        *best = took;
    if (--s->left > 0)
        return;
    s->trial = !s->trial;
    if (!s->trial) {
        decide(s);
        return;
    }
    s->alone = !s->alone;
    s->left = TRIAL;
}
