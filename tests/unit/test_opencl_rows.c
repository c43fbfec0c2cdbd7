/* The operators of OpenCL's provider: one row for each, of operators that exist. */
#include "test.h"

#if __has_include(<CL/cl.h>)
#include "provider/opencl/opencl.h"

/* A build without OpenCL lacks them. */
#pragma weak ort_cl_rows_check
#pragma weak ort_cl_row_tables

static ort_status emit(ort_cl_step *s, ort_error *err)
{
    return ORT_OK;
}

static void rows(test_state *test)
{
    static const ort_cl_row relu[] = {{"", "Relu", NULL, emit}, {0}};
    static const ort_cl_row more[] = {{"", "Neg", NULL, emit}, {"", "Relu", NULL, emit}, {0}};
    static const ort_cl_row unknown[] = {{"", "Rely", NULL, emit}, {0}};
    static const ort_cl_row none[] = {{"", "Abs"}, {0}};
    static const ort_cl_row both[] = {{"", "Abs", NULL, emit, .form = ORT_CL_ONE}, {0}};
    static const ort_cl_row nameless[] = {{"", "Abs", .form = ORT_CL_ONE}, {0}};
    const struct {
        const ort_cl_row *tables[3];
        const char *says;
    } cases[] = {
        {{relu}, NULL},
        {{relu, more}, "'Relu' is there twice"},
        {{relu, unknown}, "'Rely' is no operator"},
        {{none}, "'Abs' is either made"},
        {{both}, "'Abs' is either made"},
        {{nameless}, "'Abs' is either made"},
    };
    ort_registry *registry;
    ort_error err = {0};
    bool built = false;
    for (int i = 0; ort_provider_at(i); i++)
        built = built || !strcmp(ort_provider_at(i)->name, "opencl");
    CHECK(built == (ort_cl_rows_check != NULL));
    if (!built)
        return;
    CHECK(ort_registry_new(&registry, NULL) == ORT_OK);
    CHECK(ort_cl_rows_check(ort_cl_row_tables, registry, &err) == ORT_OK);
    CHECK_TEXT(err.message, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err = (ort_error){0};
        ort_status status = ort_cl_rows_check(cases[i].tables, registry, &err);
        CHECK(status == (cases[i].says ? ORT_ERROR_USAGE : ORT_OK));
        CHECK(!cases[i].says || strstr(err.message, cases[i].says));
    }
    ort_registry_free(registry);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, rows);
    return test.failures != 0;
}
#else
int main(void)
{
    return 0;
}
#endif
