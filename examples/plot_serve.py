"""
How does another program ask my model?
======================================

``bayesrbf serve DIR`` answers over HTTP, as a page for people and as an interface for programs. Any
language can call it. This script starts a server, asks it as a program would, and ends it. The line
for curl stands beside each call.
"""

import atexit
import json
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from bayesrbf import HybridMixtureClassifier

wine = load_wine(as_frame=True)
X, y = wine.data[["alcohol", "flavanoids", "color_intensity", "proline"]], wine.target
model = HybridMixtureClassifier(random_state=0).fit(X, wine.target_names[y])
folder = tempfile.TemporaryDirectory()
model.refine("laplace", draws=250).save(Path(folder.name) / "model.safetensors")

# %%
# The server takes a free port and says at which address it is.
#
# .. code-block:: console
#
#    $ bayesrbf serve DIR --port 0
command = [sys.executable, "-m", "bayesrbf", "serve", folder.name, "--port", "0", "--no-browser"]
server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
atexit.register(server.kill)  # should a line below fail
address = re.search(r"http://\S+/", server.stdout.readline())[0]


# %%
# A row is an object. Cells that are left out are missing.
#
# .. code-block:: console
#
#    $ curl --json '{"alcohol": 13.1, "proline": 900}' http://127.0.0.1:8000/api/uncertainty
def ask(question, rows, media_type="application/json"):
    """The answer to a question about rows."""
    request = Request(f"{address}api/{question}", rows.encode(), {"Content-Type": media_type})
    with urlopen(request, timeout=120) as reply:
        return reply.read().decode()


told = json.loads(ask("uncertainty", json.dumps({"alcohol": 13.1, "proline": 900})))["answers"][0]
for name in wine.target_names:
    low, high = told[f"lower_{name}"], told[f"upper_{name}"]
    print(f"{name}: {told[f'probability_{name}']:.2f} ({low:.2f} to {high:.2f})")

# %%
# Which of the two missing cells should be measured?
#
# .. code-block:: console
#
#    $ curl --json '{"alcohol": 13.1, "proline": 900}' http://127.0.0.1:8000/api/acquire_cells
told = json.loads(ask("acquire_cells", json.dumps({"alcohol": 13.1, "proline": 900})))["answers"][0]
print({name: cell for name, cell in told.items() if cell is not None})

# %%
# A table goes as CSV, and its answers come as CSV.
#
# .. code-block:: console
#
#    $ curl -H 'Content-Type: text/csv' --data-binary @NEW.csv http://127.0.0.1:8000/api/predict
print(ask("predict", X.iloc[[0, 70, 140]].to_csv(index=False), "text/csv"))

# %%
# A request that cannot be answered has every problem in words.
#
# .. code-block:: console
#
#    $ curl --json '{"alcohol": "strong", "colour_intensity": 3}' http://127.0.0.1:8000/api/predict
try:
    ask("predict", json.dumps({"alcohol": "strong", "colour_intensity": 3}))
except HTTPError as error:
    print(error.code, *json.load(error)["problems"], sep="\n")
    error.close()

# %%
# The probabilities of a row as one of its cells varies: many rows in one request.
grid = [600 + 20 * step for step in range(41)]
rows = [{"alcohol": 13.1, "proline": proline} for proline in grid]
lines = json.loads(ask("uncertainty", json.dumps(rows)))["answers"]
_, ax = plt.subplots()
for name in wine.target_names:
    ax.plot(grid, [line[f"probability_{name}"] for line in lines], label=name)
    low, high = ([line[f"{end}_{name}"] for line in lines] for end in ("lower", "upper"))
    ax.fill_between(grid, low, high, alpha=0.2)
ax.set(xlabel="proline (mg/l)", ylabel="probability", title="A wine with 13.1 % of alcohol")
ax.legend()
plt.show()

# %%
# SIGTERM, or Ctrl-C on a terminal, ends the server after it has answered what is under way.
server.send_signal(signal.SIGTERM)
server.wait(60)
server.stdout.close()
folder.cleanup()
