/* ranks.c: the processes mpirun starts, as one group. MPI itself is in a module that is loaded only
 * then. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "cli_module.h"
#include "ranks_module.h"

/* What mpirun of Open MPI, and of those that follow MPICH, tell those they start. */
static bool started_by_mpirun(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *size = getenv(names[i]);
        if (size && atol(size) > 1) {
            return true;
        }
    }
    return false;
}

static int load(const cli_args *args, cli_ranks *r)
{
    int code = EXIT_YES;
    /* The parts that MPI loads itself look for its symbols among those of all. */
    void *module = cli_module_open(args, "nori-mpi.so", true,
                                   "mpirun started this, and it comes with a nori that was built with MPI "
                                   "(libopenmpi-dev); calibrate --part K/N and --merge do the same without",
                                   &code);
    void *symbol = module ? cli_module_symbol(args, module, "nori_ranks_module", &code) : NULL;
    const nori__ranks_module *(*get)(void);
    if (!symbol) {
        return code;
    }
    memcpy(&get, &symbol, sizeof(get)); /* ISO C has no cast from data to function */
    r->module = get();
    if (!r->module || r->module->version != NORI__RANKS_VERSION) {
        r->module = NULL;
        return cli_fail_text(args, NORI_ERROR_UNAVAILABLE, "nori-mpi.so is of another version of nori");
    }
    return EXIT_YES;
}

static int lost(const cli_args *args)
{
    return cli_fail_text(args, NORI_ERROR_IO, "the processes that mpirun started lost each other");
}

int cli_ranks_begin(const cli_args *args, cli_ranks *r)
{
    *r = (cli_ranks){0, 1, NULL};
    if (!started_by_mpirun()) {
        return EXIT_YES;
    }
    int code = load(args, r);
    if (code == EXIT_YES && r->module->begin(&r->rank, &r->size) != 0) {
        r->module = NULL;
        return cli_fail_text(args, NORI_ERROR_UNAVAILABLE, "MPI could not be started");
    }
    return code;
}

static int take(const cli_args *args, const cli_ranks *r, int rank, nori_calibration *all)
{
    size_t size;
    nori_error err = {0};
    nori_calibration *more = NULL;
    if (r->module->receive_size(rank, &size) != 0) {
        return lost(args);
    }
    void *bytes = malloc(size ? size : 1);
    if (!bytes) {
        return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    int code = r->module->receive(rank, bytes, size) == 0 ? EXIT_YES : lost(args);
    if (code == EXIT_YES && (nori_calibration_decode(args->env, bytes, size, &more, &err) != NORI_OK ||
                             nori_calibration_merge(all, more, &err) != NORI_OK)) {
        code = cli_fail(args, &err);
    }
    nori_calibration_free(more);
    free(bytes);
    return code;
}

int cli_ranks_gather(const cli_args *args, const cli_ranks *r, int code, nori_calibration *mine)
{
    nori_error err = {0};
    nori_tensor *bytes = NULL;
    if (!r->module) {
        return code;
    }
    if (code == EXIT_YES && r->rank > 0 && nori_calibration_encode(mine, &bytes, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    int all = code;
    if (r->module->worst(code, &all) != 0) {
        all = lost(args);
    } else if (all == EXIT_YES && r->rank > 0) {
        all = r->module->send(nori_tensor_const_data(bytes), nori_tensor_bytes(bytes)) == 0
                  ? EXIT_YES
                  : lost(args);
    }
    for (int k = 1; all == EXIT_YES && r->rank == 0 && k < r->size; k++) {
        all = take(args, r, k, mine);
    }
    nori_tensor_free(bytes);
    return all;
}

int cli_ranks_end(cli_ranks *r, int code)
{
    int all = code;
    if (r->module) {
        if (r->module->first(code, &all) != 0 || r->module->end() != 0) {
            return code ? code : EXIT_BAD;
        }
        r->module = NULL;
    }
    return all;
}
