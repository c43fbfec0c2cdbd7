/* opencl_tuning.c - what was measured of a device, as a file: opencl-tuning-DEVICE.json under
 * ORT_CACHE. It says of which device, driver and kernels it is, so that one of others is left alone
 * and said to be so. A session reads it once, when it opens the device: nothing is measured in
 * sessions that weren't asked to, and the same file gives the same placement and the same bits.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/json_in.h"
#include "provider/opencl/opencl.h"

#define SCHEMA "ort-opencl-tuning/1"

bool ort_cl_tuning_path(ort_cl_device *d)
{
    const char *folder = getenv("ORT_CACHE");
    char name[64];
    size_t length = 0;
    if (!folder || !*folder)
        return false;
    for (const char *c = d->name; *c && length < sizeof name - 1; c++) {
        if (isalnum((unsigned char)*c))
            name[length++] = (char)tolower((unsigned char)*c);
        else if (length && name[length - 1] != '-')
            name[length++] = '-';
    }
    while (length && name[length - 1] == '-')
        length--;
    int bytes = snprintf(d->tuning_file, sizeof d->tuning_file, "%s/opencl-tuning-%.*s.json",
                         folder, (int)length, name);
    return bytes > 0 && (size_t)bytes < sizeof d->tuning_file;
}

static void kernels_of(char *text, size_t size)
{
    snprintf(text, size, "%016llx", (unsigned long long)ort_cl_texts_digest());
}

/* ---- reading */

typedef struct reading {
    ort_json_in in;
    ort_cl_device *d;
    ort_cl_rates rates;
    ORT_VEC(ort_cl_tuned) tuned;
    bool is_known, same_device, same_driver, same_kernels;
} reading;

static double positive(ort_json_in *in)
{
    double number = ort_json_in_double(in);
    if (!(number > 0))
        ort_json_in_fail(in, "a rate is above 0");
    return number;
}

static void read_rates(reading *r)
{
    const struct {
        const char *name;
        double *to, share;
    } known[] = {
        {"products", &r->rates.products, r->rates.share},
        {"bytes", &r->rates.bytes, 1},
        {"launch", &r->rates.launch, 1},
        {"copy_bytes", &r->rates.copy_bytes, 1},
        {"copy", &r->rates.copy, 1},
    };
    const size_t count = sizeof known / sizeof *known;
    ort_json_in_enter(&r->in, '{');
    while (ort_json_in_more(&r->in, '}')) {
        const char *key = ort_json_in_key(&r->in);
        size_t i = 0;
        while (i < count && strcmp(known[i].name, key))
            i++;
        if (i == count)
            ort_json_in_fail(&r->in, "'%s' is no rate", key);
        else
            *known[i].to = positive(&r->in) * known[i].share;
    }
}

static int find_form(const ort_cl_device *d, const char *name)
{
    for (int i = 0; i < ORT_CL_TILES; i++)
        if (!strcmp(d->tiles[i].name, name))
            return i;
    return -1;
}

/* Kernels have no room for more rows than that, and the device for no larger group. */
static bool fits(const ort_cl_device *d, const ort_cl_choice *c)
{
    if (c->tiles < 0)
        return false;
    const ort_cl_tile *t = &d->tiles[c->tiles];
    size_t group = (size_t)t->side * (size_t)t->side;
    return t->lanes ? c->rows >= 0 && c->rows <= ORT_CL_MOST_ROWS && c->rows % t->rows == 0
                    : c->rows == 0 && group <= d->most_group;
}

static void read_shape(reading *r)
{
    ort_cl_tuned t = {.choice = {.tiles = -1}};
    ort_json_in_enter(&r->in, '{');
    while (ort_json_in_more(&r->in, '}')) {
        const char *key = ort_json_in_key(&r->in);
        if (!strcmp(key, "shape"))
            snprintf(t.shape, sizeof t.shape, "%s", ort_json_in_string(&r->in));
        else if (!strcmp(key, "tiles"))
            t.choice.tiles = find_form(r->d, ort_json_in_string(&r->in));
        else if (!strcmp(key, "rows"))
            t.choice.rows = (int)ort_json_in_uint(&r->in);
        else if (!strcmp(key, "us"))
            t.ns = positive(&r->in) * 1e3;
        else if (!strcmp(key, "usual_us"))
            t.usual_ns = positive(&r->in) * 1e3;
        else if (!strcmp(key, "macs"))
            t.macs = ort_json_in_double(&r->in);
        else
            ort_json_in_fail(&r->in, "a shape has no '%s'", key);
    }
    if (r->in.status == ORT_OK && (!*t.shape || !fits(r->d, &t.choice)))
        ort_json_in_fail(&r->in, "no kernel of this device has these tiles and rows");
    if (r->in.status == ORT_OK && !ort_vec_push(&r->tuned, t))
        r->in.status = ort_error_memory(r->in.err, sizeof t);
}

static void read_all(reading *r)
{
    char kernels[20];
    ort_json_in *in = &r->in;
    kernels_of(kernels, sizeof kernels);
    ort_json_in_enter(in, '{');
    while (ort_json_in_more(in, '}')) {
        const char *key = ort_json_in_key(in);
        if (!strcmp(key, "schema")) {
            r->is_known = !strcmp(ort_json_in_string(in), SCHEMA);
        } else if (!strcmp(key, "device")) {
            r->same_device = !strcmp(ort_json_in_string(in), r->d->name);
        } else if (!strcmp(key, "driver")) {
            r->same_driver = !strcmp(ort_json_in_string(in), r->d->driver);
        } else if (!strcmp(key, "kernels")) {
            r->same_kernels = !strcmp(ort_json_in_string(in), kernels);
        } else if (!strcmp(key, "rates")) {
            read_rates(r);
        } else if (!strcmp(key, "shapes")) {
            ort_json_in_enter(in, '[');
            while (ort_json_in_more(in, ']'))
                read_shape(r);
        } else {
            ort_json_in_fail(in, "'%s' isn't part of it", key);
        }
    }
    ort_json_in_end(in);
}

