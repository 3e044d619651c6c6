/* rename.c: nori_rename: other names of values, nodes and dimensions. */
#include "tools/edit/names.h"

static const char *const kinds[] = {"value", "node", "dimension"};

static nori_status check(const nori_model *model, const nori__name_sets *sets,
                         const nori_name *names, size_t count, size_t at, nori_error *err)
{
    const nori_name *n = &names[at];
    const nori__pb_model *pb = model->source->pb;
    const nori__map *maps[] = {&sets->values, &sets->nodes, &sets->dims};
    const nori__map *all = maps[n->kind];
    bool freed = false;
    for (size_t i = 0; i < count; i++) {
        freed = freed || (names[i].kind == n->kind && nori__same(names[i].from, n->to));
        if (i < at && names[i].kind == n->kind && nori__same(names[i].from, n->from)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "%s \"%.200s\" is given two names",
                              kinds[n->kind], n->from);
        }
        if (i < at && names[i].kind == n->kind && nori__same(names[i].to, n->to)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "two are to be named \"%.200s\"", n->to);
        }
    }
    if (!n->from[0] || !nori__map_get(all, n->from)) {
        nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT, "the model has no %s named \"%.200s\"",
                                   kinds[n->kind], n->from);
        nori__hint(err, "`nori inspect` lists the names there are");
        return s;
    }
    /* Two dimensions of one name would be one size. */
    if (nori__map_get(all, n->to) && !freed) {
        nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT,
                                   "\"%.200s\" cannot become \"%.200s\": there is a %s of that name",
                                   n->from, n->to, kinds[n->kind]);
        nori__hint(err, "take another name, or rename that one as well");
        return s;
    }
    if (n->kind == NORI_NAME_VALUE &&
        (nori__names_in_bytes(pb->training.items, pb->training.count, n->from) ||
         nori__names_in_bytes(pb->graph->quantization.items, pb->graph->quantization.count, n->from))) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "the model's training info or quantization annotations speak of \"%.200s\", "
                          "and would no longer fit", n->from);
    }
    return NORI_OK;
}

static nori_status fill(nori__names *maps, const nori_name *names, size_t count, nori_error *err)
{
    nori__map *list[] = {&maps->values, &maps->nodes, &maps->dims};
    for (size_t i = 0; i < count; i++) {
        char *from = nori__arena_text(maps->arena, names[i].from);
        char *to = nori__arena_text(maps->arena, names[i].to);
        if (!from || !to || !nori__map_put(list[names[i].kind], from, to)) {
            return nori__no_memory(err);
        }
    }
    return NORI_OK;
}

static nori_status rename_all(const nori_model *model, const nori_name *names, size_t count,
                              nori__arena *arena, nori__names *maps, nori__name_sets *sets,
                              nori_model **renamed, nori_error *err)
{
    nori__pb_model pb = *model->source->pb;
    NORI__TRY(nori__name_sets_of(pb.graph, arena, sets, err));
    for (size_t i = 0; i < count; i++) {
        NORI__TRY(check(model, sets, names, count, i, err));
    }
    NORI__TRY(fill(maps, names, count, err));
    NORI__TRY(nori__names_graph(maps, pb.graph, &pb.graph));
    return nori__model_from_pb(&model, 1, &pb, renamed, err);
}

nori_status nori_rename(const nori_model *model, const nori_name *names, size_t count,
                        nori_model **renamed, nori_error *err)
{
    nori_error own = {0};
    err = err ? err : &own;
    if (!model || !renamed || (count > 0 && !names)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model, renamed and names must not be NULL");
    }
    *renamed = NULL;
    for (size_t i = 0; i < count; i++) {
        if ((int)names[i].kind < 0 || (size_t)names[i].kind >= NORI__COUNT(kinds) || !names[i].from ||
            !names[i].to || !names[i].to[0]) {
            return nori__fail(err, NORI_ERROR_ARGUMENT,
                              "name %zu: a kind, the old name and a new one that is not empty were "
                              "expected", i);
        }
    }
    nori__arena arena;
    nori__names maps;
    nori__name_sets sets = {0};
    nori__arena_init(&arena, model->source->allocator);
    nori__names_init(&maps, &arena, arena.allocator, err);
    nori_status s = rename_all(model, names, count, &arena, &maps, &sets, renamed, err);
    if (sets.values.allocator) {
        nori__name_sets_free(&sets);
    }
    nori__names_free(&maps);
    nori__arena_free(&arena);
    return s;
}
