/* json.c: the one writer of JSON. */
#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

size_t cli_utf8_length(const unsigned char *p, size_t left)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    if (n < 2) {
        return n;
    }
    unsigned char low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (n > left || p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return n;
}

static void quoted(FILE *f, const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    fputc('"', f);
    for (size_t i = 0; i < size;) {
        size_t n = cli_utf8_length(p + i, size - i);
        if (n == 0) {
            fputs("\\ufffd", f);
            i++;
            continue;
        }
        if (p[i] == '"' || p[i] == '\\') {
            fprintf(f, "\\%c", p[i]);
        } else if (p[i] < 0x20 || p[i] == 0x7f) {
            fprintf(f, "\\u%04x", (unsigned)p[i]);
        } else {
            fwrite(p + i, 1, n, f);
        }
        i += n;
    }
    fputc('"', f);
}

/* Comma, line break and key in front of a value. Entries of the two outer levels have a line each:
 * long answers can be read and compared line by line. */
static void lead(cli_json *j, const char *key)
{
    if (j->depth > 0) {
        fputs(j->filled[j->depth] ? "," : "", j->f);
        if (j->depth <= 2) {
            fprintf(j->f, "\n%*s", 2 * j->depth, "");
        } else if (j->filled[j->depth]) {
            fputc(' ', j->f);
        }
        j->filled[j->depth] = true;
    }
    if (key) {
        quoted(j->f, key, strlen(key));
        fputs(": ", j->f);
    }
}

static void open(cli_json *j, const char *key, bool array)
{
    lead(j, key);
    fputc(array ? '[' : '{', j->f);
    assert(j->depth + 1 < CLI_JSON_DEPTH);
    j->depth++;
    j->filled[j->depth] = false;
    j->array[j->depth] = array;
}

void cli_json_begin(cli_json *j, FILE *f)
{
    *j = (cli_json){.f = f};
    open(j, NULL, false);
}

void cli_json_begin_array(cli_json *j, FILE *f)
{
    *j = (cli_json){.f = f};
    open(j, NULL, true);
}

void cli_json_object(cli_json *j, const char *key)
{
    open(j, key, false);
}

void cli_json_array(cli_json *j, const char *key)
{
    open(j, key, true);
}

void cli_json_end(cli_json *j)
{
    bool array = j->array[j->depth], broken = j->filled[j->depth] && j->depth <= 2;
    j->depth--;
    if (broken) {
        fprintf(j->f, "\n%*s", 2 * j->depth, "");
    }
    fputc(array ? ']' : '}', j->f);
}

void cli_json_finish(cli_json *j)
{
    while (j->depth > 0) {
        cli_json_end(j);
    }
    fputc('\n', j->f);
}

void cli_json_string(cli_json *j, const char *key, const char *text)
{
    cli_json_bytes(j, key, text, strlen(text));
}

void cli_json_bytes(cli_json *j, const char *key, const char *text, size_t size)
{
    lead(j, key);
    quoted(j->f, text, size);
}

void cli_json_int(cli_json *j, const char *key, int64_t value)
{
    lead(j, key);
    fprintf(j->f, "%" PRId64, value);
}

void cli_json_uint(cli_json *j, const char *key, uint64_t value)
{
    lead(j, key);
    fprintf(j->f, "%" PRIu64, value);
}

void cli_json_number(cli_json *j, const char *key, double value, int digits)
{
    if (!isfinite(value)) {
        cli_json_null(j, key);
        return;
    }
    lead(j, key);
    fprintf(j->f, "%.*g", digits, value);
}

void cli_json_bool(cli_json *j, const char *key, bool value)
{
    lead(j, key);
    fputs(value ? "true" : "false", j->f);
}

void cli_json_null(cli_json *j, const char *key)
{
    lead(j, key);
    fputs("null", j->f);
}
