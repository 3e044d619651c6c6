/* names.h: other names in a model's messages. */
#ifndef NORI_TOOLS_EDIT_NAMES_H
#define NORI_TOOLS_EDIT_NAMES_H

#include "tools/edit/editing.h"

/* What becomes of names, old to new (const char *); a map that is empty changes nothing. A new name of
 * a value must be one that nothing in the model has: it is put in wherever the old one stands, in
 * subgraphs, too, which then means the same. */
typedef struct nori__names {
    nori__arena *arena;
    nori__map values, nodes, dims;
    nori_error *err;
} nori__names;
void nori__names_init(nori__names *names, nori__arena *arena, const nori_allocator *a,
                      nori_error *err);
void nori__names_free(nori__names *names);
/* A copy of the graph's messages with the names put in. */
nori_status nori__names_graph(nori__names *names, const nori__pb_graph *from, nori__pb_graph **copy);
nori_status nori__names_value(nori__names *names, nori__pb_value *value);

/* All names of values, of nodes and of dimensions in a graph and those inside it: key and entry are
 * one text. */
typedef struct nori__name_sets {
    nori__map values, nodes, dims;
    nori__vec value_list, node_list, dim_list; /* in the order they are met */
} nori__name_sets;
nori_status nori__name_sets_of(const nori__pb_graph *graph, nori__arena *arena,
                               nori__name_sets *sets, nori_error *err);
void nori__name_sets_free(nori__name_sets *sets);
/* Messages kept as bytes that are not looked into: whether a text stands in one of them. */
bool nori__names_in_bytes(const nori__str *items, size_t count, const char *text);

#endif
