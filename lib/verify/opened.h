/* opened.h - a model with an axis made symbolic beside the original. */
#ifndef ORT_VERIFY_OPENED_H
#define ORT_VERIFY_OPENED_H

#include "exec/session.h"

/* b has open dimensions where a's inputs have sizes. */
bool ort_opened(const ort_session *a, const ort_session *b);
/* Runs b on inputs of twice the size along each opened axis: two sets of a's inputs (in b's order)
 * joined, of the first sizes that a takes. It must run; where all opened axes are the first, its
 * results must be those of a on either set, joined. text: what is wrong, or "" (at least 600
 * bytes). */
ort_status ort_verify_opened(const ort_session *a, const ort_session *b,
                             const ort_verify_options *options, char *text, ort_error *err);

#endif
