#!/usr/bin/env python3
"""Prints the list of all components of the program, in CycloneDX 1.5.

The components are what cargo links into the program for one target, with its default features: `cargo
tree` names them, `cargo metadata` has their licences, Cargo.lock their checksums. The list depends on these
and on SOURCE_DATE_EPOCH only, not on the folder of the checkout.
"""

import datetime
import json
import os
import subprocess
import sys
import tomllib
import urllib.parse

PROGRAM = "tidegate-server"


def cargo(*arguments):
    """The output of cargo."""
    command = ["cargo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def linked(target):
    """Names and versions of the crates in the program, and which of them each needs."""
    flags = ["--locked", "--target", target, "--package", PROGRAM, "--edges", "normal,no-proc-macro"]
    lines = cargo("tree", *flags, "--prefix", "depth", "--no-dedupe", "--format", " {p}").splitlines()
    needs, path = {}, []
    for line in lines:
        depth, name, version = line.split()[:3]
        crate = (name, version.removeprefix("v"))
        del path[int(depth) :]
        if path:
            needs[path[-1]].add(crate)
        needs.setdefault(crate, set())
        path.append(crate)
    return needs


def reference(crate):
    """The package URL of a crate."""
    name, version = crate
    return f"pkg:cargo/{name}@{urllib.parse.quote(version)}"


def component(crate, package, checksum):
    """A crate as it stands in the list."""
    found = {
        "type": "library",
        "bom-ref": reference(crate),
        "name": crate[0],
        "version": crate[1],
        "purl": reference(crate),
    }
    if package["description"]:
        found["description"] = " ".join(package["description"].split())
    if package["license"]:
        # Some crates still write a slash for OR.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def main():
    """Prints the list."""
    target = sys.argv[1]
    needs = linked(target)
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1"))
    packages = {(it["name"], it["version"]): it for it in metadata["packages"]}
    with open("Cargo.lock", "rb") as lock:
        locked = tomllib.load(lock)["package"]
    checksums = {(it["name"], it["version"]): it.get("checksum") for it in locked}
    made = {crate: component(crate, packages[crate], checksums[crate]) for crate in sorted(needs)}
    [program] = [crate for crate in made if crate[0] == PROGRAM]
    at = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**made.pop(program), "type": "application"},
            "properties": [{"name": "cargo:target", "value": target}],
        },
        "components": list(made.values()),
        "dependencies": [
            {"ref": reference(crate), "dependsOn": sorted(map(reference, needs[crate]))}
            for crate in sorted(needs)
        ],
    }
    json.dump(bom, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
