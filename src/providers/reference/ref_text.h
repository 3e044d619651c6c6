/* ref_text.h: upper and lower case of UTF-8 text. */
#ifndef NORI_PROVIDERS_REFERENCE_REF_TEXT_H
#define NORI_PROVIDERS_REFERENCE_REF_TEXT_H

#include "base/base.h"

typedef enum nori__case { NORI__CASE_NONE, NORI__CASE_LOWER, NORI__CASE_UPPER } nori__case;

/* Replaces out's content by the n bytes at p in another case; see nori__text for failure. One
 * character becomes one character (simple mappings): Latin, Greek, Cyrillic, Armenian, full-width
 * letters and Roman numerals; others, and bytes that are no UTF-8, stay. */
void nori__text_case(nori__text *out, const char *p, size_t n, nori__case to);

#endif
