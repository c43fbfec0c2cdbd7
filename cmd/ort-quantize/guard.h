/* guard.h - a few nodes that stay float: those whose codes cost outputs most for what they compute.
 *
 * Ranges say of each node how much noise its inputs get as codes; of the noisiest, models show what
 * each does to outputs alone. These noises are taken to add up, which says more than whole models
 * would: on few samples, what many nodes do cancels by chance. The most harmful ones that
 * --keep-sensitive has room for stay float, as many as it takes, and none where that gains little,
 * since each breaks a chain of codes.
 */
#ifndef ORT_QUANTIZE_GUARD_H
#define ORT_QUANTIZE_GUARD_H

#include "trial.h"

/* `chosen` becomes what keeps the model near float: if it is near already, only nodes whose time
 * nobody notices, as small products that end a net. The quantizer has seen all ranges. */
int guard_choose(const trial *t, ort_quantizer *quantizer, bool near, kept_nodes *chosen);
void kept_nodes_add(kept_nodes *kept, size_t index);
/* Layers whose weights alone are codes. */
void guard_recurrent(const ort_quantizer *quantizer, kept_nodes *chosen);
/* Look-ups of rows, which stay in float16. */
void guard_tables(const ort_quantizer *quantizer, kept_nodes *chosen);
/* Convolutions with a filter for each channel, besides: one scale for all channels cuts those that
 * reach less far than others, and no sum over channels makes up for it. */
int guard_depthwise(const quantizing *q, const ort_quantizer *quantizer, kept_nodes *chosen);
/* Others that harm most, which take no more than so many percent of the multiply-adds. */
int guard_more(const trial *t, ort_quantizer *quantizer, double percent, kept_nodes *chosen);
/* What --effort tries in float, all of a kind: where many nodes harm a little each, none of them
 * stands out. Each group holds those that the last one that helped has. */
typedef struct guard_group {
    const char *name;
    int (*add)(const quantizing *q, const ort_quantizer *quantizer, kept_nodes *chosen);
    bool is_small; /* takes time that nobody notices */
} guard_group;
enum { GUARD_GROUPS = 3 };
extern const guard_group guard_groups[GUARD_GROUPS];
/* Of the multiply-adds of all products, those of kept nodes, as --keep-sensitive counts them. */
double guard_percent(const ort_quantizer *quantizer, const kept_nodes *kept);
/* What it must bring, in dB. */
double guard_least_gain(const guard_group *group);
/* q->kept stay float in another quantizer of the same model, tables among them in float16. */
int guard_keep(const quantizing *q, ort_quantizer *quantizer);
/* q->kept_float of q->kept, before they are kept. */
void guard_note(quantizing *q, ort_quantizer *quantizer);

#endif
