/* text_words.c: names of types, identifiers, strings, numbers and notes of the textual form. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/text_write.h"

static const char *const type_names[NORI_TYPE_COUNT] = {
    "undefined", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool",
    "float16", "double", "uint32", "uint64", "complex64", "complex128", "bfloat16",
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4",
    "float4e2m1", "float8e8m0", "uint2", "int2",
};

static const char *const kind_names[] = {
    NULL, "float", "int", "string", "tensor", "graph", "floats", "ints", "strings", "tensors",
    "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos",
};

const char *nori__text_type_name(int32_t type)
{
    return type >= 0 && type < NORI_TYPE_COUNT ? type_names[type] : NULL;
}

static size_t find(const char *const *names, size_t count, const char *name, size_t size)
{
    for (size_t i = 1; i < count; i++) {
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) {
            return i;
        }
    }
    return 0;
}

int32_t nori__text_type_find(const char *name, size_t size)
{
    return (int32_t)find(type_names, NORI_TYPE_COUNT, name, size);
}

const char *nori__text_kind_name(nori__pb_attr_kind kind)
{
    return (size_t)kind < NORI__COUNT(kind_names) ? kind_names[kind] : NULL;
}

nori__pb_attr_kind nori__text_kind_find(const char *name, size_t size)
{
    return (nori__pb_attr_kind)find(kind_names, NORI__COUNT(kind_names), name, size);
}

/* ---- tokens ---- */

void nori__put_word(nori__text_out *o, const char *word)
{
    nori__text_add(o->text, word, strlen(word));
}

void nori__put_quoted(nori__text_out *o, nori__str s)
{
    nori__put_word(o, "\"");
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"' || s.p[i] == '\\') {
            nori__put_word(o, "\\");
        }
        nori__text_add(o->text, &s.p[i], 1);
    }
    nori__put_word(o, "\"");
}

static bool plain(nori__str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && c >= '0' && c <= '9')) {
            return false;
        }
    }
    return s.n > 0;
}

/* Words that begin a type would be taken for one. */
static bool reserved(nori__str s)
{
    static const char *const words[] = {"seq", "map", "optional", "sparse_tensor", "opaque",
                                        "undefined", "inf", "infinity", "nan"};
    for (size_t i = 0; i < NORI__COUNT(words); i++) {
        if (nori__str_is(s, words[i])) {
            return true;
        }
    }
    return nori__text_type_find(s.p, s.n) != 0;
}

void nori__put_id(nori__text_out *o, nori__str s)
{
    if (plain(s) && !reserved(s)) {
        nori__text_add(o->text, s.p, s.n);
    } else {
        nori__put_quoted(o, s);
    }
}

void nori__put_line(nori__text_out *o)
{
    static const char blanks[] = "                                ";
    size_t n = 4 * (size_t)(o->depth + 1);
    nori__put_word(o, "\n");
    nori__text_add(o->text, blanks, n < sizeof(blanks) - 1 ? n : sizeof(blanks) - 1);
}

/* printf's text with the decimal point of the C locale, whatever locale the program is in. */
static void put_number(nori__text_out *o, const char *text, bool point)
{
    bool seen = false, other = false;
    for (const char *p = text; *p; p++) {
        bool own = isdigit((unsigned char)*p) || strchr("+-eE", *p);
        if (own) {
            nori__text_add(o->text, p, 1);
        } else if (!other) {
            nori__put_word(o, ".");
        }
        other = !own;
        seen = seen || !own || *p == 'e';
    }
    if (!seen && (point || strcmp(text, "-0") == 0)) { /* "-0" would be an integer without sign */
        nori__put_word(o, ".0");
    }
}

static bool put_special(nori__text_out *o, double v)
{
    if (isnan(v)) {
        nori__put_word(o, signbit(v) ? "-nan" : "nan");
    } else if (isinf(v)) {
        nori__put_word(o, v < 0 ? "-inf" : "inf");
    }
    return !isfinite(v);
}

void nori__put_float(nori__text_out *o, float v, bool point)
{
    char text[64];
    int digits = 6;
    if (put_special(o, (double)v)) {
        return;
    }
    do {
        snprintf(text, sizeof(text), "%.*g", digits, (double)v);
    } while (strtof(text, NULL) != v && digits++ < 9);
    put_number(o, text, point);
}

