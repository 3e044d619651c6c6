/* place_payload.c: the same input in fewer bytes: what the server would have to do first (numbers of a
 * byte to floats, normalization, decoding) moves there. */
#include <string.h>
#include <sys/stat.h>

#include "place_job.h"

static void add(place_job *j, const char *what, double saved)
{
    nori_place_question q = j->question;
    nori_place_answer a = {.size = sizeof(a)};
    q.up_bytes = q.up_bytes > saved ? q.up_bytes - saved : 0; /* what frames it stays */
    if (j->n_payloads < PLACE_PAYLOADS && nori_place_decide(&q, &a, NULL) == NORI_OK) {
        j->payload[j->n_payloads++] = (place_payload){what, q.up_bytes, a.place, a.option[1].mean};
    }
}

/* The first picture among the inputs' files, or NULL. */
static const char *picture_file(const place_job *j)
{
    const char *spec;
    for (int i = 0; (spec = cli_nth(j->args, "--input", i)) != NULL; i++) {
        const char *equals = strchr(spec, '=');
        if (cli_is_picture(equals ? equals + 1 : spec)) {
            return equals ? equals + 1 : spec;
        }
    }
    return NULL;
}

int place_payloads(place_job *j)
{
    const nori_value_info *info = j->n_in > 0 ? nori_session_input(j->session, 0) : NULL;
    const nori_tensor *t = j->in ? j->in[0] : NULL;
    picture_options o;
    struct stat st;
    if (!t || !j->question.cloud.there || j->question.up_speed <= 0 || cli_has(j->args, "--up-bytes") ||
        nori_tensor_type(t) != NORI_FLOAT || cli_picture_channels(info) == 0) {
        return EXIT_YES;
    }
    if (!cli_picture_options(j->args, &o)) {
        return EXIT_USAGE;
    }
    double full = (double)nori_tensor_bytes(t), numbers = (double)nori_tensor_elements(t);
    add(j, "fp32, as the model takes it", 0);
    add(j, "fp16", full - 2 * numbers);
    add(j, "uint8, normalized on the server", full - numbers);
    const char *file = picture_file(j);
    if (file) {
        uint64_t fine = cli_jpeg_bytes(t, info, &o, 90), coarse = cli_jpeg_bytes(t, info, &o, 75);
        if (fine > 0 && coarse > 0) {
            add(j, "JPEG of that size, quality 90", full - (double)fine);
            add(j, "JPEG of that size, quality 75", full - (double)coarse);
        }
        if (stat(file, &st) == 0) {
            add(j, "the picture's own file", full - (double)st.st_size);
        }
    }
    return EXIT_YES;
}
