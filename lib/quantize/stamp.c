/* stamp.c - one property for each verb. Neither time nor machine is in it, so that equal work gives
 * equal files: of tiers, all but the one that machines share (ort_quantize_tier) are named.
 */
#include "quantize/stamp.h"

#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "graph/override.h"
#include "kernel/kernel.h"

static void add_part(ort_strbuf *text, const char *name, const char *value)
{
    if (value && value[0])
        ort_strbuf_addf(text, "; %s: %s", name, value);
}

/* By the name of its bits, which others may give, too. */
static const char *told_tier(const char *tier)
{
    const ort_kernels *k = tier && tier[0] ? ort_kernels_get(tier) : NULL;
    tier = k ? k->isa : tier;
    return tier && strcmp(tier, "common") ? tier : NULL;
}

ort_status ort_quantize_stamp_model(ort_model *model, const ort_quantize_stamp *stamp,
                                    ort_error *err)
{
    ort_strbuf key = {0}, text = {0};
    ort_strbuf_addf(&key, "ort.quantize.%s", stamp->verb);
    ort_strbuf_add(&text, ort_version());
    add_part(&text, "options", stamp->options);
    add_part(&text, "samples", stamp->samples);
    add_part(&text, "tier", told_tier(stamp->tier));
    const char *before = ort_graph_metadata(model, ort_strbuf_text(&key));
    if (before)
        ort_strbuf_addf(&text, " < %s", before);
    ort_status status = key.failed || text.failed
                            ? ort_error_memory(err, text.length)
                            : ort_graph_set_metadata(model, ort_strbuf_text(&key),
                                                     ort_strbuf_text(&text), err);
    ort_strbuf_release(&key);
    ort_strbuf_release(&text);
    return status;
}
