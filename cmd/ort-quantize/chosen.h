/* chosen.h - which nodes stay float, and which have codes of their own, by the command line. */
#ifndef ORT_QUANTIZE_CHOSEN_H
#define ORT_QUANTIZE_CHOSEN_H

#include "quantize.h"

typedef struct chosen {
    string_list exclude, include;
    char *overrides; /* JSON, or NULL */
} chosen;

/* 0, or an exit status after saying why. Release it either way. q->choice tells it, by what files
 * hold instead of their names. */
int chosen_read(chosen *c, quantizing *q);
void chosen_release(chosen *c);
/* Of q->original. 0, or an exit status after saying why the library takes no such choice, of the
 * file that it stands in or of the model. */
int chosen_quantizer(const quantizing *q, const ort_quantize_options *options,
                     ort_quantizer **quantizer);
/* What --auto found, told as if it had been given: the text of the file of --assignment. */
void chosen_found(quantizing *q, const char *overrides);

#endif
