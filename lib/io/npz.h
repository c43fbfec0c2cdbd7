/* npz.h - what reader and writer of .npz archives share: the marks of zip, and the member that says
 * what numpy can't. */
#ifndef ORT_IO_NPZ_H
#define ORT_IO_NPZ_H

#include "io/tensors.h"

enum {
    SIG_LOCAL = 0x04034b50,
    SIG_CENTRAL = 0x02014b50,
    SIG_DESCRIPTOR = 0x08074b50,
    SIG_END64 = 0x06064b50,
    SIG_LOCATOR64 = 0x07064b50,
    SIG_END = 0x06054b50,
    FLAG_ENCRYPTED = 1,
    FLAG_DESCRIPTOR = 8,
    FLAG_UTF8 = 0x800,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
};

#define TYPES_MEMBER "__ort__.json"
#define ZIP32_LIMIT UINT64_C(0xffffffff)

ort_status ort_npz_write(const ort_tensors *tensors, FILE *stream, const ort_write_options *options,
                         ort_error *err);

#endif
