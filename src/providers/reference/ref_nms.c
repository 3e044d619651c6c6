/* ref_nms.c: NonMaxSuppression. Areas in float32, as files are made with; boxes of no area suppress
 * nothing; NaN scores are never chosen; of equal scores the lower index comes first. */
#include "providers/reference/ref_nn.h"

typedef struct candidate {
    float score;
    int64_t index;
} candidate;

static bool before(candidate a, candidate b)
{
    return a.score > b.score || (a.score == b.score && a.index < b.index);
}

/* The candidates are a heap: few of them may be asked for. */
static void sink(candidate *heap, int64_t n, int64_t at)
{
    candidate c = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && before(heap[child + 1], heap[child]);
        if (!before(heap[child], c)) {
            break;
        }
        heap[at] = heap[child];
    }
    heap[at] = c;
}

static candidate take_first(candidate *heap, int64_t *n)
{
    candidate first = heap[0];
    heap[0] = heap[--*n];
    if (*n > 0) {
        sink(heap, *n, 0);
    }
    return first;
}

typedef struct corners {
    float x0, y0, x1, y1;
} corners;

static corners corners_of(const float *b, bool center)
{
    if (center) {
        return (corners){b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2};
    }
    /* y, x, y, x of any two diagonal corners */
    return (corners){b[1] < b[3] ? b[1] : b[3], b[0] < b[2] ? b[0] : b[2],
                     b[1] < b[3] ? b[3] : b[1], b[0] < b[2] ? b[2] : b[0]};
}

/* The chosen boxes of a class, side by side in groups, so that a candidate meets a group at once. Places
 * without a box have no area. */
#define GROUP 16
typedef struct group {
    float x0[GROUP], y0[GROUP], x1[GROUP], y1[GROUP], area[GROUP];
} group;

static float least(float a, float b)
{
    return a < b ? a : b;
}

static float most(float a, float b)
{
    return a > b ? a : b;
}

static bool overlaps(const group *g, corners a, float limit)
{
    float one = (a.x1 - a.x0) * (a.y1 - a.y0);
    int hits = 0;
    for (int i = 0; i < GROUP; i++) {
        float w = least(a.x1, g->x1[i]) - most(a.x0, g->x0[i]);
        float h = least(a.y1, g->y1[i]) - most(a.y0, g->y0[i]);
        float common = w * h, all = one + g->area[i] - common;
        hits |= (w > 0) & (h > 0) & (common > 0) & (one > 0) & (g->area[i] > 0) & (all > 0) &
                (common / all > limit);
    }
    return hits != 0;
}

static void keep_box(group *groups, int64_t at, corners c)
{
    group *g = &groups[at / GROUP];
    if (at % GROUP == 0) {
        memset(g, 0, sizeof(*g));
    }
    g->x0[at % GROUP] = c.x0;
    g->y0[at % GROUP] = c.y0;
    g->x1[at % GROUP] = c.x1;
    g->y1[at % GROUP] = c.y1;
    g->area[at % GROUP] = (c.x1 - c.x0) * (c.y1 - c.y0);
}

typedef struct nms {
    int64_t batches, classes, boxes, most; /* most: outputs a class */
    float overlap, score;
    bool center, has_score;
    const float *box, *scores;
    candidate *list; /* boxes entries */
    group *groups;   /* room for most boxes */
    int64_t *chosen; /* triples */
    int64_t n_chosen;
} nms;

static void one_class(nms *s, int64_t batch, int64_t class)
{
    const float *scores = s->scores + (batch * s->classes + class) * s->boxes;
    const float *boxes = s->box + batch * s->boxes * 4;
    int64_t n = 0, first = s->n_chosen;
    for (int64_t i = 0; i < s->boxes; i++) {
        if (scores[i] == scores[i] && (!s->has_score || scores[i] > s->score)) {
            s->list[n++] = (candidate){scores[i], i};
        }
    }
    for (int64_t i = n / 2 - 1; i >= 0; i--) {
        sink(s->list, n, i);
    }
    while (n > 0 && s->n_chosen - first < s->most) {
        int64_t index = take_first(s->list, &n).index;
        corners c = corners_of(boxes + index * 4, s->center);
        int64_t chosen = s->n_chosen - first;
        bool keep = true;
        for (int64_t j = 0; j < chosen && keep; j += GROUP) {
            keep = !overlaps(&s->groups[j / GROUP], c, s->overlap);
        }
        if (keep) {
            keep_box(s->groups, chosen, c);
            int64_t *to = s->chosen + 3 * s->n_chosen++;
            to[0] = batch;
            to[1] = class;
            to[2] = index;
        }
    }
}

