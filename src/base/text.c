/* text.c: growing text. */
#include "base/base.h"

#include <stdio.h>

void nori__text_init(nori__text *text, const nori_allocator *allocator)
{
    *text = (nori__text){.allocator = allocator};
}

void nori__text_free(nori__text *text)
{
    nori__release(text->allocator, text->data, text->capacity);
    nori__text_init(text, text->allocator);
}

bool nori__text_reserve(nori__text *text, size_t size)
{
    size_t need;
    if (text->failed || !nori__add_size(text->size, size, &need) ||
        !nori__add_size(need, 1, &need)) {
        text->failed = true;
        return false;
    }
    if (need <= text->capacity) {
        return true;
    }
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity < need) {
        if (!nori__mul_size(capacity, 2, &capacity)) {
            capacity = need;
        }
    }
    char *data = nori__alloc(text->allocator, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    if (text->size > 0) {
        memcpy(data, text->data, text->size);
    }
    nori__release(text->allocator, text->data, text->capacity);
    text->data = data;
    text->capacity = capacity;
    return true;
}

void nori__text_add(nori__text *text, const char *bytes, size_t size)
{
    if (!nori__text_reserve(text, size)) {
        return;
    }
    if (size > 0) {
        memcpy(text->data + text->size, bytes, size);
    }
    text->size += size;
    text->data[text->size] = 0;
}

void nori__text_printf(nori__text *text, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n < 0) {
        text->failed = true;
    } else if (nori__text_reserve(text, (size_t)n)) {
        vsnprintf(text->data + text->size, (size_t)n + 1, fmt, again);
        text->size += (size_t)n;
    }
    va_end(again);
    va_end(args);
}
