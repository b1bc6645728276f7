# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""The value of a cell as the host shows it: JSON for dicts and lists that JSON can hold, else the repr."""
from json.encoder import c_make_encoder, encode_basestring

JSON = b'json'
TEXT = b'text'


def _refuse(value):
    raise TypeError


def _encode_json(value):
    # A new encoder each time: it remembers the containers it is inside of, to notice cycles.
    return ''.join(c_make_encoder({}, _refuse, encode_basestring, None, ':', ',', False, False, False)(value, 0))


def to_bytes(text):
    """UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    try:
        return text.encode('utf-16-le', 'surrogatepass').decode('utf-16-le', 'replace').encode()
    except LookupError:  # the program has taken its codecs away
        return ''.join(c if c < '\ud800' or c > '\udfff' else '\ufffd' for c in text).encode()


def show(value):
    """(tag, bytes), or None for no value. Raises what the value's own code raises."""
    if value is None:
        return None
    kind = type(value)
    if kind is not int and kind is not str and issubclass(kind, (dict, list)):
        try:
            return JSON, _encode_json(value).encode()
        except Exception:
            pass  # JSON cannot hold it (NaN, a set, a cycle, an object, a lone surrogate): the repr tells more
    return TEXT, to_bytes(repr(value))