void nori__put_double(nori__text_out *o, double v)
{
    char text[64];
    int digits = 15;
    if (put_special(o, v)) {
        return;
    }
    do {
        snprintf(text, sizeof(text), "%.*g", digits, v);
    } while (strtod(text, NULL) != v && digits++ < 17);
    put_number(o, text, false);
}

/* ---- notes ---- */

static void note_string(nori__text_out *o, nori__str s)
{
    nori__put_word(o, "\"");
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\n' || c == '\t') {
            nori__put_word(o, c == '\n' ? "\\n" : "\\t");
        } else if (c == '"' || c == '\\') {
            nori__text_printf(o->text, "\\%c", c);
        } else if (c < 32 || c == 127) {
            nori__text_printf(o->text, "\\x%02x", c);
        } else {
            nori__text_add(o->text, &s.p[i], 1);
        }
    }
    nori__put_word(o, "\"");
}

static void clause(nori__text_out *o, bool *begun, const char *name)
{
    nori__text_printf(o->text, "%s%s: ", *begun ? " " : "#: ", name);
    *begun = true;
}

static void put_hex(nori__text_out *o, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        nori__text_printf(o->text, "%02x", (unsigned char)bytes[i]);
    }
}

static void hex_varint(nori__text_out *o, uint64_t v)
{
    char byte;
    do {
        byte = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        put_hex(o, &byte, 1);
    } while (v >>= 7);
}

/* A field of the kind that has a length: tag, length, bytes. */
static void hex_field(nori__text_out *o, bool *begun, bool *open, uint32_t number, nori__str bytes)
{
    if (!*open) {
        clause(o, begun, "bytes");
        nori__put_word(o, "\"");
        *open = true;
    }
    hex_varint(o, (uint64_t)number << 3 | 2);
    hex_varint(o, bytes.n);
    put_hex(o, bytes.p, bytes.n);
}

static void note_bytes(nori__text_out *o, const nori__note_out *n, bool *begun)
{
    bool open = false;
    for (size_t k = 0; k < NORI__COUNT(n->kept); k++) {
        for (size_t i = 0; i < n->kept[k].count; i++) {
            hex_field(o, begun, &open, n->kept[k].number, n->kept[k].items[i]);
        }
    }
    if (n->raw_type.p) {
        hex_field(o, begun, &open, 2, n->raw_type);
    }
    for (size_t i = 0; n->node && i < n->node->attrs.count; i++) {
        const nori__pb_attr *a = &n->node->attrs.items[i];
        if (!nori__attr_has_text(a)) {
            hex_field(o, begun, &open, 5, a->head.bytes);
        }
    }
    for (const struct nori__pb_unknown *u = n->head ? n->head->unknown : NULL; u; u = u->next) {
        if (!open) {
            clause(o, begun, "bytes");
            nori__put_word(o, "\"");
            open = true;
        }
        put_hex(o, u->bytes.p, u->bytes.n);
    }
    nori__put_word(o, open ? "\"" : "");
}

static void note_denotations(nori__text_out *o, const nori__pb_type *t, bool *begun)
{
    bool any = false;
    if (t->denotation.n) {
        clause(o, begun, "denotation");
        note_string(o, t->denotation);
    }
    for (size_t i = 0; t->shape && i < t->shape->dims.count; i++) {
        any = any || t->shape->dims.items[i].denotation.n > 0;
    }
    if (!any) {
        return;
    }
    clause(o, begun, "dim_denotations");
    for (size_t i = 0; i < t->shape->dims.count; i++) {
        nori__put_word(o, i ? ", " : "[");
        note_string(o, t->shape->dims.items[i].denotation);
    }
    nori__put_word(o, "]");
}

void nori__put_note(nori__text_out *o, const nori__note_out *n)
{
    bool begun = false;
    if (n->doc.n) {
        clause(o, &begun, "doc_string");
        note_string(o, n->doc);
    }
    for (size_t i = 0; i < n->n_metadata; i++) {
        if (i == 0) {
            clause(o, &begun, "metadata_props");
        }
        nori__put_word(o, i ? ", " : "[");
        note_string(o, n->metadata[i].key);
        nori__put_word(o, ": ");
        note_string(o, n->metadata[i].value);
        nori__put_word(o, i + 1 == n->n_metadata ? "]" : "");
    }
    if (n->type) {
        note_denotations(o, n->type, &begun);
    }
    note_bytes(o, n, &begun);
    if (begun) {
        nori__put_line(o);
    }
}
