/* infer_image.c: shapes of resizing, sampling and non-maximum suppression. */
#include "ops/families.h"
#include "ops/resize.h"

static const nori__dim any = {-1, NULL};

/* Certain to hold nothing: absent, or without elements. */
static bool empty_input(const nori__infer *c, uint32_t i)
{
    if (i == UINT32_MAX || !nori__has_in(c, i)) {
        return true;
    }
    return nori__in_rank(c, i) == 1 ? c->in[i].dims[0].value == 0
                                    : c->in[i].tensor && c->in[i].tensor->count == 0;
}

nori_status nori__infer_resize(nori__infer *c)
{
    nori__resize r;
    nori__dim data[NORI_MAX_RANK], dims[NORI_MAX_RANK];
    int64_t in[NORI_MAX_RANK], sizes[NORI_MAX_RANK];
    int rank = nori__in_rank(c, 0), n = -1;
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    NORI__TRY(nori__resize_read(c->node, c->err, &r));
    if (rank > 0 && empty_input(c, r.sizes_in) && empty_input(c, r.scales_in) &&
        !nori__attr_find(c->node, "scales") && !nori__attr_find(c->node, "height_scale")) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "neither scales nor sizes hold a value");
    }
    if (rank < 0) {
        return NORI_OK;
    }
    if (r.sizes_in != UINT32_MAX && nori__has_in(c, r.sizes_in)) {
        n = nori__in_data(c, r.sizes_in, data, NORI_MAX_RANK);
    }
    for (int i = 0; i < n; i++) {
        sizes[i] = data[i].value;
    }
    for (int d = 0; d < rank; d++) {
        in[d] = c->in[0].dims[d].value;
    }
    const nori_tensor *scales = nori__has_in(c, r.scales_in) ? c->in[r.scales_in].tensor : NULL;
    const nori_tensor *roi = r.roi_in != UINT32_MAX && nori__has_in(c, r.roi_in)
                                 ? c->in[r.roi_in].tensor : NULL;
    if (r.coords == NORI__TF_CROP && !roi && n <= 0) {
        scales = NULL; /* sizes depend on the region */
    }
    NORI__TRY(nori__resize_sizes(c->node, c->err, rank, in, roi, scales, sizes, n, &r));
    bool known = scales && scales->count > 0;
    for (int d = 0; d < rank; d++) {
        bool kept = known && r.scale[d] == 1 && r.coords != NORI__TF_CROP;
        dims[d] = r.out[d] >= 0 ? nori__dim_of(r.out[d]) : kept ? c->in[0].dims[d] : any;
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, dims);
    return NORI_OK;
}

nori_status nori__infer_grid_sample(nori__infer *c)
{
    int xr = nori__in_rank(c, 0), gr = nori__in_rank(c, 1), rank = xr >= 0 ? xr : gr;
    nori__dim dims[NORI_MAX_RANK];
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0) {
        return NORI_OK;
    }
    if (rank < 3 || (xr >= 0 && gr >= 0 && xr != gr)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "inputs of ranks %d and %d, expected equal and at least 3", xr, gr);
    }
    for (int d = 0; d < rank; d++) {
        dims[d] = d < 2 ? (xr >= 0 ? c->in[0].dims[d] : any)
                        : gr >= 0 ? c->in[1].dims[d - 1] : any;
    }
    if (gr >= 0 && c->in[1].dims[rank - 1].value >= 0 &&
        c->in[1].dims[rank - 1].value != rank - 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the grid (input 1) has %lld coordinates, expected %d",
                          (long long)c->in[1].dims[rank - 1].value, rank - 2);
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, dims);
    return NORI_OK;
}

/* theta [N, 2, 3] or [N, 3, 4] and size (N, C, H, W) or (N, C, D, H, W): the grid. */
nori_status nori__infer_affine_grid(nori__infer *c)
{
    nori__dim size[5], dims[5];
    nori_type elem = nori__in_elem(c, 0);
    int n = nori__in_data(c, 1, size, 5);
    nori__out_elem(c, 0, elem);
    if (n < 0) {
        return NORI_OK;
    }
    if (n != 4 && n != 5) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "size has %d values, expected 4 or 5", n);
    }
    dims[0] = size[0];
    for (int d = 2; d < n; d++) {
        dims[d - 1] = size[d];
    }
    dims[n - 1] = nori__dim_of(n - 2);
    nori__out_set(c, 0, elem, n, dims);
    return NORI_OK;
}

nori_status nori__infer_nms(nori__infer *c)
{
    for (uint32_t i = 0; i < 2; i++) {
        int rank = nori__in_rank(c, i);
        if (rank >= 0 && rank != 3) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected 3", i,
                              rank);
        }
    }
    nori__dim dims[2] = {any, nori__dim_of(3)};
    nori__out_set(c, 0, NORI_INT64, 2, dims);
    return NORI_OK;
}

/* Bytes of a picture file to [height, width, channels], which only decoding tells. */
nori_status nori__infer_image_decoder(nori__infer *c)
{
    const char *layout = nori__attr_s(c->node, "pixel_format", "RGB");
    bool grey = nori__same(layout, "Grayscale");
    int rank = nori__in_rank(c, 0);
    if (!grey && !nori__same(layout, "RGB") && !nori__same(layout, "BGR")) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "pixel_format is \"%s\", expected RGB, BGR or Grayscale", layout);
    }
    if (rank >= 0 && rank != 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 has rank %d, expected 1", rank);
    }
    nori__out_set(c, 0, NORI_UINT8, 3, (nori__dim[]){any, any, nori__dim_of(grey ? 1 : 3)});
    return NORI_OK;
}
