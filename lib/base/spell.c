/* spell.c - see spell.h. The first quarter of a trial finds its values in the caches of the way
 * before; of the other runs, and of as many at the end of a spell, the best counts. */
#include "base/spell.h"

enum {
    TRIAL = 8,              /* runs */
    FEW = 4,                /* ... of a trial of long runs, which lose more */
    LONG_NS = 1000000,
    LEAST = 64,             /* runs of a spell */
    MOST = 1024,
    SPELL_NS = 1000000000,  /* that a longer one than LEAST takes at most: cores come and go */
    WORTH = 20,             /* what gains less than one part in so many isn't worth a processor */
};

static uint32_t longest(uint64_t took)
{
    uint64_t runs = took > 0 ? SPELL_NS / took : MOST;
    return runs > MOST ? MOST : runs < LEAST ? LEAST : (uint32_t)runs;
}

static void decide(ort_spell *s)
{
    bool alone = s->best[false] > s->best[true] - s->best[true] / WORTH;
    bool agrees = alone != s->alone && s->length > 0;
    uint32_t most = longest(s->best[alone]);
    s->length = !agrees ? LEAST : s->length < most / 2 ? 2 * s->length : most;
    s->alone = alone;
    s->left = s->length;
}

void ort_spell_note(ort_spell *s, uint64_t took)
{
    uint64_t *best = &s->best[s->alone];
    if (s->left == 0) { /* the very first */
        s->runs = TRIAL;
        s->left = 2 * TRIAL;
    }
    if (s->left == s->runs)
        *best = UINT64_MAX;
    if (s->left <= s->runs - s->runs / 4 && took < *best)
        *best = took;
    if (--s->left > 0)
        return;
    s->trial = !s->trial;
    if (!s->trial) {
        decide(s);
        return;
    }
    s->runs = *best < LONG_NS ? TRIAL : FEW;
    s->alone = !s->alone;
    s->left = s->runs;
}
