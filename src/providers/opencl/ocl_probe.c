/* ocl_probe.c: finding out, without risk to this process, whether an OpenCL driver ends the process
 * that loads it. PoCL does where /sys is missing (small containers): it aborts while it looks for
 * its devices. The child of a fork tries; when it does not come back, that is an error here.
 *
 * The child of a process with threads may only do so much: a lock of the loader that another thread
 * holds stays locked there. So it is only asked where it is known to be needed (probe=auto), and for
 * a limited time. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/opencl/opencl.h"

#define PATIENCE_MS 20000
#define TOPOLOGY "/sys/devices/system/cpu"

/* Loads library and drivers; says one byte when it came through. */
static void try_in_child(const ocl_self *self, int say)
{
    ocl_self trial = {.lib = self->lib};
    uint32_t platforms = 0, devices = 0;
    ocl_platform *list[16] = {NULL};
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) { /* what it has to say before it aborts would be taken for ours */
        dup2(nowhere, 1);
        dup2(nowhere, 2);
    }
    if (nori__ocl_load(&trial, NULL) == NORI_OK &&
        trial.api.clGetPlatformIDs(NORI__COUNT(list), list, &platforms) == 0) {
        for (uint32_t i = 0; i < platforms && i < NORI__COUNT(list); i++) {
            trial.api.clGetDeviceIDs(list[i], UINT32_MAX, 0, NULL, &devices);
        }
    }
    char fine = 1;
    _exit(write(say, &fine, 1) == 1 ? 0 : 1);
}

static nori_status describe_end(int status, bool late, nori_error *err)
{
    char how[64];
    if (late) {
        snprintf(how, sizeof(how), "does not come back within %d s", PATIENCE_MS / 1000);
    } else if (WIFSIGNALED(status)) {
        snprintf(how, sizeof(how), "ends the process that loads it by signal %d%s",
                 WTERMSIG(status), WTERMSIG(status) == SIGABRT ? " (it aborts)" : "");
    } else {
        snprintf(how, sizeof(how), "ends the process that loads it with code %d",
                 WEXITSTATUS(status));
    }
    nori__fail(err, NORI_ERROR_UNAVAILABLE, "OpenCL: a driver %s", how);
    if (access(TOPOLOGY, F_OK) != 0) {
        nori__hint(err, "PoCL does so where %s is missing: mount /sys in the container", TOPOLOGY);
    } else {
        nori__hint(err, "drivers are listed in /etc/OpenCL/vendors; OCL_ICD_VENDORS picks one");
    }
    return NORI_ERROR_UNAVAILABLE;
}

nori_status nori__ocl_probe(const ocl_self *self, nori_error *err)
{
    int ends[2], status = 0;
    if (self->probe == OCL_PROBE_NEVER ||
        (self->probe == OCL_PROBE_AUTO && access(TOPOLOGY, F_OK) == 0)) {
        return NORI_OK;
    }
    if (pipe(ends) != 0) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE, "OpenCL: no pipe to a probing child: %s",
                          strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        try_in_child(self, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "OpenCL: no child to probe the driver in: %s",
                   strerror(errno));
        nori__hint(err, "opencl:probe=never goes without");
        return NORI_ERROR_UNAVAILABLE;
    }
    struct pollfd wait = {.fd = ends[0], .events = POLLIN};
    int ready;
    do {
        ready = poll(&wait, 1, PATIENCE_MS);
    } while (ready < 0 && errno == EINTR);
    char fine = 0;
    bool came = ready > 0 && read(ends[0], &fine, 1) == 1;
    close(ends[0]);
    if (!came && ready == 0) {
        kill(child, SIGKILL);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return came ? NORI_OK : describe_end(status, ready == 0, err);
}
