/* file.c: read-only mappings, and output files that appear whole or not at all. */
#include "platform/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif
#define TEMPORARY ".nori-" /* how names of unfinished files begin */

static nori_status io_error(nori_error *err, const char *what, const char *path, int code)
{
    return nori__fail(err, NORI_ERROR_IO, "cannot %s %s: %s", what, path, strerror(code));
}

nori_status nori__map_open(const char *path, nori__map_file *file, nori_error *err)
{
    *file = (nori__map_file){NULL, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* NONBLOCK: a FIFO must not hang */
    if (fd < 0) {
        return io_error(err, "open", path, errno);
    }
    struct stat st;
    nori_status status = NORI_OK;
    if (fstat(fd, &st) != 0) {
        status = io_error(err, "read", path, errno);
    } else if (S_ISDIR(st.st_mode)) {
        status = nori__fail(err, NORI_ERROR_IO, "%s is a folder, a file was expected", path);
    } else if (!S_ISREG(st.st_mode)) {
        status = nori__fail(err, NORI_ERROR_IO, "%s is not a regular file", path);
    } else if ((uint64_t)st.st_size > SIZE_MAX / 2) {
        status = nori__fail(err, NORI_ERROR_LIMIT, "%s is too large to map", path);
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            status = io_error(err, "map", path, errno);
        } else {
            *file = (nori__map_file){p, (size_t)st.st_size};
        }
    }
    close(fd);
    return status;
}

void nori__map_close(nori__map_file *file)
{
    if (file->data) {
        munmap((void *)(uintptr_t)file->data, file->size);
    }
    *file = (nori__map_file){NULL, 0};
}

void nori__map_relax(const nori__map_file *file)
{
#ifdef MADV_DONTNEED
    if (file->data) {
        madvise((void *)(uintptr_t)file->data, file->size, MADV_DONTNEED);
    }
#else
    (void)file;
#endif
}

void nori__map_relax_range(const void *data, size_t size)
{
#ifdef MADV_DONTNEED
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + size) / page * page;
    if (end > begin) {
        madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
#else
    (void)data;
    (void)size;
#endif
}

void nori__map_need(const void *data, size_t size)
{
#ifdef __linux__
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; older headers do not have it, older systems refuse it */
#endif
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)data / page * page, end = (uintptr_t)data + size;
    if (size > 0 && madvise((void *)begin, end - begin, MADV_POPULATE_READ) != 0) {
        (void)madvise((void *)begin, end - begin, MADV_WILLNEED);
    }
#else
    (void)data;
    (void)size;
#endif
}

struct nori__out_file {
    const nori_allocator *allocator;
    int fd;
    bool failed, hole; /* hole: it ends in zeros that were not written */
    char *path, *temporary;
    size_t path_size, temporary_size;
};

static void out_free(nori__out_file *out)
{
    nori__release(out->allocator, out->path, out->path_size);
    nori__release(out->allocator, out->temporary, out->temporary_size);
    nori__release(out->allocator, out, sizeof(*out));
}

/* What is at path now decides: nothing or a regular file may be replaced, and a link's target
 * rather than the link; a device or a pipe must not (as root, rename would do it to /dev/null).
 * real gets the path to write when it differs, else stays empty; mode is the old file's. */
static nori_status look_at_target(const char *path, char real[PATH_MAX], mode_t *mode,
                                  bool *exists, nori_error *err)
{
    struct stat st;
    *exists = false;
    real[0] = 0;
    if (lstat(path, &st) != 0) {
        return errno == ENOENT ? NORI_OK : io_error(err, "create", path, errno);
    }
    bool link = S_ISLNK(st.st_mode);
    if (link && stat(path, &st) != 0) {
        return io_error(err, "follow the link", path, errno);
    }
    if (S_ISDIR(st.st_mode)) {
        return nori__fail(err, NORI_ERROR_IO, "cannot write %s: it is a folder", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return nori__fail(err, NORI_ERROR_IO,
                          "cannot write %s: it is there and not a regular file", path);
    }
    if (link && !realpath(path, real)) {
        real[0] = 0;
        return io_error(err, "follow the link", path, errno);
    }
    *mode = st.st_mode & 0777;
    *exists = true;
    return NORI_OK;
}

/* Opens a new file of an unpredictable name in the folder of path: there, so that rename stays
 * within one file system. 0: open; else errno. */
static int open_temporary(nori__out_file *out)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
    const char *slash = strrchr(out->path, '/');
    int folder = slash ? (int)(slash - out->path) + 1 : 0;
    for (int tries = 0; tries < 100; tries++) {
        unsigned char random[16];
        char suffix[sizeof(random) + 1] = {0};
        if (getentropy(random, sizeof(random)) != 0) {
            return errno;
        }
        for (size_t i = 0; i < sizeof(random); i++) {
            suffix[i] = letters[random[i] & 31];
        }
        snprintf(out->temporary, out->temporary_size, "%.*s" TEMPORARY "%s", folder, out->path,
                 suffix);
        out->fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out->fd >= 0 || errno != EEXIST) {
            break;
        }
    }
    return out->fd >= 0 ? 0 : errno;
}

