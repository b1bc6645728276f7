# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""hashlib.pbkdf2_hmac, which the standard library has from OpenSSL only, and the guest has no OpenSSL."""


def install():
    import hashlib
    if hasattr(hashlib, 'pbkdf2_hmac'):
        return
    # Kept from before user code ran; the methods of hashes themselves are C's and cannot be replaced.
    new_hash, to_int = hashlib.new, int.from_bytes

    def pbkdf2_hmac(hash_name, password, salt, iterations, dklen=None):
        """Password based key derivation function 2 (PKCS #5 v2.0) with HMAC as pseudorandom function."""
        if not isinstance(hash_name, str):
            raise TypeError(f'the name of a hash is str, not {type(hash_name).__name__}')
        if iterations < 1:
            raise ValueError('iteration value must be greater than 0.')
        inner, outer = new_hash(hash_name), new_hash(hash_name)
        size = inner.digest_size
        length = size if dklen is None else dklen
        if length < 1:
            raise ValueError('key length must be greater than 0.')
        secret, salt = bytes(memoryview(password)), bytes(memoryview(salt))
        if len(secret) > inner.block_size:
            secret = new_hash(hash_name, secret).digest()
        secret = secret.ljust(inner.block_size, b'\0')
        inner.update(bytes(byte ^ 0x36 for byte in secret))
        outer.update(bytes(byte ^ 0x5C for byte in secret))

        def hmac(message):
            within, around = inner.copy(), outer.copy()
            within.update(message)
            around.update(within.digest())
            return around.digest()

        key = b''
        for block in range(1, -(-length // size) + 1):
            last = hmac(salt + block.to_bytes(4, 'big'))
            total = to_int(last, 'big')
            for _ in range(iterations - 1):
                last = hmac(last)
                total ^= to_int(last, 'big')
            key += total.to_bytes(size, 'big')
        return key[:length]

    pbkdf2_hmac.__module__ = 'hashlib'
    pbkdf2_hmac.__qualname__ = 'pbkdf2_hmac'
    hashlib.pbkdf2_hmac = pbkdf2_hmac
    hashlib.__all__ += ('pbkdf2_hmac',)
