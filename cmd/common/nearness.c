/* nearness.c - distances of tensors as text and JSON (nearness.h). */
#include "common/nearness.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>

const char *nearness_sqnr(double db, char *text, size_t room)
{
    if (isnan(db))
        snprintf(text, room, "none");
    else if (isinf(db))
        snprintf(text, room, db > 0 ? "exact" : "-inf");
    else
        snprintf(text, room, "%.2f", db);
    return text;
}

const char *nearness_text(const ort_distance *d, char *text, size_t room)
{
    char sqnr[24];
    double db = ort_distance_sqnr_db(d), cosine = ort_distance_cosine(d);
    nearness_sqnr(db, sqnr, sizeof sqnr);
    if (isnan(cosine))
        snprintf(text, room, "SQNR %s%s, no cosine", sqnr, isfinite(db) ? " dB" : "");
    else
        snprintf(text, room, "SQNR %s%s, cosine %.6f", sqnr, isfinite(db) ? " dB" : "", cosine);
    return text;
}

/* JSON has no NaN and no infinity. */
static json_object *number(double value)
{
    return isfinite(value) ? json_object_new_double(value) : NULL;
}

void nearness_json(struct json_object *object, const ort_distance *d)
{
    double db = ort_distance_sqnr_db(d);
    json_object_object_add(object, "sqnr_db", number(db));
    json_object_object_add(object, "exact", json_object_new_boolean(db == INFINITY));
    json_object_object_add(object, "cosine", number(ort_distance_cosine(d)));
}
