/* nnapi_resize.c: Resize, in the ways of sampling that NNAPI has. */
#include "ops/resize.h"
#include "providers/nnapi/nnapi.h"

static bool read_resize(const nori__node *n, nori__resize *r)
{
    const nori__value *x = n->inputs[0];
    int64_t in[NORI_MAX_RANK], sizes[NORI_MAX_RANK];
    nori_error ignored = {0};
    for (int d = 0; d < x->type.rank; d++) {
        in[d] = x->type.dims[d].value;
    }
    if (nori__resize_read(n, &ignored, r) != NORI_OK) {
        return false;
    }
    const nori_tensor *scales = r->scales_in != UINT32_MAX ? nori__na_const(n, r->scales_in) : NULL;
    const nori_tensor *given = r->sizes_in != UINT32_MAX ? nori__na_const(n, r->sizes_in) : NULL;
    int n_sizes = given && given->count <= NORI_MAX_RANK ? (int)given->count : -1;
    for (int d = 0; d < n_sizes; d++) {
        sizes[d] = nori__tensor_get_i64(given, d);
    }
    scales = scales && scales->count > 0 ? scales : NULL;
    return (scales || n_sizes >= 0) &&
           nori__resize_sizes(n, &ignored, x->type.rank, in, NULL, scales, sizes, n_sizes, r) == NORI_OK;
}

/* The pixels NNAPI reads: by corners, by halves of pixels (both from level 30 on), or neither. */
static const char *sampling(const nori__resize *r, const nori__value *x, bool *corners, bool *halves)
{
    bool whole = true;
    *corners = r->coords == NORI__ALIGN_CORNERS;
    *halves = r->coords == NORI__HALF_PIXEL ||
              (r->coords == NORI__PYTORCH_HALF_PIXEL && r->out[2] > 1 && r->out[3] > 1);
    for (int d = 2; d < 4; d++) {
        int64_t in = x->type.dims[d].value;
        whole = whole && r->out[d] % in == 0;
        if ((double)in * r->scale[d] != (double)r->out[d]) {
            return "its scales are not the ratio of its sizes";
        }
    }
    if (!*corners && !*halves && r->coords != NORI__ASYMMETRIC) {
        return "NNAPI has no such sampling";
    }
    if (r->mode == NORI__LINEAR) {
        return NULL;
    }
    bool near = r->mode == NORI__NEAREST &&
                (*halves ? whole && (r->round == NORI__ROUND_PREFER_FLOOR ||
                                     r->round == NORI__ROUND_PREFER_CEIL)
                         : !*corners && whole && r->round == NORI__ROUND_FLOOR);
    return near ? NULL : "NNAPI does not round so";
}

const char *nori__na_claim_resize(const na_self *self, const nori__node *n)
{
    const nori__value *x = n->inputs[0];
    nori__resize r;
    bool corners, halves;
    if (x->type.rank != 4) {
        return "NNAPI has two spatial dimensions";
    }
    if (!read_resize(n, &r) || r.out[0] != x->type.dims[0].value || r.out[1] != x->type.dims[1].value) {
        return "its sizes are not constant, or not of pictures";
    }
    if (r.antialias || r.exclude_outside) {
        return "NNAPI has plain resizing only";
    }
    const char *why = sampling(&r, x, &corners, &halves);
    if (why) {
        return why;
    }
    int level = corners || halves ? 30 : r.mode == NORI__NEAREST ? 29 : 27;
    return self->level < level ? "NNAPI samples so from a later feature level on (29 or 30)" : NULL;
}

void nori__na_emit_resize(na_part *p, const na_job *j)
{
    nori__resize r;
    bool corners, halves;
    if (!read_resize(j->node, &r) || sampling(&r, j->node->inputs[0], &corners, &halves)) {
        nori__na_refuse(p, "its sizes are not constant");
        return;
    }
    bool near = r.mode == NORI__NEAREST;
    uint32_t in[6] = {nori__na_want(p, j->in[0], NA_LAST)}, n = 1;
    in[n++] = nori__na_int(p, r.out[3]);
    in[n++] = nori__na_int(p, r.out[2]);
    if (near || corners || halves) {
        in[n++] = nori__na_bool(p, false); /* channels last */
    }
    if (corners || halves) {
        in[n++] = nori__na_bool(p, corners);
        in[n++] = nori__na_bool(p, halves);
    }
    nori__na_op(p, near ? NA_RESIZE_NEAREST_NEIGHBOR : NA_RESIZE_BILINEAR, in, n,
                nori__na_make(p, j->out, NA_LAST));
}
