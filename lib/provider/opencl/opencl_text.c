/* opencl_text.c - the texts of all programs: cl/NAME.cl, of which the build makes strings,
 * common.cl first. */
#include "provider/opencl/opencl.h"

const ort_cl_text ort_cl_texts[] = {
#include "cl_texts.inc"
    {0},
};

_Static_assert(sizeof ort_cl_texts / sizeof *ort_cl_texts <= ORT_CL_PROGRAMS + 1,
               "a device has no room for so many programs");
