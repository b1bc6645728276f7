# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Imports from the library's zip, which in a sandbox is a folder as well.

matplotlib wants its data as files beside its modules, so the host shows `…/python315.zip/matplotlib/mpl-data` as a
folder. The standard path hook asks the file system about `…/python315.zip/matplotlib`, sees a folder and looks for
modules there as files. Ours knows that below the zip's path there are only the zip's members.
"""
import sys
from zipimport import zipimporter

ZIP = sys.path[-1]
_BELOW = ZIP + '/'


def _member_folder(path):
    if not path.startswith(_BELOW):
        raise ImportError('not inside the library', path=path)
    importer = zipimporter(ZIP)
    importer.prefix = path[len(_BELOW):].rstrip('/') + '/'
    return importer


def install():
    sys.path_hooks.insert(0, _member_folder)
    for path in [path for path in sys.path_importer_cache if path.startswith(_BELOW)]:
        del sys.path_importer_cache[path]
