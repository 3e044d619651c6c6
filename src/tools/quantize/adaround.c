/* adaround.c: the nearest integer is not the best one: what rounding does to a sum depends on all of
 * its weights together. Each weight of a layer goes up or down to one of its two neighbours so that
 * the layer's sums over the samples move least (the aim of AdaRound; Nagel and others, 2020). With
 * H = sum of x x^T over what the layer reads, the error of one output is d^T H d for the errors d of
 * its weights: H is gathered once a layer, from some hundred places of the samples, and then one
 * weight after another is turned where that lowers the error, until none does. The error only falls,
 * and the work is bounded: layers too wide for it keep the nearest integers, with a note. */
#include <math.h>

#include "ops/window.h"
#include "tools/quantize/search.h"

#define MOST_ROWS 1536                  /* of a column: H takes their square */
#define MOST_BYTES ((size_t)256 << 20)  /* of all H */
#define MOST_PLACES 4096                /* of a layer's samples */
#define GATHER_WORK 2e9                 /* products of all layers while H is gathered */
#define TURN_WORK 3e9                   /* the same while weights are turned, about */
#define SWEEPS 8
#define DAMPING 0.01                    /* of the mean of H's diagonal, added to it */
#define SHARES 16                       /* of a layer's places: at most one comes from a sample */

typedef struct layer {
    struct layer *same;     /* the next that reads the same value */
    const nori__node *node;
    const nori_tensor *w;
    nori__q_weight made;    /* to nearest */
    int axis;
    bool centred;           /* the mean error goes into the bias: only the rest counts */
    int64_t rows, columns;  /* weights of an output, outputs; of all groups */
    int64_t row_step, column_step, groups;
    bool window;            /* a convolution of one or two spatial dimensions */
    double *sums;           /* [groups][rows][rows], the upper half */
    double *means;          /* [groups][rows] */
    float *row;             /* one place */
    int64_t places, share, seen;
} layer;

typedef struct rounder {
    nori__quantizer *q;
    nori__arena arena;
    nori__map by_input; /* name -> layer * */
    nori__vec layers;
    size_t bytes, wide;
} rounder;

/* ---- which layers ---- */

/* Rows and columns of the weight as sums see them; false: not of a form this knows. */
static bool shape_of(layer *l)
{
    const nori__node *n = l->node;
    const nori_tensor *w = l->w;
    l->groups = 1;
    if (nori__node_is(n, NORI__OP_ONNX_Conv)) {
        l->window = true;
        l->groups = nori__attr_i(n, "group", 1);
        if (w->rank < 3 || w->rank > 4 || l->groups < 1 || w->dims[0] % l->groups != 0) {
            return false;
        }
        l->columns = w->dims[0];
        l->rows = w->count / w->dims[0];
        l->row_step = 1;
        l->column_step = l->rows;
        return true;
    }
    bool gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    if ((!gemm && !nori__node_is(n, NORI__OP_ONNX_MatMul)) || w->rank != 2 ||
        (gemm && nori__attr_i(n, "transA", 0) != 0)) {
        return false;
    }
    bool turned = gemm && nori__attr_i(n, "transB", 0) != 0;
    l->rows = w->dims[turned ? 1 : 0];
    l->columns = w->dims[turned ? 0 : 1];
    l->row_step = turned ? 1 : w->dims[1];
    l->column_step = turned ? w->dims[1] : 1;
    return true;
}

static nori_status take_layer(rounder *r, const nori__node *n)
{
    nori__quantizer *q = r->q;
    const nori_tensor *w = n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
    layer found = {.node = n, .w = w};
    if (nori__q_role_of(n) != NORI__Q_WEIGHTED || !w || w->type != NORI_FLOAT || w->count == 0 ||
        !n->inputs[0] || !n->outputs[0] || nori__q_excluded(q, n) || !shape_of(&found)) {
        return NORI_OK;
    }
    size_t need = found.rows <= MOST_ROWS ? (size_t)(found.groups * found.rows * found.rows) *
                                                sizeof(double)
                                          : SIZE_MAX;
    if (need > MOST_BYTES - r->bytes) {
        r->wide++;
        return NORI_OK;
    }
    r->bytes += need;
    layer *l = nori__arena_alloc(&r->arena, sizeof(*l));
    char *name = nori__arena_text(&r->arena, n->inputs[0]->name);
    if (!l || !name) {
        return nori__no_memory(q->err);
    }
    *l = found;
    l->axis = nori__q_channel_axis(q, n, w);
    l->centred = q->steps & NORI_QUANTIZE_CORRECT_BIAS && nori__q_plain(n) &&
                 !nori__node_is(n, NORI__OP_ONNX_MatMul);
    l->sums = nori__arena_alloc(&r->arena, need);
    l->means = nori__arena_array(&r->arena, (size_t)(l->groups * l->rows), sizeof(*l->means));
    l->row = nori__arena_array(&r->arena, (size_t)l->rows, sizeof(*l->row));
    l->same = nori__map_get(&r->by_input, name);
    bool ok = l->sums && l->means && l->row && nori__map_put(&r->by_input, name, l) &&
              nori__vec_push(&r->layers, l);
    return ok ? NORI_OK : nori__no_memory(q->err);
}

