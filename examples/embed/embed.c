/* embed.c: `embed digits.onnx test_images.npy 7` says which digit picture 7 shows. Builds on the
 * installed library: see CMakeLists.txt, or cc embed.c $(pkg-config --cflags --libs nori) -o embed */
#include <stdio.h>
#include <stdlib.h>

#include <nori/nori.h>
#include <nori/tools.h> /* nori_tensor_read */

enum { PIXELS = 28 * 28 };

int main(int argc, char **argv)
{
    static const int64_t dims[4] = {1, 1, 28, 28};
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_tensor *pictures = NULL, *in = NULL, *out = NULL;
    long n = argc == 4 ? strtol(argv[3], NULL, 10) : -1;

    if (n < 0) {
        fprintf(stderr, "usage: embed MODEL.onnx PICTURES.npy NUMBER\n");
        return 2;
    }
    if (nori_model_load(NULL, argv[1], NULL, &model, &err) != NORI_OK ||
        nori_session_create(model, NULL, &session, &err) != NORI_OK ||
        nori_tensor_read(NULL, argv[2], &pictures, &err) != NORI_OK ||
        nori_tensor_create(NULL, NORI_FLOAT, 4, dims, &in, &err) != NORI_OK) {
        fprintf(stderr, "embed: %s\n%s\n", err.message, err.hint);
    } else if (nori_tensor_type(pictures) != NORI_UINT8 ||
               nori_tensor_elements(pictures) / PIXELS <= n) {
        fprintf(stderr, "embed: %s has no picture %ld of 28x28 bytes\n", argv[2], n);
    } else {
        const unsigned char *gray = nori_tensor_const_data(pictures);
        float *image = nori_tensor_data(in);
        for (long i = 0; i < PIXELS; i++) {
            image[i] = (float)gray[n * PIXELS + i] / 255;
        }
        if (nori_session_run(session, (const nori_tensor *const[]){in}, 1, &out, 1, &err) == NORI_OK) {
            const float *score = nori_tensor_const_data(out);
            int best = 0;
            for (int i = 1; i < 10; i++) {
                best = score[i] > score[best] ? i : best;
            }
            printf("%d\n", best);
        } else {
            fprintf(stderr, "embed: %s\n%s\n", err.message, err.hint);
        }
    }
    int failed = out == NULL;
    nori_tensor_free(out);
    nori_tensor_free(in);
    nori_tensor_free(pictures);
    nori_session_free(session);
    nori_model_free(model);
    return failed;
}
