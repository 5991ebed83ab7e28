"""Links from the notebook display of an estimator to its page."""

from __future__ import annotations

#: Pages of the latest version; the same address as in pyproject.toml.
SITE = "https://sklearn-dpsearch.readthedocs.io/en/stable"
#: Rooms whose names are public under another one.
ROOMS = {"search": ""}


class Documented:
    """Estimator with a page in the reference, which scikit-learn's display links. A user's subclass has none."""

    _doc_link_module = "sklearn_dpsearch"
    _doc_link_template = SITE + "/reference/api/{room}.{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        package, room = type(self).__module__.split(".")[:2]
        public = ROOMS.get(room, room)
        return {"room": f"{package}.{public}" if public else package, "name": type(self).__name__}
