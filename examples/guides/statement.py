"""What to hand to the data-protection officer
===========================================

A small search, and its statement as a page (HTML), as a text (Markdown) and as plain values for
machines. All that it says is known without the data, so it can be read before ``fit``.
``python examples/guides/statement.py FOLDER`` writes it to a folder; without one, to a new one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPLogisticRegression
from sklearn_dpsearch.privacy import from_dict
from sklearn_dpsearch.report import TradeOffDisplay

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
FOLDER.mkdir(parents=True, exist_ok=True)

# %%
# A search
# --------
# The worst ten measurements of each cell nucleus, with round ranges, chosen without the data.
X, y = load_breast_cancer(return_X_y=True)
X = X[:, 20:]
ranges = ([0.0] * 10, [50, 60, 300, 5000, 0.3, 1.2, 1.5, 0.4, 0.8, 0.3])
net = DPLogisticRegression(classes=[0, 1], bounds_X=ranges, max_steps=40)
search = DPRandomSearchCV(
    net, {"learning_rate_factor": [0.5, 1.0, 2.0]}, n_iter=4, epsilon=2.0, delta=1e-5, refit=True
)

# %%
# Before the data
# ---------------
# The officer can read what would be released, and at what cost, before anything is spent.
planned = search.privacy_cost(len(X)).report("markdown", date="2026-01-31")

# %%
# After the fit
# -------------
# The same report. What only the curator knows is added by him, and what he leaves out is seen to be
# missing.
search.fit(X, y)
about = {
    "Curator": "The clinic",
    "Data set, and who is in it": "569 patients with breast tumours",
    "Intended use of the release": "A second opinion on new tumours",
}
for form, name in (("html", "statement.html"), ("markdown", "statement.md")):
    print(search.privacy_spent_.report(form, about=about, date="2026-01-31").save(FOLDER / name))
print(
    "the same before and after:",
    str(search.privacy_spent_.report("markdown", date="2026-01-31")) == str(planned),
)

# %%
# Nothing is lost
# ---------------
# JSON gives the guarantee back, which answers for any δ.
written = json.dumps(search.privacy_spent_.to_dict())
guarantee = from_dict(json.loads(written)["guarantee"])
print(
    f"ε = {guarantee.epsilon_at(1e-5):.3f} at δ = 1e-5, {guarantee.epsilon_at(1e-7):.3f} at δ = "
    f"1e-7"
)

# %%
# The curve of the statement: what attacks find at most, against their false alarms.
TradeOffDisplay.from_guarantee(guarantee).plot(name="this release")
