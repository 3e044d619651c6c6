/* ref_picture.h: pictures that need no library, for ImageDecoder. */
#ifndef NORI_PROVIDERS_REFERENCE_REF_PICTURE_H
#define NORI_PROVIDERS_REFERENCE_REF_PICTURE_H

#include "base/base.h"
#include "providers/modules/module.h"

/* As nori__module.decode: Windows bitmaps, and PBM, PGM, PPM. */
int nori__picture_bmp(const nori__picture *picture);
int nori__picture_pnm(const nori__picture *picture);

#endif