nori_status nori__out_open(const nori_allocator *a, const char *path, nori__out_file **result,
                           nori_error *err)
{
    *result = NULL;
    char real[PATH_MAX];
    mode_t mode = 0;
    bool exists;
    NORI__TRY(look_at_target(path, real, &mode, &exists, err));
    const char *target = real[0] ? real : path;
    nori__out_file *out = nori__alloc_zero(a, sizeof(*out));
    if (!out) {
        return nori__no_memory(err);
    }
    out->allocator = a;
    out->fd = -1;
    out->path_size = strlen(target) + 1;
    out->temporary_size = out->path_size + sizeof(TEMPORARY) + 16;
    out->path = nori__alloc(a, out->path_size);
    out->temporary = nori__alloc(a, out->temporary_size);
    if (!out->path || !out->temporary) {
        out_free(out);
        return nori__no_memory(err);
    }
    memcpy(out->path, target, out->path_size);
    int code = open_temporary(out);
    if (code != 0) {
        out_free(out);
        return io_error(err, "create", path, code);
    }
    if (exists && fchmod(out->fd, mode) != 0) {
        nori_status s = io_error(err, "create", path, errno);
        nori__out_abort(out);
        return s;
    }
    *result = out;
    return NORI_OK;
}

nori_status nori__out_write(nori__out_file *out, const void *data, size_t size, nori_error *err)
{
    const char *p = data;
    if (out->failed) {
        return nori__fail(err, NORI_ERROR_IO, "cannot write %s: an earlier write failed",
                          out->path);
    }
    while (size > 0) {
        ssize_t n = write(out->fd, p, size < ((size_t)1 << 30) ? size : (size_t)1 << 30);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            out->failed = true;
            return io_error(err, "write", out->path, n < 0 ? errno : ENOSPC);
        }
        p += n;
        size -= (size_t)n;
    }
    return NORI_OK;
}

nori_status nori__out_zeros(nori__out_file *out, uint64_t size, nori_error *err)
{
    if (size > INT64_MAX || (!out->failed && lseek(out->fd, (off_t)size, SEEK_CUR) < 0)) {
        out->failed = true;
        return io_error(err, "write", out->path, errno);
    }
    out->hole = size > 0 || out->hole;
    return NORI_OK;
}

nori_status nori__out_commit(nori__out_file *out, nori_error *err)
{
    nori_status status = NORI_OK;
    off_t end = out->hole && !out->failed ? lseek(out->fd, 0, SEEK_CUR) : 0;
    if (end < 0 || (end > 0 && ftruncate(out->fd, end) != 0)) {
        status = io_error(err, "write", out->path, errno);
        out->failed = true;
    }
    if (out->failed) {
        status = nori__fail(err, NORI_ERROR_IO, "%s was not written whole, an earlier write failed",
                            out->path);
    } else if (fsync(out->fd) != 0 && errno != EINVAL) {
        status = io_error(err, "write", out->path, errno);
    }
    int closed = close(out->fd);
    out->fd = -1;
    if (status == NORI_OK && closed != 0) {
        status = io_error(err, "write", out->path, errno);
    }
    if (status == NORI_OK && rename(out->temporary, out->path) != 0) {
        status = io_error(err, "replace", out->path, errno);
    }
    if (status != NORI_OK) {
        unlink(out->temporary);
    }
    out_free(out);
    return status;
}

void nori__out_abort(nori__out_file *out)
{
    if (out) {
        if (out->fd >= 0) {
            close(out->fd);
        }
        unlink(out->temporary);
        out_free(out);
    }
}
