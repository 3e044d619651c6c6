/* json.h: writes JSON, one value after another; commas, nesting and escapes are its business. */
#ifndef NORI_CLI_JSON_H
#define NORI_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Deeper than any value of a model nests. */
#define CLI_JSON_DEPTH 128

/* key is NULL inside arrays and for the outermost value. */
typedef struct cli_json {
    FILE *f;
    int depth;
    bool filled[CLI_JSON_DEPTH]; /* by depth: has an entry already */
    bool array[CLI_JSON_DEPTH];
} cli_json;

void cli_json_begin(cli_json *j, FILE *f); /* opens the outermost object */
void cli_json_begin_array(cli_json *j, FILE *f);
void cli_json_finish(cli_json *j); /* closes all that is open, and the line */

void cli_json_object(cli_json *j, const char *key);
void cli_json_array(cli_json *j, const char *key);
void cli_json_end(cli_json *j); /* of the innermost object or array */
/* Bytes that are not UTF-8 become U+FFFD: names in models may hold anything. */
void cli_json_string(cli_json *j, const char *key, const char *text);
void cli_json_bytes(cli_json *j, const char *key, const char *text, size_t size);
void cli_json_int(cli_json *j, const char *key, int64_t value);
void cli_json_uint(cli_json *j, const char *key, uint64_t value);
/* As many digits as are asked for; what is not finite has no place in JSON and becomes null. */
void cli_json_number(cli_json *j, const char *key, double value, int digits);
void cli_json_bool(cli_json *j, const char *key, bool value);
void cli_json_null(cli_json *j, const char *key);

/* Bytes of the well-formed UTF-8 sequence at p, 0 when there is none. */
size_t cli_utf8_length(const unsigned char *p, size_t left);

#endif
