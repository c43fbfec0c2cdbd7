/* mt19937.h - numpy's legacy random streams: what np.random.seed and np.random.RandomState draw.
 *
 * The generator is MT19937 (Matsumoto and Nishimura, ACM TOMACS 8, 1998) with its authors'
 * seeding of 2002; numbers are formed from its 32-bit words as numpy's RandomState forms them, a
 * stream that numpy has frozen (NEP 19). A generator is plain memory of one owner: nothing to free,
 * not for two threads at once.
 */
#ifndef ORT_BASE_MT19937_H
#define ORT_BASE_MT19937_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORT_MT19937_WORDS = 624 };

typedef struct ort_mt19937 {
    uint32_t word[ORT_MT19937_WORDS];
    int next;       /* words of this block that are used up */
    bool has_spare;
    double spare;   /* the second normal of a pair */
} ort_mt19937;

/* RandomState(seed) for seeds below 2^32, which are all that numpy takes as one number; any other
 * is RandomState([low word, high word]). */
void ort_mt19937_seed(ort_mt19937 *mt, uint64_t seed);
/* RandomState([key...]); count >= 1. */
void ort_mt19937_seed_words(ort_mt19937 *mt, const uint32_t *key, size_t count);

uint32_t ort_mt19937_word(ort_mt19937 *mt);
/* random_sample(): in [0, 1), 53 bits of two words. */
double ort_mt19937_uniform(ort_mt19937 *mt);
/* standard_normal(): Marsaglia's polar method, two at a time. */
double ort_mt19937_normal(ort_mt19937 *mt);
/* binomial(1, p) for p in [0, 1]: by inversion, on the side of the smaller probability. */
bool ort_mt19937_bernoulli(ort_mt19937 *mt, double p);
/* Drop `count` numbers of random_sample(). */
void ort_mt19937_skip(ort_mt19937 *mt, uint64_t count);

#endif
