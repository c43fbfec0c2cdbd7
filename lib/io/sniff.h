/* sniff.h - recognizing files that are not ONNX models, to say what they are and what to do. */
#ifndef ORT_IO_SNIFF_H
#define ORT_IO_SNIFF_H

#include <stddef.h>
#include <stdint.h>

/* One sentence about a well-known kind of file that is not an ONNX model ("is a git-lfs pointer,
 * ..."), or NULL when the bytes may be a model. */
const char *ort_sniff_model(const uint8_t *bytes, size_t count);

#endif
