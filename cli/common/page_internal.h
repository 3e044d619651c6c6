/* page_internal.h: what the files of the page writer share. */
#ifndef NORI_CLI_PAGE_INTERNAL_H
#define NORI_CLI_PAGE_INTERNAL_H

#include "page.h"

void page_escape(FILE *f, const char *text);
void page_close(cli_page *p);

#endif
