/* qconv_run.c: one run of an 8-bit convolution.
 *
 * The input is walked channels last and unsigned. Where it is not so, or has pads, it is copied
 * once, with its zero point as pads; so a row of the kernel is one run of bytes, and nothing is
 * gathered. Zero points are taken off by what sums start from. */
#include "providers/cpu/qconv.h"

/* Pixels a unit of products at most. */
#define LINES 384
/* Pixels a unit of turning a result into planes. */
#define TURN 256

bool nori__qconv_plan(nori__qconv_run *r, const nori__ref_conv_work *w, int threads,
                      size_t *bytes)
{
    const nori__qconv *s = r->s;
    if ((size_t)w->made != s->made || (size_t)w->group != s->group ||
        (size_t)w->channels != s->per_group * s->group || !nori__patches_set(&r->g, w)) {
        return false;
    }
    const nori__patches *g = &r->g;
    if (!s->deep && s->rows && s->w.terms * g->kernel[2] != s->taps) {
        return false;
    }
    r->batch = (size_t)w->batch;
    r->channels = (size_t)w->channels;
    /* What a term reads past its bytes must be there. */
    bool straight = s->deep ? nori__qconv_deep_plan(r, threads)
                            : !g->copied && s->w.bytes % 4 == 0;
    r->copied = !straight || !r->x_last || r->flip;
    r->deep_bytes = s->deep && !r->copied ? r->deep_bytes : 0;
    size_t terms = s->deep ? s->taps : s->w.terms;
    size_t element = r->finish.form == NORI__U8_BYTES ? 1 : sizeof(int32_t);
    size_t copy = 0, made = 0;
    if ((r->copied && !nori__mul_size(g->padded_size, r->channels, &copy)) ||
        (!r->y_last && !nori__mul_size(g->out_size, s->made * element, &made)) ||
        copy > SIZE_MAX / 4 || made > SIZE_MAX / 4) {
        return false;
    }
    r->copy_bytes = r->copied ? nori__cpu_round(copy + NORI__QCONV_SLACK) : 0;
    r->y_bytes = nori__cpu_round(made);
    r->array_bytes = nori__cpu_round(s->wide * sizeof(int32_t));
    r->offset_bytes = nori__cpu_round(terms * sizeof(int64_t));
    *bytes = r->copy_bytes + r->y_bytes + 3 * r->array_bytes + r->offset_bytes + r->deep_bytes;
    return true;
}

static bool one_float(const nori_call *call, uint32_t i)
{
    return nori__cpu_has(call, i) && call->in[i]->type == NORI_FLOAT && call->in[i]->count == 1;
}

bool nori__qconv_fits(const nori__qconv *s, const nori_call *call)
{
    const nori_tensor *y_zero = nori__cpu_has(call, 7) ? call->in[7] : NULL;
    const nori_tensor *w_scale = nori__cpu_has(call, 4) ? call->in[4] : NULL;
    return one_float(call, 1) && one_float(call, 6) && y_zero && y_zero->count == 1 &&
           nori__cpu_is_8bit((nori_type)y_zero->type) && w_scale && w_scale->type == NORI_FLOAT &&
           (w_scale->count == 1 || (size_t)w_scale->count == s->made) &&
           (!nori__cpu_has(call, 8) ||
            (call->in[8]->type == NORI_INT32 && (size_t)call->in[8]->count == s->made));
}

const int32_t *nori__qconv_linear(nori__qconv_run *r, const nori_call *call, void *work)
{
    const nori__qconv *s = r->s;
    const float *w = call->in[4]->data;
    float x = *(const float *)call->in[1]->data, y = *(const float *)call->in[6]->data;
    float *scale = nori__qconv_array(r, work, 1);
    memset(scale, 0, s->wide * sizeof(*scale));
    for (size_t c = 0; c < s->made; c++) {
        scale[nori__qconv_at(s, c)] = x * w[call->in[4]->count == 1 ? 0 : c] / y;
    }
    r->finish.scale = scale;
    nori__qlines_limits(&r->finish, (int32_t)nori__tensor_get_i64(call->in[7], 0),
                        call->in[7]->type == NORI_INT8, r->y_last);
    return nori__cpu_has(call, 8) ? call->in[8]->data : NULL;
}

