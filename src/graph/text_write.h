/* text_write.h: what the files that write the textual form share. */
#ifndef NORI_GRAPH_TEXT_WRITE_H
#define NORI_GRAPH_TEXT_WRITE_H

#include "graph/text_form.h"

typedef struct nori__text_out {
    nori__text *text;
    const nori_allocator *a;
    nori_error *err;
    nori_status status;
    int64_t most; /* elements of a tensor of the main graph that is written out */
    nori__text_left left;
    int depth;    /* of graphs: 0 is the main one, or a function's body */
    bool inside;  /* a function: nothing is left out, as nothing would name it */
} nori__text_out;

/* text_words.c: what tokens are made of. */
void nori__put_word(nori__text_out *o, const char *word);
void nori__put_quoted(nori__text_out *o, nori__str s);
void nori__put_id(nori__text_out *o, nori__str s); /* quoted where it must be */
void nori__put_line(nori__text_out *o);            /* new line, indented by depth */
void nori__put_float(nori__text_out *o, float v, bool point);
void nori__put_double(nori__text_out *o, double v);
/* A note: only what is not empty is said, and nothing when all is. */
typedef struct nori__note_out {
    nori__str doc;
    const nori__pb_entry *metadata;
    size_t n_metadata;
    const nori__pb_head *head; /* whose unknown fields are kept */
    struct {
        uint32_t number;      /* of a field that is a list of messages kept as bytes */
        const nori__str *items;
        size_t count;
    } kept[2];
    const nori__pb_type *type; /* whose denotations are said */
    nori__str raw_type;        /* a type that only bytes can say: field 2 of a value */
    const nori__pb_node *node; /* attributes that only bytes can say */
} nori__note_out;
void nori__put_note(nori__text_out *o, const nori__note_out *note);

/* text_write_value.c */
bool nori__type_has_text(const nori__pb_type *type); /* else only bytes can say it */
void nori__put_type(nori__text_out *o, const nori__pb_type *type);
void nori__put_tensor(nori__text_out *o, const nori__pb_tensor *t, bool equals, bool may_leave);
void nori__put_sparse(nori__text_out *o, const nori__pb_sparse *s);
bool nori__attr_has_text(const nori__pb_attr *a);
void nori__put_attr(nori__text_out *o, const nori__pb_attr *a, bool may_leave);

/* text_write.c */
void nori__put_graph(nori__text_out *o, const nori__pb_graph *g);

#endif
