/* screen.c - terminals (screen.h). */
#include "common/screen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/text.h"
#include "common/tool.h"

enum { USUAL_WIDTH = 80, LEAST_WIDTH = 20 };

static FILE *stand_in, *stands_for;

void screen_stand_for(FILE *memory, FILE *real)
{
    stand_in = memory;
    stands_for = real;
}

static FILE *shown_on(FILE *stream) { return stream == stand_in ? stands_for : stream; }

int screen_width(FILE *stream)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int shown = fileno(shown_on(stream));
    if (!isatty(shown))
        return 0;
    int width = columns != NULL ? atoi(columns) : 0;
    if (width <= 0 && ioctl(shown, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0)
        width = USUAL_WIDTH;
    return width < LEAST_WIDTH ? LEAST_WIDTH : width;
}

/* A terminal that NO_COLOR and TERM=dumb don't forbid colour. */
static bool has_colours(FILE *stream)
{
    const char *forbidden = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(shown_on(stream))) && (forbidden == NULL || *forbidden == '\0') &&
           (term == NULL || strcmp(term, "dumb"));
}

const char *screen_begin(FILE *stream, screen_style style)
{
    static const char *const codes[] = {"", "\033[32m", "\033[31m", "\033[33m", "\033[2m"};
    return has_colours(stream) ? codes[style] : "";
}

const char *screen_end(FILE *stream) { return has_colours(stream) ? "\033[0m" : ""; }

void screen_printf(FILE *stream, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    if (screen_width(stream) == 0)
        vfprintf(stream, format, arguments);
    else if (vasprintf(&text, format, arguments) < 0)
        tool_alloc(SIZE_MAX / 2);
    va_end(arguments);
    if (text == NULL)
        return;
    text_tame(text);
    fputs(text, stream);
    free(text);
}

int screen_value(FILE *stream, const ort_value *value, const char *name, int64_t items)
{
    ort_error err = {0};
    char *text = NULL;
    size_t size = 0;
    bool direct = screen_width(stream) == 0;
    FILE *out = direct ? stream : open_memstream(&text, &size);
    if (out == NULL)
        tool_alloc(SIZE_MAX / 2);
    ort_status status = ort_value_print(value, name, (int)items, out, &err);
    if (!direct)
        fclose(out);
    if (!direct && status == ORT_OK)
        screen_printf(stream, "%s", text);
    free(text);
    return status == ORT_OK ? 0 : tool_fail(&err);
}

void screen_verdict(FILE *stream, bool good)
{
    fprintf(stream, "%s%s%s  ", screen_begin(stream, good ? STYLE_GOOD : STYLE_BAD),
            good ? "ok  " : "FAIL", screen_end(stream));
}

static bool begins_character(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

size_t screen_length(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += begins_character(*text);
    return n;
}

/* Where the character of that number begins. */
static char *character(char *text, size_t number)
{
    while (*text != '\0' && number > 0)
        for (number--, text++; !begins_character(*text) && *text != '\0';)
            text++;
    return text;
}

void screen_shorten(char *text, size_t width)
{
    size_t length = screen_length(text);
    if (length <= width || width < 4)
        return;
    size_t end = (width - 3) / 2, begin = width - 3 - end;
    char *gap = character(text, begin), *tail = character(text, length - end);
    memcpy(gap, "...", 3); /* what goes is at least four characters */
    memmove(gap + 3, tail, strlen(tail) + 1);
}

static void put_field(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void screen_csv(FILE *out, const char *text)
{
    char *shown = tool_strdup(text);
    if (screen_width(out) > 0)
        text_tame(shown);
    put_field(out, shown);
    free(shown);
}