/* The work is shared out evenly: a layer of few weights gets by with less and leaves the rest. */
static void share_out(rounder *r)
{
    double each = GATHER_WORK / (double)(r->layers.count + 1);
    size_t samples = r->q->limit > 0 && r->q->limit < SHARES ? r->q->limit : SHARES;
    for (size_t i = 0; i < r->layers.count; i++) {
        layer *l = r->layers.items[i];
        double one = 0.5 * (double)l->groups * (double)l->rows * (double)l->rows;
        double places = each / one;
        l->places = places > MOST_PLACES ? MOST_PLACES : (int64_t)places;
        l->share = l->places / (int64_t)samples + 1;
    }
}

/* ---- what layers read ---- */

static void add_row(layer *l, int64_t group)
{
    double *sums = l->sums + group * l->rows * l->rows, *means = l->means + group * l->rows;
    for (int64_t i = 0; i < l->rows; i++) {
        double v = (double)l->row[i], *row = sums + i * l->rows;
        means[i] += v;
        for (int64_t k = i; v != 0 && k < l->rows; k++) {
            row[k] += v * (double)l->row[k];
        }
    }
}

static bool finite_row(const layer *l)
{
    float sum = 0;
    for (int64_t i = 0; i < l->rows; i++) {
        sum += l->row[i] - l->row[i]; /* NaN where it is not a number */
    }
    return sum == 0;
}

/* What one output place of a convolution reads, for one group; zeros where the window hangs over. */
static void read_window(layer *l, const nori_tensor *t, const nori__window *w, int64_t batch,
                        int64_t group, const int64_t *out)
{
    int64_t per = l->w->dims[1], plane = w->n == 2 ? t->dims[2] * t->dims[3] : t->dims[2];
    const float *x = (const float *)t->data + (batch * t->dims[1] + group * per) * plane;
    int64_t width = w->n == 2 ? t->dims[3] : 1, at = 0;
    for (int64_t c = 0; c < per; c++, x += plane) {
        for (int64_t i = 0; i < w->kernel[0]; i++) {
            int64_t y = out[0] * w->stride[0] - w->begin[0] + i * w->dilation[0];
            for (int64_t k = 0; k < (w->n == 2 ? w->kernel[1] : 1); k++) {
                int64_t z = w->n == 2 ? out[1] * w->stride[1] - w->begin[1] + k * w->dilation[1] : 0;
                bool in = y >= 0 && y < t->dims[2] && z >= 0 && z < width;
                l->row[at++] = in ? x[y * width + z] : 0;
            }
        }
    }
}

static void look_window(layer *l, const nori_tensor *t)
{
    nori__window w;
    int64_t size[2] = {1, 1};
    if (t->rank != l->w->rank || t->dims[1] != l->w->dims[1] * l->groups ||
        nori__window_read(l->node, NULL, t->rank - 2, l->w->dims + 2, &w) != NORI_OK) {
        return;
    }
    for (int d = 0; d < w.n; d++) {
        if (nori__window_out(&w, NULL, d, t->dims[d + 2], &size[d]) != NORI_OK || size[d] < 1) {
            return;
        }
    }
    int64_t plane = size[0] * size[1], all = plane * t->dims[0];
    int64_t step = all > l->share ? all / l->share : 1;
    for (int64_t at = l->seen % step; at < all && l->seen < l->places; at += step) {
        int64_t out[2] = {at % plane / size[1], at % size[1]};
        for (int64_t g = 0; g < l->groups; g++) {
            read_window(l, t, &w, at / plane, g, out);
            if (finite_row(l)) {
                add_row(l, g);
            }
        }
        l->seen++;
    }
}

