/* output.c - the picture that is drawn, and what all lists on stdout begin with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

bool draw_lists(const draw_tool *t)
{
    return t->output == NULL || strcmp(t->output, "-");
}

void json_record(draw_tool *t, const char *path)
{
    tool_reported();
    printf("{\"schema\": \"ort-draw/1\", \"picture\": ");
    if (path != NULL)
        tool_json_string(stdout, path);
    else
        printf("null");
}

void json_number(double number)
{
    if (isfinite(number))
        printf("%.6g", number);
    else
        printf("null");
}

/* Files of several pictures appear together behind the last one; a device or a pipe takes all. */
static int save_picture(draw_tool *t, const ort_tensors *picture)
{
    ort_error err = {0};
    ort_write_options options = {.size = sizeof options, .format = ORT_FORMAT_IMAGE};
    if (!strcmp(t->output, "-"))
        return ort_tensors_write(picture, stdout, &options, &err) == ORT_OK ? 0 : tool_fail(&err);
    if (t->direct != NULL || whole_file_is_special(t->output))
        return whole_file_append(&t->direct, t->output, picture, &options);
    ort_out_file *file = NULL;
    char *path = whole_file_numbered(t->output, t->records);
    int status = whole_file_append(&file, path, picture, &options);
    free(path);
    if (status == 0)
        return whole_files_add(&t->waiting, file);
    return file != NULL ? whole_file_close(file, status) : status;
}

int draw_save(draw_tool *t, canvas *c)
{
    ort_error err = {0};
    ort_value *pixels = NULL;
    ort_tensors *picture = NULL;
    int status = canvas_take(c, &pixels);
    if (status == 0 && (ort_tensors_new(&picture, &err) != ORT_OK ||
                        ort_tensors_add(picture, "picture", pixels, &err) != ORT_OK))
        status = tool_fail(&err);
    if (status == 0)
        status = save_picture(t, picture);
    ort_tensors_free(picture);
    ort_value_free(pixels);
    return status;
}
