/* guess.c: what a file that is not ONNX may be, so that the message can say so. None of these
 * beginnings can be that of a ModelProto or TensorProto. */
#include "onnx/fields.h"

static bool begins(const uint8_t *data, size_t size, const char *magic, size_t n)
{
    return size >= n && memcmp(data, magic, n) == 0;
}

/* Ignores case; magic is in lower case. */
static bool begins_text(const uint8_t *data, size_t size, const char *magic)
{
    for (size_t i = 0; magic[i]; i++) {
        if (i >= size || (data[i] >= 'A' && data[i] <= 'Z' ? data[i] + 32 : data[i]) != magic[i]) {
            return false;
        }
    }
    return true;
}

static const char *text_kind(const uint8_t *data, size_t size)
{
    static const struct {
        const char *magic, *what;
    } known[] = {
        {"<!doctype", "this is an HTML page, perhaps an error page saved under a model's name"},
        {"<html", "this is an HTML page, perhaps an error page saved under a model's name"},
        {"<?xml", "this is XML text"},
        {"version https://git-lfs",
         "this is a Git LFS pointer; fetch the file it stands for with `git lfs pull`"},
    };
    while (size > 0 && (*data == ' ' || *data == '\t' || *data == '\r' || *data == '\n')) {
        data++;
        size--;
    }
    for (size_t i = 0; i < NORI__COUNT(known); i++) {
        if (begins_text(data, size, known[i].magic)) {
            return known[i].what;
        }
    }
    return NULL;
}

const char *nori__pb_looks_like(const uint8_t *data, size_t size)
{
    static const struct {
        size_t offset, n;
        const char *magic, *what;
    } known[] = {
        {0, 1, "{", "this is JSON text"},
        {0, 4, "\x89PNG", "this is a PNG picture"},
        {0, 3, "\xff\xd8\xff", "this is a JPEG picture"},
        {0, 4, "GIF8", "this is a GIF picture"},
        {0, 4, "%PDF", "this is a PDF document"},
        {0, 4, "PK\x03\x04", "this is a zip archive (.zip, .npz or a PyTorch file)"},
        {0, 2, "\x1f\x8b", "this is gzip data; unpack it first, with gunzip"},
        {0, 4, "\x28\xb5\x2f\xfd", "this is Zstandard data; unpack it first, with unzstd"},
        {0, 6,
         "\xfd"
         "7zXZ",
         "this is xz data; unpack it first, with unxz"},
        {0, 6, "\x93NUMPY", "this is a NumPy array (.npy)"},
        {0, 8, "\x89HDF\r\n\x1a\n", "this is an HDF5 file (Keras?); convert it to ONNX first"},
        {0, 4,
         "\x7f"
         "ELF",
         "this is a program or library"},
        {0, 8, "noriseal", "this is a sealed model; its key opens it (--seal-key)"},
        {0, 4, "GGUF", "this is a GGUF model, which is another format"},
        {4, 4, "TFL3", "this is a TensorFlow Lite model; convert it to ONNX first"},
        {4, 4, "ORTM", "this is an ONNX Runtime model (.ort); the .onnx it came from is needed"},
    };
    if (size == 0) {
        return "the file is empty";
    }
    for (size_t i = 0; i < NORI__COUNT(known); i++) {
        size_t o = known[i].offset;
        bool flat = o == 0 || (size > o && data[2] == 0 && data[3] == 0); /* a small root offset */
        if (flat && begins(data + o, size - o, known[i].magic, known[i].n)) {
            return known[i].what;
        }
    }
    return text_kind(data, size);
}
