"""All of Ray.

Ray ends a driver without a word where the raylet dies and the driver's parent has gone, as after `nohup` and a logout;
it takes the parent for the raylet, unless a variable, read as Ray is imported, names another process.
"""

import os

os.environ.setdefault("RAY_RAYLET_PID", str(os.getpid()))