static void look_rows(layer *l, const nori_tensor *t)
{
    if (t->rank < 1 || t->dims[t->rank - 1] != l->rows) {
        return;
    }
    int64_t all = t->count / l->rows, step = all > l->share ? all / l->share : 1;
    for (int64_t at = l->seen % step; at < all && l->seen < l->places; at += step) {
        memcpy(l->row, (const float *)t->data + at * l->rows, (size_t)l->rows * sizeof(float));
        if (finite_row(l)) {
            add_row(l, 0);
        }
        l->seen++;
    }
}

static void look(void *user, const char *name, const nori_tensor *t)
{
    rounder *r = user;
    layer *l = t->kind == NORI_KIND_TENSOR && t->type == NORI_FLOAT && t->count > 0
                   ? nori__map_get(&r->by_input, name)
                   : NULL;
    for (; l; l = l->same) {
        if (l->window) {
            look_window(l, t);
        } else {
            look_rows(l, t);
        }
    }
}

/* ---- turning ---- */

/* H in full, of the mean place, damped; false: nothing was seen. */
static bool finish_sums(layer *l)
{
    double n = (double)l->seen;
    for (int64_t g = 0; g < l->groups; g++) {
        double *h = l->sums + g * l->rows * l->rows, *mean = l->means + g * l->rows, trace = 0;
        for (int64_t i = 0; i < l->rows; i++) {
            for (int64_t k = i; k < l->rows; k++) {
                double off = l->centred ? mean[i] / n * (mean[k] / n) : 0;
                h[i * l->rows + k] = h[k * l->rows + i] = h[i * l->rows + k] / n - off;
            }
            trace += h[i * l->rows + i];
        }
        for (int64_t i = 0; i < l->rows; i++) {
            h[i * l->rows + i] += DAMPING * trace / (double)l->rows;
        }
    }
    return l->seen > 0;
}

typedef struct column {
    double *error, *slope; /* d, H d */
    double scale;
    int64_t zero, least, most;
} column;

/* One output's weights; the number of them that were turned. */
static int64_t turn_column(layer *l, int64_t j, column *c, double *work)
{
    const double *h = l->sums + j / (l->columns / l->groups) * l->rows * l->rows;
    nori_tensor *q = l->made.integers;
    int64_t turned = 0, before = -1;
    for (int64_t k = 0; k < l->rows; k++) {
        int64_t at = j * l->column_step + k * l->row_step;
        c->error[k] = c->scale * (double)(nori__tensor_get_i64(q, at) - c->zero) -
                      nori__tensor_get_f64(l->w, at);
        c->slope[k] = 0;
    }
    for (int64_t i = 0; i < l->rows; i++) {
        for (int64_t k = 0; k < l->rows; k++) {
            c->slope[k] += c->error[i] * h[i * l->rows + k];
        }
    }
    *work += (double)l->rows * (double)l->rows;
    for (int sweep = 0; sweep < SWEEPS && turned != before; sweep++) {
        before = turned;
        for (int64_t k = 0; k < l->rows; k++) {
            int64_t at = j * l->column_step + k * l->row_step, now = nori__tensor_get_i64(q, at);
            /* The ends of the range stay: the scale is found from what lies there. */
            int64_t by = c->error[k] > 0 ? -1 : 1;
            double step = (double)by * c->scale, *own = c->slope;
            double gain = step * (2 * own[k] + step * h[k * l->rows + k]);
            if (now <= c->least || now >= c->most || c->error[k] == 0 || !(gain < 0) ||
                now + by <= c->least || now + by >= c->most) {
                continue;
            }
            nori__tensor_set_i64(q, at, now + by);
            c->error[k] += step;
            for (int64_t i = 0; i < l->rows; i++) {
                own[i] += step * h[k * l->rows + i];
            }
            *work += (double)l->rows;
            turned++;
        }
    }
    return turned;
}