typedef struct qconv_job {
    const nori__qconv_run *r;
    const nori__kernels *kern;
    const uint8_t *x; /* an image */
    uint8_t *copy;
    const uint8_t *from; /* the image that lines are of */
    char *y;             /* an image, channels last */
    char *planes;        /* what y is turned into */
    const int64_t *offset;
    char *zero;          /* depthwise without a copy: its scratch */
    bool last;           /* the last image */
} qconv_job;

static void copy_pixels(const qconv_job *job, size_t row, uint8_t *to)
{
    const nori__qconv_run *r = job->r;
    const nori__patches *g = &r->g;
    size_t n = g->in[2] * r->channels;
    if (!r->x_last) {
        job->kern->x8_transpose(r->channels, g->in[2], job->x + row * g->in[2], g->in_size, to,
                                r->channels, r->flip);
        return;
    }
    const uint8_t *from = job->x + row * n;
    if (!r->flip) {
        memcpy(to, from, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i] ^ r->flip;
    }
}

/* Rows of the input with its pads. */
static void copy_units(void *user, int64_t begin, int64_t end, int thread)
{
    const qconv_job *job = user;
    const nori__qconv_run *r = job->r;
    const nori__patches *g = &r->g;
    size_t width = g->padded[2] * r->channels, left = g->pad[2] * r->channels;
    size_t right = width - left - g->in[2] * r->channels;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t h = (size_t)u % g->padded[1], d = (size_t)u / g->padded[1];
        uint8_t *to = job->copy + (size_t)u * width;
        if (d < g->pad[0] || d - g->pad[0] >= g->in[0] || h < g->pad[1] ||
            h - g->pad[1] >= g->in[1]) {
            memset(to, r->x_zero, width);
            continue;
        }
        memset(to, r->x_zero, left);
        copy_pixels(job, (d - g->pad[0]) * g->in[1] + h - g->pad[1], to + left);
        memset(to + width - right, r->x_zero, right);
    }
}

/* Rows of a depthwise result. */
static void deep_units(void *user, int64_t begin, int64_t end, int thread)
{
    const qconv_job *job = user;
    const nori__qconv_run *r = job->r;
    const nori__patches *g = &r->g;
    size_t element = r->finish.form == NORI__U8_BYTES ? 1 : sizeof(int32_t);
    for (int64_t u = begin; u < end; u++) {
        size_t h = (size_t)u % g->out[1], d = (size_t)u / g->out[1];
        if (!r->copied) {
            nori__qconv_deep_row(r, job->from, h, job->last,
                                 job->y + h * g->out[2] * r->s->made * element, job->zero, thread);
            continue;
        }
        size_t at = (d * g->stride[0] * g->padded[1] + h * g->stride[1]) * g->padded[2];
        nori__qconv_deep_pixels(r, g->out[2], job->offset, job->from + at * r->channels,
                                g->stride[2] * r->channels,
                                job->y + (size_t)u * g->out[2] * r->s->made * element);
    }
}

static void turn_units(void *user, int64_t begin, int64_t end, int thread)
{
    const qconv_job *job = user;
    const nori__qconv_run *r = job->r;
    size_t made = r->s->made, pixels = r->g.out_size;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t p = (size_t)u * TURN, n = pixels - p < TURN ? pixels - p : TURN;
        if (r->finish.form == NORI__U8_BYTES) {
            job->kern->x8_transpose(n, made, (const uint8_t *)job->y + p * made, made,
                                    (uint8_t *)job->planes + p, pixels, 0);
        } else {
            job->kern->x32_transpose(n, made, (const uint32_t *)(const void *)job->y + p * made,
                                     made, (uint32_t *)(void *)job->planes + p, pixels);
        }
    }
}

/* Where terms begin, from the first byte of a line. */
static void term_offsets(const nori__qconv_run *r, int64_t *offset)
{
    const nori__qconv *s = r->s;
    const nori__patches *g = &r->g;
    size_t last = s->deep || !s->rows ? g->kernel[2] : 1;
    for (size_t d = 0; d < g->kernel[0]; d++) {
        for (size_t h = 0; h < g->kernel[1]; h++) {
            for (size_t w = 0; w < last; w++) {
                *offset++ = (int64_t)(((d * g->dilation[0] * g->padded[1] + h * g->dilation[1]) *
                                           g->padded[2] + w * g->dilation[2]) * r->channels);
            }
        }
    }
}

