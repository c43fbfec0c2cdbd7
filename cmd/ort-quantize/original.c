/* original.c - the model as it is given, loaded once. */
#include "quantize.h"

int load_original(quantizing *q, load_weights weights)
{
    if (q->original != NULL)
        return 0;
    return settings_load_model(&q->options.settings, q->env, q->path, weights, &q->original);
}
