"""Bill of materials of a wheel, as CycloneDX, for ``.dist-info/sboms/`` (PEP 770).

The wheel contains no other project's files, and the bill says so. The libraries that an
installation needs beside it are named with the ranges of ``pyproject.toml``; their versions are
decided where it is installed. The same source gives the same bytes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: File name in the wheel, after the name of the project.
ENDING = "cdx.json"
SPECIFICATION = "1.6"


class BillOfMaterials(BuildHookInterface):  # type: ignore[misc]
    """Hook that adds the bill to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the bill, unless the wheel only points to a working tree."""
        if version == "editable":
            return
        core = self.metadata.core
        target = Path(self.directory) / f"{core.name}.{ENDING}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(bill(self.metadata.version, core), indent=2) + "\n")
        build_data["sbom_files"].append(str(target))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file, which is in the wheel by now."""
        (Path(self.directory) / f"{self.metadata.core.name}.{ENDING}").unlink(missing_ok=True)


def bill(version: str, core: Any) -> dict[str, Any]:
    """Bill of one version, from the metadata of the project."""
    own = purl(core.name, version)
    needed = [component(Requirement(text)) for text in core.dependencies]
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPECIFICATION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": core.name,
                "version": version,
                "description": core.description,
                "licenses": [{"license": {"id": core.license_expression}}],
                "purl": own,
            }
        },
        "components": needed,
        "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in needed]}],
        # no file of another project is inside
        "compositions": [{"aggregate": "complete", "assemblies": [own]}],
    }


def component(requirement: Requirement) -> dict[str, Any]:
    """Entry for a library that every installation takes from elsewhere."""
    return {
        "type": "library",
        "bom-ref": purl(requirement.name),
        "name": canonicalize_name(requirement.name),
        "scope": "required",
        "purl": purl(requirement.name),
        "properties": [{"name": "requirement", "value": str(requirement)}],
    }


def purl(name: str, version: str = "") -> str:
    """Package URL of a project on the index."""
    return f"pkg:pypi/{canonicalize_name(name)}{'@' if version else ''}{version}"
