/* opencl_window.h - windows of convolutions and pools: three axes, of which the first may be 1. */
#ifndef ORT_PROVIDER_OPENCL_IMAGE_OPENCL_WINDOW_H
#define ORT_PROVIDER_OPENCL_IMAGE_OPENCL_WINDOW_H

#include "op/shared/window.h"
#include "provider/opencl/opencl_parts.h"

bool ort_cl_fits_window(const ort_graph *graph, const ort_node *node, const char **why);
/* The dimensions behind images and channels. */
void ort_cl_spatial(const ort_fact *fact, int64_t *dims);
/* kernel: NULL, or its size, where no attribute has it. */
ort_status ort_cl_window_of(const ort_cl_step *s, const int64_t *kernel, ort_window *w,
                            ort_error *err);

#endif