static nori_status setup(nori_call *call, nms *s)
{
    NORI__TRY(nori__nn_need(call, 0, "boxes", 3));
    NORI__TRY(nori__nn_need(call, 1, "scores", 3));
    const nori_tensor *boxes = call->in[0], *scores = call->in[1];
    if (boxes->type != NORI_FLOAT || scores->type != NORI_FLOAT) {
        return nori__nn_type_error(call, boxes->type != NORI_FLOAT ? 0 : 1);
    }
    if (boxes->dims[2] != 4 || scores->dims[0] != boxes->dims[0] ||
        scores->dims[2] != boxes->dims[1]) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "boxes are %lld x %lld x %lld, scores %lld x %lld x %lld",
                          (long long)boxes->dims[0], (long long)boxes->dims[1],
                          (long long)boxes->dims[2], (long long)scores->dims[0],
                          (long long)scores->dims[1], (long long)scores->dims[2]);
    }
    for (uint32_t i = 2; i < 5; i++) {
        if (nori__nn_has(call, i) && call->in[i]->count > 1) {
            return nori__nn_count(call, i, "threshold", 1);
        }
    }
    *s = (nms){.batches = boxes->dims[0], .classes = scores->dims[1], .boxes = boxes->dims[1],
               .center = nori__attr_i(call->node, "center_point_box", 0) != 0,
               .box = boxes->data, .scores = scores->data};
    if (nori__nn_has(call, 2) && call->in[2]->count == 1) {
        s->most = nori__tensor_get_i64(call->in[2], 0);
        s->most = s->most < 0 ? 0 : s->most > s->boxes ? s->boxes : s->most;
    }
    if (nori__nn_has(call, 3) && call->in[3]->count == 1) {
        s->overlap = (float)nori__tensor_get_f64(call->in[3], 0);
    }
    s->has_score = nori__nn_has(call, 4) && call->in[4]->count == 1;
    s->score = s->has_score ? (float)nori__tensor_get_f64(call->in[4], 0) : 0;
    return NORI_OK;
}

nori_status nori__ref_NonMaxSuppression(nori_call *call)
{
    nms s = {0};
    NORI__TRY(setup(call, &s));
    int64_t room;
    size_t list_bytes = 0, chosen_bytes = 0, group_bytes = 0;
    if (!nori__mul_dim(s.batches, s.classes, &room) || !nori__mul_dim(room, s.most, &room)) {
        return nori__no_memory(call->err);
    }
    s.list = nori__nn_scratch(call, s.boxes, sizeof *s.list, &list_bytes);
    s.chosen = nori__nn_scratch(call, room, 3 * sizeof *s.chosen, &chosen_bytes);
    s.groups = nori__nn_scratch(call, s.most / GROUP + 1, sizeof *s.groups, &group_bytes);
    nori_status status = s.list && s.chosen && s.groups ? NORI_OK : nori__no_memory(call->err);
    if (status == NORI_OK) {
        for (int64_t i = 0; i < s.batches * s.classes && s.most > 0; i++) {
            one_class(&s, i / s.classes, i % s.classes);
        }
        nori_tensor *y = NULL;
        int64_t dims[2] = {s.n_chosen, 3};
        status = call->exec->alloc(call, 0, NORI_INT64, 2, dims, &y);
        if (status == NORI_OK && s.n_chosen > 0) {
            memcpy(y->data, s.chosen, (size_t)s.n_chosen * 3 * sizeof *s.chosen);
        }
    }
    nori__release(call->allocator, s.groups, group_bytes);
    nori__release(call->allocator, s.list, list_bytes);
    nori__release(call->allocator, s.chosen, chosen_bytes);
    return status;
}
