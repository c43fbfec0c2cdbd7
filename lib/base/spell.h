/* spell.h - whether runs that are alike are faster with all threads or with their caller alone.
 *
 * Where cores are far from each other, as those of a virtual machine may be from one moment to the
 * next, a short run takes longer with two threads than with one: what one has written comes to the
 * other too slowly. Nothing tells but the clock. So a spell of runs of the way that was faster ends
 * with some of the other, and the next spell is of the better one, twice as long each time that the
 * trial changes nothing. One caller at a time.
 */
#ifndef ORT_BASE_SPELL_H
#define ORT_BASE_SPELL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ort_spell { /* all zero at first */
    bool alone;            /* the next run is to be the caller's alone */
    bool trial;            /* of the other way */
    uint32_t left, length; /* runs of the spell or trial to come; of the last spell, or 0 */
    uint32_t runs;         /* of a trial, and at the end of a spell as many that count */
    uint64_t best[2];      /* nanoseconds, at the end of the last with all threads, and alone */
} ort_spell;

/* A run like `alone` says took so long. */
void ort_spell_note(ort_spell *s, uint64_t took);

#endif
