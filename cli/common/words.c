/* words.c: amounts, types and shapes as the command writes them. */
#include <string.h>

#include "cli.h"

static void scaled(double v, double step, const char *const *units, char *out, size_t size)
{
    int u = 0;
    while (v >= step && u < 6) {
        v /= step;
        u++;
    }
    snprintf(out, size, u == 0 ? "%.0f%s" : v < 10 ? "%.2f%s" : "%.1f%s", v, units[u]);
}

void cli_bytes_text(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {" B", " kB", " MB", " GB", " TB", " PB", " EB"};
    scaled((double)bytes, 1000, units, out, size);
}

void cli_count_text(uint64_t count, char *out, size_t size)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    scaled((double)count, 1000, units, out, size);
}

int cli_widen(int width, const char *text)
{
    size_t n = strlen(text);
    return n > 72 || (int)n <= width ? width : (int)n;
}

const char *cli_kind_name(nori_kind kind)
{
    static const char *const kinds[] = {"unknown", "tensor", "sequence",
                                        "optional", "map", "sparse"};
    return (size_t)kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind] : "unknown";
}

static void finish_shape(char *out, size_t size, size_t used, int rank, const int64_t *dims,
                         const char *const *names)
{
    used += (size_t)snprintf(out + used, size - used, "[");
    for (int d = 0; d < rank && used + 1 < size; d++) {
        const char *comma = d ? "," : "";
        int n = dims[d] >= 0 ? snprintf(out + used, size - used, "%s%lld", comma, (long long)dims[d])
                             : snprintf(out + used, size - used, "%s%s", comma,
                                        names && names[d] ? names[d] : "?");
        used += n > 0 ? (size_t)n : 0;
    }
    if (used + 1 < size) {
        snprintf(out + used, size - used, "]");
    }
}

void cli_shape(const nori_value_info *info, char *out, size_t size)
{
    if (info->kind != NORI_KIND_TENSOR) {
        snprintf(out, size, "%s", cli_kind_name(info->kind));
        return;
    }
    size_t used = (size_t)snprintf(out, size, "%s", nori_type_name(info->type));
    if (info->rank < 0) {
        snprintf(out + used, size - used, "[...]");
    } else {
        finish_shape(out, size, used, info->rank, info->dims, info->dim_names);
    }
}

void cli_tensor_shape(const nori_tensor *t, char *out, size_t size)
{
    if (nori_tensor_kind(t) != NORI_KIND_TENSOR) {
        snprintf(out, size, "%s of %zu", cli_kind_name(nori_tensor_kind(t)),
                 nori_tensor_item_count(t));
        return;
    }
    size_t used = (size_t)snprintf(out, size, "%s", nori_type_name(nori_tensor_type(t)));
    finish_shape(out, size, used, nori_tensor_rank(t), nori_tensor_dims(t), NULL);
}

bool cli_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}
