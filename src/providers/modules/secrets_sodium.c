/* secrets_sodium.c: signatures (Ed25519) and seals (XChaCha20-Poly1305, IETF) by libsodium. */
#include <sodium.h>

#include "providers/modules/module.h"

static void hash(const void *bytes, size_t size, unsigned char out[32])
{
    crypto_generichash(out, 32, bytes, size, NULL, 0);
}

static int sign_keys(unsigned char public_key[32], unsigned char secret_key[64])
{
    return crypto_sign_keypair(public_key, secret_key) == 0;
}

static int sign(const void *bytes, size_t size, const unsigned char secret_key[64],
                unsigned char out[64])
{
    return crypto_sign_detached(out, NULL, bytes, size, secret_key) == 0;
}

static int verify(const void *bytes, size_t size, const unsigned char public_key[32],
                  const unsigned char signature[64])
{
    return crypto_sign_verify_detached(signature, bytes, size, public_key) == 0;
}

static int seal(const void *bytes, size_t size, const void *head, size_t head_size,
                const unsigned char *nonce, const unsigned char key[32], unsigned char *out)
{
    return crypto_aead_xchacha20poly1305_ietf_encrypt(out, NULL, bytes, size, head, head_size, NULL,
                                                      nonce, key) == 0;
}

static int open_sealed(const unsigned char *sealed, size_t size, const void *head, size_t head_size,
                       const unsigned char *nonce, const unsigned char key[32], unsigned char *out)
{
    return crypto_aead_xchacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed, size, head, head_size,
                                                      nonce, key) == 0;
}

const nori__module *nori_module(void)
{
    static const nori__secrets secrets = {
        .seal_extra = crypto_aead_xchacha20poly1305_ietf_ABYTES,
        .nonce_bytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
        .random = randombytes_buf,
        .hash = hash,
        .sign_keys = sign_keys,
        .sign = sign,
        .verify = verify,
        .seal = seal,
        .open = open_sealed,
        .wipe = sodium_memzero,
    };
    static const nori__module module = {.version = NORI__MODULE_VERSION, .secrets = &secrets};
    return sodium_init() >= 0 ? &module : NULL;
}
