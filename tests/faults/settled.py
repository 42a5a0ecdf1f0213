"""The last module a fork server imports: what is in memory by then is never looked at by the collector.

A fork would otherwise copy every page of it at its first collection, which takes longer than its campaign.
"""

import atexit
import gc

gc.collect()
gc.freeze()
atexit.register(gc.unfreeze)
