/* ratios.c - ours over theirs: below 1 we are ahead.
 *
 * A runtime's time is its best round's median. The interval is that of Student's t over the
 * logarithms of the ratios of the rounds.
 */
#include <math.h>

#include "bench.h"

static const double narrow = 0.1; /* high - low */

static double t_quantile(int freedom) /* of 97.5 %; freedom: 1 at least */
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                   2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                   2.110,  2.101, 2.093, 2.086};
    enum { ROWS = sizeof table / sizeof *table };
    return freedom <= ROWS ? table[freedom - 1] : 2.0;
}

interval ratio_interval(const measure *m, const side *theirs)
{
    const side *ours = &m->side[OURS];
    double sum = 0, squares = 0;
    for (int k = 0; k < m->rounds; k++) {
        double ratio = log(ours->round[k] / theirs->round[k]);
        sum += ratio;
        squares += ratio * ratio;
    }
    double mean = sum / m->rounds;
    if (m->rounds < 2) /* of one, nothing says how far it is off */
        return (interval){0, INFINITY};
    double variance = fmax(0, squares - m->rounds * mean * mean) / (m->rounds - 1);
    double half = t_quantile(m->rounds - 1) * sqrt(variance / m->rounds);
    return (interval){exp(mean - half), exp(mean + half)};
}

void mean_add(ratio_mean *m, double ratio)
{
    m->log_sum += log(ratio);
    m->count++;
}

double mean_of(const ratio_mean *m)
{
    return m->count ? exp(m->log_sum / m->count) : NAN;
}

bool compared(const measure *m)
{
    return m->side[OURS].state == SIDE_FINE && !m->differs;
}

bool is_narrow(interval range)
{
    return range.high - range.low < narrow;
}

const side *best_peer(const measure *m)
{
    const side *best = NULL;
    for (int i = 1; i < SIDES; i++)
        if (m->side[i].state == SIDE_FINE && (!best || m->side[i].best < best->best))
            best = &m->side[i];
    return best;
}
