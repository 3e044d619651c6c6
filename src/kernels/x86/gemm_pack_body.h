/* gemm_pack_body.h: filling panels for products, at AVX2 and AVX-512: see f32_pack and f32_patches in
 * kernels.h. Included once a level, after gemm_body.h. */

/* Rows r0..r7 of 8 floats become columns. */
ALWAYS void turn8(__m256 r[8])
{
    __m256 t[8], u[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

/* Lines of the input lie along k (k_step 1): turned 8 x 8. Handles k in steps of 8, 8 columns of
 * which count are there and the first keep are written; width floats apart in out. */
ALWAYS void pack_turned(size_t k, size_t count, const float *in, size_t step, float *out,
                        size_t width, const size_t keep)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    __m256i mask = _mm256_loadu_si256((const __m256i *)(ones + 8 - keep));
    for (size_t p = 0; p + 8 <= k; p += 8) {
        __m256 r[8];
        for (size_t j = 0; j < 8; j++) {
            r[j] = j < count ? _mm256_loadu_ps(in + j * step + p) : _mm256_setzero_ps();
        }
        turn8(r);
        for (size_t i = 0; i < 8; i++) {
            if (keep == 8) {
                _mm256_storeu_ps(out + (p + i) * width, r[i]);
            } else {
                _mm256_maskstore_ps(out + (p + i) * width, mask, r[i]);
            }
        }
    }
}

static void pack_any(size_t width, size_t k, size_t count, const float *in, size_t k_step,
                     size_t step, float *out)
{
    for (size_t p = 0; p < k; p++, out += width) {
        const nori__any_f32 *row = in + p * k_step;
        for (size_t j = 0; j < count; j++) {
            out[j] = row[j * step];
        }
        for (size_t j = count; j < width; j++) {
            out[j] = 0;
        }
    }
}

static void f32_pack(size_t width, size_t k, size_t count, const float *in, size_t k_step,
                     size_t step, float *out)
{
    size_t done = 0;
    if (step == 1 && width == NR) {
        size_t n0 = count < VL ? count : VL, n1 = count - n0;
        for (; count == NR && done < k; done++) {
            vf v0 = v_load(in + done * k_step), v1 = v_load(in + done * k_step + VL);
            v_store(out + done * NR, v0);
            v_store(out + done * NR + VL, v1);
        }
        for (; done < k; done++) {
            v_store(out + done * NR, v_load_some(in + done * k_step, n0));
            v_store(out + done * NR + VL,
                    n1 > 0 ? v_load_some(in + done * k_step + VL, n1) : v_zero());
        }
    } else if (k_step == 1 && (width == NR || width == MR)) {
        done = k / 8 * 8;
        for (size_t j = 0; j + 8 <= width; j += 8) {
            pack_turned(done, count < j ? 0 : count - j < 8 ? count - j : 8, in + j * step, step,
                        out + j, width, 8);
        }
        if (width == MR) {
            size_t j = MR / 8 * 8;
            pack_turned(done, count < j ? 0 : count - j, in + j * step, step, out + j, width,
                        MR % 8);
        }
    }
    pack_any(width, k - done, count, in + done * k_step, k_step, step, out + done * width);
}

static void f32_patches(size_t k, const int64_t *offset, const float *x, size_t pieces,
                        const size_t *from, const int64_t *where, size_t step, float *out)
{
    if (step == 1 && pieces == 1) {
        const float *in = x + where[0];
        for (size_t p = 0; p < k; p++, out += NR) {
            vf v0 = v_load(in + offset[p]), v1 = v_load(in + offset[p] + VL);
            v_store(out, v0);
            v_store(out + VL, v1);
        }
        return;
    }
    for (size_t p = 0; p < k; p++, out += NR) {
        /* A later piece overwrites what the one before wrote too much. */
        for (size_t s = 0; s < pieces; s++) {
            const float *in = x + offset[p] + where[s];
            float *to = out + from[s];
            if (step == 1) {
                vf v0 = v_load(in), v1 = v_load(in + VL);
                v_store(to, v0);
                v_store(to + VL, v1);
            } else if (step == 2) {
                v_store(to, every_second(in));
                v_store(to + VL, every_second(in + 2 * VL));
            } else {
                for (size_t j = from[s]; j < (s + 1 < pieces ? from[s + 1] : NR); j++) {
                    out[j] = in[(j - from[s]) * step];
                }
            }
        }
    }
}

static void gemm_table(nori__kernels *k)
{
    k->f32_mr = MR;
    k->f32_nr = NR;
    k->f32_depth = VL == 16 ? 1024 : 512; /* second caches of 1 or 2 MB, of 256 or 512 KB */
    k->f32_near = VL == 16 ? 1024 * 1024 : 256 * 1024;
    k->f32_tile = f32_tile;
    k->f32_pack = f32_pack;
    k->f32_patches = f32_patches;
    k->f32_few_rows = f32_few_rows;
}