/* Why it isn't used; NULL: it is. Others' forms may be wrong here, so that is looked at first. */
static const char *refused(const reading *r, const ort_error *err)
{
    if (r->is_known && !r->same_device)
        return "it is of another device";
    if (r->is_known && !r->same_driver)
        return "it is of another driver";
    if (r->is_known && !r->same_kernels)
        return "it is of other kernels";
    if (r->in.status != ORT_OK)
        return err->message;
    return r->is_known ? NULL : "it isn't of the form " SCHEMA;
}

static void take(reading *r, bool tell)
{
    ort_cl_device *d = r->d;
    size_t other = 0;
    for (size_t i = 0; i < r->tuned.count; i++)
        other += r->tuned.data[i].choice.tiles != d->own || r->tuned.data[i].choice.rows;
    d->rates = r->rates;
    d->tuned.data = r->tuned.data;
    d->tuned.count = r->tuned.count;
    d->tuned.capacity = r->tuned.capacity;
    if (tell)
        ort_log_write(d->log, ORT_LOG_INFO, "opencl: tuned by %s: %zu shape%s, %zu of them not as "
                      "usual", d->tuning_file, d->tuned.count, d->tuned.count == 1 ? "" : "s",
                      other);
}

static void ignore(const ort_cl_device *d, const char *why)
{
    ort_log_write(d->log, ORT_LOG_WARNING, "opencl: %s is ignored: %s (ort-profile --tune-opencl "
                  "measures anew)", d->tuning_file, why);
}

void ort_cl_tuning_read(ort_cl_device *d, bool tell)
{
    size_t size = 0;
    ort_error err = {0};
    unsigned char *bytes = ort_cl_read_file(d->tuning_file, &size);
    tell = tell && !d->measuring; /* who measures takes the place of what is there */
    if (!bytes) {
        if (tell && access(d->tuning_file, F_OK) == 0)
            ignore(d, "it is empty or can't be read");
        return;
    }
    reading r = {.d = d, .rates = d->rates};
    ort_json_in_open(&r.in, (const char *)bytes, size, "it", &err);
    read_all(&r);
    const char *why = refused(&r, &err);
    if (!why)
        take(&r, tell);
    else
        ort_vec_release(&r.tuned);
    if (why && tell)
        ignore(d, why);
    ort_json_in_close(&r.in);
    free(bytes);
}

/* ---- writing */

static void number(ort_json *j, const char *key, double value)
{
    ort_json_key(j, key);
    ort_json_double(j, value);
}

static void text(ort_json *j, const char *key, const char *value)
{
    ort_json_key(j, key);
    ort_json_string(j, value);
}

static void write_rates(ort_json *j, const ort_cl_device *d)
{
    double macs = 0, ns = 0;
    for (size_t i = 0; i < d->tuned.count; i++) {
        macs += d->tuned.data[i].macs;
        ns += d->tuned.data[i].ns;
    }
    ort_json_key(j, "rates");
    ort_json_begin_object(j);
    if (macs >= 1e6 && ns > 0)
        number(j, "products", macs / ns * 1e9);
    number(j, "bytes", d->rates.bytes);
    number(j, "launch", d->rates.launch);
    number(j, "copy_bytes", d->rates.copy_bytes);
    number(j, "copy", d->rates.copy);
    ort_json_end_object(j);
}

static void write_all(ort_json *j, const ort_cl_device *d)
{
    char kernels[20];
    kernels_of(kernels, sizeof kernels);
    ort_json_begin_object(j);
    text(j, "schema", SCHEMA);
    text(j, "device", d->name);
    text(j, "driver", d->driver);
    text(j, "kernels", kernels);
    write_rates(j, d);
    ort_json_key(j, "shapes");
    ort_json_begin_array(j);
    for (size_t i = 0; i < d->tuned.count; i++) {
        const ort_cl_tuned *t = &d->tuned.data[i];
        ort_json_begin_object(j);
        text(j, "shape", t->shape);
        text(j, "tiles", d->tiles[t->choice.tiles].name);
        ort_json_key(j, "rows");
        ort_json_int(j, t->choice.rows);
        number(j, "us", t->ns / 1e3);
        number(j, "usual_us", t->usual_ns / 1e3);
        number(j, "macs", t->macs);
        ort_json_end_object(j);
    }
    ort_json_end_array(j);
    ort_json_end_object(j);
}

/* Whole or not at all. */
static bool replace(const char *path, const ort_strbuf *text)
{
    char scratch[1100];
    snprintf(scratch, sizeof scratch, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(scratch, "wbe");
    bool ok = file && fwrite(text->data, 1, text->length, file) == text->length &&
              fputc('\n', file) != EOF;
    ok = file && fclose(file) == 0 && ok && rename(scratch, path) == 0;
    if (file && !ok)
        unlink(scratch);
    return ok;
}

ort_status ort_cl_tuning_write(ort_cl_device *d, ort_error *err)
{
    ort_strbuf out = {0};
    ort_json j;
    ort_json_init(&j, &out, 1);
    write_all(&j, d);
    ort_status status = out.failed ? ort_error_memory(err, out.length) : ORT_OK;
    if (status == ORT_OK && !replace(d->tuning_file, &out))
        status = ort_error_set(err, ORT_ERROR_DATA, "%s can't be written; ORT_CACHE names its "
                               "folder", d->tuning_file);
    ort_strbuf_release(&out);
    return status;
}
