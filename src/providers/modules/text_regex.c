/* text_regex.c: full matches of regular expressions, by PCRE2, in the syntax and with the promises of
 * RE2, which ONNX names: UTF-8, a dot is any character but a line feed, $ is the end of the text and
 * nothing else, \d \s \w are ASCII, and what RE2 leaves out (look-around, references back, atomic
 * groups, recursion) is refused. Matching follows all alternatives at once, so no pattern takes
 * exponential time. A text that is not UTF-8 matches nothing. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/modules/module.h"

typedef struct compiled {
    pcre2_code *code;
    pcre2_match_data *match;
    int *room; /* of the matcher: grows to what a text needs */
    size_t room_count;
} compiled;

enum { ROOM_FIRST = 256, ROOM_MOST = 1 << 22 };

static void say(char *why, size_t size, int code)
{
    if (pcre2_get_error_message(code, (PCRE2_UCHAR *)why, size) == PCRE2_ERROR_BADDATA) {
        snprintf(why, size, "error %d", code);
    }
}

/* What follows "(?" in RE2: flags, a group without number, or a name. */
static int is_group(const char *p, const char *end)
{
    if (p < end && *p == 'P') {
        return p + 1 < end && p[1] == '<';
    }
    if (p < end && *p == '<') {
        return p + 1 < end && p[1] != '=' && p[1] != '!';
    }
    return p < end && (*p == ':' || *p == '-' || strchr("imsU", *p)) && *p != 0;
}

/* Names a construct of PCRE2 that RE2 does not have, or NULL. */
static const char *beyond_re2(const char *p, const char *end)
{
    int in_class = 0, repeated = 0;
    for (; p < end; p++) {
        int was_repeated = repeated;
        repeated = 0;
        if (*p == '\\' && p + 1 < end) {
            p++;
            if (*p == 'Q') { /* quoted up to \E */
                while (p + 1 < end && !(p[0] == '\\' && p[1] == 'E')) {
                    p++;
                }
                p += p + 1 < end;
            } else if (!in_class && *p >= '1' && *p <= '9') {
                return "a reference back to a group";
            } else if (*p != 0 && strchr("kgKGRXZHhVNC", *p)) {
                return "an escape other than RE2's";
            }
        } else if (in_class) {
            if (*p == '[' && p + 1 < end && p[1] == ':') {
                while (p < end && *p != ']') { /* [:alpha:] */
                    p++;
                }
            } else {
                in_class = *p != ']';
            }
        } else if (*p == '[') {
            in_class = 1;
            p += p + 1 < end && p[1] == '^';
            p += p + 1 < end && p[1] == ']'; /* a bracket that comes first is meant */
        } else if (*p == '(' && p + 1 < end && p[1] == '*') {
            return "a verb (*...)";
        } else if (*p == '(' && p + 1 < end && p[1] == '?' && !is_group(p + 2, end)) {
            return "a group (?...) other than RE2's, such as look-around";
        } else if (*p == '+' && was_repeated) {
            return "a possessive repetition";
        } else if (*p == '*' || *p == '+' || *p == '?' || *p == '}') {
            repeated = 1;
        }
    }
    return NULL;
}

static void discard(void *pattern)
{
    compiled *c = pattern;
    if (c) {
        pcre2_match_data_free(c->match);
        pcre2_code_free(c->code);
        free(c->room);
        free(c);
    }
}

static void *compile(const char *pattern, size_t size, char *why, size_t why_size)
{
    const char *beyond = beyond_re2(pattern, pattern + size);
    if (beyond) {
        snprintf(why, why_size, "it has %s", beyond);
        return NULL;
    }
    int code = 0;
    PCRE2_SIZE at = 0;
    compiled *c = calloc(1, sizeof(*c));
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (c && context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        c->code = pcre2_compile((PCRE2_SPTR)pattern, size,
                                PCRE2_UTF | PCRE2_ANCHORED | PCRE2_DOLLAR_ENDONLY |
                                    PCRE2_NEVER_BACKSLASH_C,
                                &code, &at, context);
        c->match = c->code ? pcre2_match_data_create(1, NULL) : NULL;
        c->room = malloc(ROOM_FIRST * sizeof(int));
        c->room_count = ROOM_FIRST;
    }
    pcre2_compile_context_free(context);
    if (!c || !c->match || !c->room) {
        if (code != 0) {
            char text[200];
            say(text, sizeof(text), code);
            snprintf(why, why_size, "%s, at byte %zu", text, (size_t)at);
        } else {
            snprintf(why, why_size, "out of memory");
        }
        discard(c);
        return NULL;
    }
    return c;
}

static int match(void *pattern, const char *text, size_t size, char *why, size_t why_size)
{
    compiled *c = pattern;
    for (;;) {
        int n = pcre2_dfa_match(c->code, (PCRE2_SPTR)(text ? text : ""), size, 0, 0, c->match, NULL,
                                c->room, c->room_count);
        if (n >= 0) { /* the longest match comes first */
            return pcre2_get_ovector_pointer(c->match)[1] == size;
        }
        if (n == PCRE2_ERROR_NOMATCH || (n <= PCRE2_ERROR_UTF8_ERR1 && n >= PCRE2_ERROR_UTF8_ERR21)) {
            return 0;
        }
        int *more = NULL;
        if (n == PCRE2_ERROR_DFA_WSSIZE && c->room_count < ROOM_MOST) {
            more = realloc(c->room, 4 * c->room_count * sizeof(int));
        }
        if (!more) {
            say(why, why_size, n);
            return -1;
        }
        c->room = more;
        c->room_count *= 4;
    }
}

const nori__module *nori_module(void)
{
    static const nori__module module = {.version = NORI__MODULE_VERSION,
                                        .compile = compile,
                                        .match = match,
                                        .discard = discard};
    return &module;
}
