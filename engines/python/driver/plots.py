# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""matplotlib at bake: its folders settled, its fonts found, its drawing code warm.

It asks the environment once for a folder of its own. A run's environment has none to offer, and it would make one
and say so on stderr.
"""
import io
import os

_FOLDER = '/tmp/matplotlib'


def install():
    os.environ['MPLCONFIGDIR'] = _FOLDER
    import matplotlib
    matplotlib.use('agg')
    matplotlib.get_configdir()
    matplotlib.get_cachedir()
    import matplotlib.pyplot as plt
    from matplotlib import font_manager
    figure, axes = plt.subplots()
    axes.plot([1, 2], label='x')
    axes.set_title('title')
    axes.legend()
    figure.savefig(io.BytesIO(), format='png')
    plt.close('all')
    # Fonts are open files, and an image must hold none: its descriptors would mean nothing later.
    font_manager._get_font.cache_clear()
    del os.environ['MPLCONFIGDIR']
