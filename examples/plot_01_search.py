"""
Search ranking
==============

x
"""

import numpy as np

print(np.eye(2))
