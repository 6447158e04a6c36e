#!/usr/bin/env python3
"""sbom.py SOURCE BUILD EPOCH: the bill of materials of the programs in BUILD, as SPDX 2.3 JSON.

It is made from the build: the headers that the compiler has read, the libraries that the linker has put in, those that
the programs load, and the JavaScript embedded in spoord. EPOCH, in seconds, is the time that the document states.
Format: https://spdx.github.io/spdx-spec/v2.3/
"""
import datetime
import json
import pathlib
import re
import subprocess
import sys
import uuid

PROGRAMS = ["spoord", "spoor", "spoor-watch", "spoor-publish", "libspoor.so"]


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def debian_packages(files):
    """The Debian packages that own these files."""
    # A library is loaded from /lib, which is a link to /usr/lib; dpkg knows it by either name.
    names = {name for file in files for name in (file, file.removeprefix("/usr"), "/usr" + file)}
    found = subprocess.run(["dpkg-query", "-S", *sorted(names)], capture_output=True, text=True, check=False).stdout
    lines = [line.split(": ", 1) for line in found.splitlines() if not line.startswith("diversion ")]
    return {package for packages, _ in lines for package in packages.split(", ")}


def headers_read(build):
    deps = output_of("ninja", "-C", build, "-t", "deps")
    paths = {line.strip() for line in deps.splitlines() if line.startswith("    /")}
    return {str(pathlib.Path(path).resolve()) for path in paths if path.startswith(("/usr/include/", "/usr/lib/"))}


def libraries_linked(build):
    rules = pathlib.Path(build, "build.ninja").read_text(encoding="utf-8")
    return set(re.findall(r"/usr/lib/\S+\.a\b", rules))


def libraries_loaded(build):
    return {path for program in PROGRAMS
            for path in re.findall(r"=> (/\S+)", output_of("ldd", str(pathlib.Path(build, program))))}


def debian_package(name):
    fields = output_of("dpkg-query", "-W", "-f", "${Package}\n${Version}\n${Architecture}\n${source:Package}", name)
    package, version, architecture, source = fields.split("\n")
    return {
        "SPDXID": "SPDXRef-Debian-" + re.sub(r"[^A-Za-z0-9.-]", "-", package),
        "name": package,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"Debian source package {source}",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{package.replace('+', '%2B')}@{version.replace('+', '%2B')}"
                                f"?arch={architecture}&distro=debian-12",
        }],
    }


def embedded_packages(source):
    """The libraries of the page: name, version and files are in daemon/page/vendor/VERSIONS."""
    licenses = {"uplot": "MIT", "d3-hierarchy": "ISC"}
    for line in pathlib.Path(source, "daemon/page/vendor/VERSIONS").read_text(encoding="utf-8").splitlines():
        name, version = re.match(r"(\S+) ([^:]+):", line).groups()
        yield {
            "SPDXID": f"SPDXRef-npm-{name}",
            "name": name,
            "versionInfo": version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": licenses[name],
            "licenseDeclared": licenses[name],
            "copyrightText": "NOASSERTION",
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": f"pkg:npm/{name}@{version}",
            }],
        }


def main(source, build, epoch):
    version = re.search(r"project\(spoor VERSION (\S+)",
                        pathlib.Path(source, "CMakeLists.txt").read_text(encoding="utf-8")).group(1)
    spoor = {
        "SPDXID": "SPDXRef-spoor",
        "name": "spoor",
        "versionInfo": version,
        "primaryPackagePurpose": "APPLICATION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
    }
    packages = {spoor["SPDXID"]: spoor}
    relations = {("SPDXRef-DOCUMENT", "DESCRIBES", spoor["SPDXID"])}
    for package in embedded_packages(source):
        packages[package["SPDXID"]] = package
        relations.add((spoor["SPDXID"], "CONTAINS", package["SPDXID"]))
    for files, relation in ((headers_read(build), "BUILD_DEPENDENCY_OF"), (libraries_linked(build), "STATIC_LINK"),
                            (libraries_loaded(build), "DYNAMIC_LINK")):
        for name in debian_packages(files):
            package = debian_package(name)
            packages[package["SPDXID"]] = package
            ends = (spoor["SPDXID"], package["SPDXID"])
            first, second = reversed(ends) if relation == "BUILD_DEPENDENCY_OF" else ends
            relations.add((first, relation, second))
    contents = [packages[key] for key in sorted(packages)]
    identity = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(contents, sort_keys=True))
    created = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"spoor-{version}",
        "documentNamespace": identity.urn,
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: packaging/sbom.py"]},
        "packages": contents,
        "relationships": [{"spdxElementId": a, "relationshipType": relation, "relatedSpdxElement": b}
                          for a, relation, b in sorted(relations)],
    }
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()


main(*sys.argv[1:])
