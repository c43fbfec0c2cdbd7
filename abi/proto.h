/* proto.h - bytes of a protobuf message, written front to back, and the fields of one to read. */
#ifndef ABI_PROTO_H
#define ABI_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ABI_PROTO_DEPTH = 32 };

typedef struct abi_proto {
    unsigned char *bytes;
    size_t count, room;
    size_t open[ABI_PROTO_DEPTH]; /* where messages inside begin */
    int depth;
    bool failed; /* memory is exhausted: what was written is worthless */
} abi_proto;

void abi_proto_number(abi_proto *p, unsigned field, uint64_t number);
void abi_proto_float(abi_proto *p, unsigned field, float number);
void abi_proto_bytes(abi_proto *p, unsigned field, const void *bytes, size_t count);
void abi_proto_text(abi_proto *p, unsigned field, const char *text);
/* A message as a field, with all that is written until its end. */
void abi_proto_begin(abi_proto *p, unsigned field);
void abi_proto_end(abi_proto *p);
/* As they stand. */
void abi_proto_raw(abi_proto *p, const void *bytes, size_t count);

/* A field of a message: its key from `begin` on, its value from `at` on. */
typedef struct abi_field {
    unsigned number, wire;
    size_t begin, at, size, end;
} abi_field;
/* The field that begins at `at`; false: these bytes aren't one. */
bool abi_field_read(const unsigned char *bytes, size_t count, size_t at, abi_field *field);
#endif
