/* custom_ops.h - the operators of custom_ops.c, as scenarios use them. */
#ifndef CUSTOM_OPS_H
#define CUSTOM_OPS_H

#include "custom.h"
#include "differ.h"

#pragma GCC visibility push(default)
/* Adds them to the options; the domain is the caller's, to be released after the sessions. */
OrtStatus *custom_register(const api *a, OrtSessionOptions *options, OrtCustomOpDomain **domain);
/* Where Told says what it was told; NULL: nowhere. */
extern side *custom_witness;
OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base);
#pragma GCC visibility pop
#endif