static nori_status turn_layer(rounder *r, layer *l, double *work, int64_t *turned)
{
    nori__quantizer *q = r->q;
    nori_type type = q->options->weight_type;
    column c;
    NORI__TRY(nori__q_weight_make(q->allocator, l->w, l->axis, type, type == NORI_INT8, NULL, 1,
                                  &l->made, q->err));
    c.error = nori__arena_array(&r->arena, (size_t)l->rows, sizeof(double));
    c.slope = nori__arena_array(&r->arena, (size_t)l->rows, sizeof(double));
    if (!c.error || !c.slope || !nori__quant_limits(type, &c.least, &c.most)) {
        return nori__no_memory(q->err);
    }
    c.least += type == NORI_INT8; /* symmetric */
    for (int64_t j = 0; j < l->columns; j++) {
        int64_t at = l->made.scales->count > 1 ? j : 0;
        c.scale = nori__tensor_get_f64(l->made.scales, at);
        c.zero = nori__tensor_get_i64(l->made.zeros, at);
        *turned += turn_column(l, j, &c, work);
    }
    return NORI_OK;
}

/* ---- */

void nori__q_forget_roundings(nori__quantizer *q)
{
    for (size_t i = 0; i < q->rounding_list.count; i++) {
        nori__q_rounding *kept = q->rounding_list.items[i];
        nori_tensor_free(kept->integers);
        nori_tensor_free(kept->scales);
    }
    nori__vec_free(&q->rounding_list);
    nori__map_free(&q->roundings);
    nori__arena_free(&q->rounding_room);
}

/* Takes over what was made. */
static nori_status keep(nori__quantizer *q, layer *l)
{
    nori__q_rounding *kept = nori__arena_alloc(&q->rounding_room, sizeof(*kept));
    char *name = nori__arena_text(&q->rounding_room, l->node->outputs[0]->name);
    if (!kept || !name || !nori__vec_push(&q->rounding_list, kept)) {
        return nori__no_memory(q->err);
    }
    kept->integers = l->made.integers;
    kept->scales = l->made.scales;
    l->made.integers = l->made.scales = NULL;
    return nori__map_put(&q->roundings, name, kept) ? NORI_OK : nori__no_memory(q->err);
}

static nori_status round_layers(rounder *r, size_t *count)
{
    nori__quantizer *q = r->q;
    double work = 0;
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        NORI__TRY(take_layer(r, n));
    }
    if (r->layers.count == 0) {
        return NORI_OK;
    }
    share_out(r);
    NORI__TRY(nori__q_watch(q, "roundings", look, r));
    for (size_t i = 0; i < r->layers.count; i++) {
        layer *l = r->layers.items[i];
        int64_t turned = 0;
        double least = (double)l->rows * (double)l->rows * (double)l->columns;
        if (work + least > TURN_WORK || l->seen < l->rows / 2 || !finish_sums(l)) {
            r->wide++;
            continue;
        }
        nori_status s = turn_layer(r, l, &work, &turned);
        s = s == NORI_OK && turned > 0 ? keep(q, l) : s;
        *count += turned > 0;
        nori_tensor_free(l->made.integers);
        nori_tensor_free(l->made.scales);
        nori_tensor_free(l->made.zeros);
        NORI__TRY(s);
        if (q->options->progress) {
            q->options->progress(q->options->progress_user, "roundings", i + 1, r->layers.count);
        }
    }
    return NORI_OK;
}

nori_status nori__q_round(nori__quantizer *q, size_t *count, size_t *wide)
{
    rounder r = {.q = q};
    *count = 0;
    nori__q_forget_roundings(q);
    nori__arena_init(&r.arena, q->allocator);
    nori__map_init(&r.by_input, q->allocator);
    nori__vec_init(&r.layers, q->allocator);
    nori_status s = round_layers(&r, count);
    *wide = r.wide;
    nori__vec_free(&r.layers);
    nori__map_free(&r.by_input);
    nori__arena_free(&r.arena);
    return s;
}

void nori__q_take_rounding(nori__quantizer *q, const nori__node *n, nori__q_weight *made)
{
    const nori__q_rounding *kept = nori__map_get(&q->roundings, n->outputs[0]->name);
    if (!kept || made->raised > 0 || kept->integers->bytes != made->integers->bytes ||
        kept->integers->type != made->integers->type || kept->scales->count != made->scales->count ||
        memcmp(kept->scales->data, made->scales->data, kept->scales->bytes) != 0) {
        return; /* another scale: other integers */
    }
    memcpy(made->integers->data, kept->integers->data, kept->integers->bytes);
}