static void image(nori_call *call, const nori__qconv_run *r, qconv_job *job)
{
    const nori__qconv *s = r->s;
    const nori__patches *g = &r->g;
    int threads = nori__way_threads(s->way, nori__cpu_threads(call));
    job->from = job->x;
    if (r->copied) {
        nori__parallel_for(call->pool, threads, (int64_t)(g->padded[0] * g->padded[1]),
                           (int64_t)(16384 / (g->padded[2] * r->channels + 1)) + 1, copy_units,
                           job);
        job->from = job->copy;
    }
    if (s->deep) {
        nori__parallel_for(call->pool, threads, (int64_t)(g->out[0] * g->out[1]),
                           (int64_t)(16384 / (g->out[2] * s->made + 1)) + 1, deep_units, job);
    } else {
        size_t pixel = r->channels, row = g->padded[2] * pixel;
        nori__qlines lines = {.w = &s->w, .offset = job->offset, .x = job->from, .images = 1,
                              .size = {g->out[0], g->out[1], g->out[2]},
                              .step = {g->stride[0] * g->padded[1] * row, g->stride[1] * row,
                                       g->stride[2] * pixel},
                              .group = s->per_group, .span = nori__way_span(s->way, LINES),
                              .y = job->y, .ldy = s->made,
                              .finish = r->finish};
        nori_call own = *call;
        own.threads = threads;
        nori__qlines_run(&own, &lines);
    }
    if (!r->y_last) {
        nori__parallel_for(call->pool, threads, (int64_t)((g->out_size + TURN - 1) / TURN), 1,
                           turn_units, job);
    }
}

static void repeat_array(float *array, size_t made, size_t real)
{
    for (size_t c = made; array && c < real; c++) {
        array[c] = array[c - made];
    }
}

void nori__qconv_go(nori_call *call, nori__qconv_run *r, const int32_t *bias, void *work)
{
    const nori__qconv *s = r->s;
    char *at = work;
    int32_t *start = (int32_t *)(void *)at;
    int64_t *offset = (int64_t *)(void *)(at + 3 * r->array_bytes);
    char *turned = at + 3 * r->array_bytes + r->offset_bytes;
    qconv_job job = {.r = r, .kern = nori__kernels_get(), .offset = offset,
                     .copy = (uint8_t *)turned + r->y_bytes,
                     .zero = turned + r->y_bytes + r->copy_bytes};
    if (s->deep) {
        size_t real = s->repeat * s->made;
        for (size_t c = 0; c < s->wide; c++) {
            uint32_t b = bias && c < real ? (uint32_t)bias[c % s->made] : 0;
            start[c] = (int32_t)(b - (uint32_t)r->x_zero * (uint32_t)s->sums[c]);
        }
        repeat_array(r->finish.scale ? nori__qconv_array(r, work, 1) : NULL, s->made, real);
        repeat_array(r->finish.shift ? nori__qconv_array(r, work, 2) : NULL, s->made, real);
    } else {
        nori__qlines_start(&s->w, bias, r->x_zero, start);
    }
    term_offsets(r, offset);
    memset(job.zero, r->x_zero, r->deep_bytes > 0 ? r->zero_bytes : 0);
    if (r->copied) {
        memset(job.copy + r->copy_bytes - NORI__QCONV_SLACK, 0, NORI__QCONV_SLACK);
    }
    r->finish.start = start;
    r->finish.channels = s->made;
    size_t x_image = r->g.in_size * r->channels, y_image = r->g.out_size * s->made;
    size_t element = r->finish.form == NORI__U8_BYTES ? 1 : sizeof(int32_t);
    for (size_t b = 0; b < r->batch; b++) {
        job.x = r->x + b * x_image;
        job.last = b + 1 == r->batch;
        job.planes = (char *)r->y + b * y_image * element;
        job.y = r->y_last ? job.planes : turned;
        image(call, r, &job);
    }
}
