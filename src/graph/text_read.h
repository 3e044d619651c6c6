/* text_read.h: what the files that read the textual form share: a cursor over the text with one
 * character of sight, lists that grow in the arena, notes that wait for what they are about. */
#ifndef NORI_GRAPH_TEXT_READ_H
#define NORI_GRAPH_TEXT_READ_H

#include "graph/text_form.h"

/* A note in front of what comes next. */
typedef struct nori__note_in {
    const char *at; /* where it stands; NULL: there is none */
    nori__str doc, bytes, denotation;
    NORI__PB_LIST(nori__pb_entry) metadata;
    NORI__PB_LIST(nori__str) dims;
} nori__note_in;

typedef struct nori__text_in {
    const char *start, *at, *end;
    nori__arena *arena;
    nori_error *err;
    nori_status status; /* of the first error: after it nothing is taken */
    int depth;          /* of graphs and types */
    const nori__text_fill *fill;
    nori__note_in note;
    nori__str made;     /* first output of the node being read: the name of a Constant's value */
    bool main_graph;    /* only there tensors are left out */
} nori__text_in;

/* Appends a zeroed item; NULL: out of memory, which is the reader's status then. */
void *nori__text_grow(nori__text_in *r, void *list, size_t size);
#define NORI__GROW(r, list) nori__text_grow((r), &(list), sizeof(*(list).items))

/* text_lex.c. After an error all of them do nothing and give false, NULL or an empty string. */
bool nori__text_fail(nori__text_in *r, const char *at, const char *fmt, ...) NORI__PRINTF(3, 4);
bool nori__text_expected(nori__text_in *r, const char *what); /* "X was expected, found Y" */
int nori__text_peek(nori__text_in *r); /* next character that counts; 0: the end */
bool nori__text_match(nori__text_in *r, char c);
bool nori__text_need(nori__text_in *r, char c, const char *what);
bool nori__text_at_id(nori__text_in *r);         /* a name comes, quoted or not */
bool nori__text_at_word(nori__text_in *r);       /* an unquoted one */
nori__str nori__text_see_word(nori__text_in *r); /* without taking it */
nori__str nori__text_word(nori__text_in *r, const char *what);
nori__str nori__text_id(nori__text_in *r, const char *what);
nori__str nori__text_string(nori__text_in *r, const char *what);
/* A number as it stands, sign included; *point: it is no integer. */
nori__str nori__text_number(nori__text_in *r, const char *what, bool *point);
int64_t nori__text_int(nori__text_in *r, const char *what);
uint64_t nori__text_uint(nori__text_in *r, const char *what);
float nori__text_float(nori__text_in *r, const char *what);
double nori__text_double(nori__text_in *r, const char *what);
bool nori__text_deeper(nori__text_in *r); /* false: too deep. Ends with r->depth-- */
nori__note_in nori__text_note(nori__text_in *r); /* takes what waits */
void nori__text_keep(nori__text_in *r, nori__pb_head *head, nori__str bytes);

/* text_read_value.c */
bool nori__text_at_type(nori__text_in *r);
void nori__text_type(nori__text_in *r, nori__pb_type *type);
/* Behind type and name: the content. name: what a fill is asked for, n 0 for nothing. */
void nori__text_tensor_data(nori__text_in *r, const nori__pb_type *type, nori__str name,
                            nori__pb_tensor *t);
void nori__text_sparse_data(nori__text_in *r, const nori__pb_type *type, nori__str name,
                            nori__pb_sparse *s);
void nori__text_attr(nori__text_in *r, nori__pb_attr *a);
void nori__text_entries(nori__text_in *r, void *list); /* of nori__pb_entry, behind '[' to ']' */

/* text_read.c */
void nori__text_graph(nori__text_in *r, nori__pb_graph *g);

#endif
