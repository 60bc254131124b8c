"""Unpacks what is used of the downloaded packages: unpack.py WHEELS FOLDER.

The whole of them is 650 MB, of which these programs use a few services.
"""

import pathlib
import re
import sys
import zipfile

SERVICES = "cam|clb|cvm|ssl|sts|tag|vpc"
LEFT_OUT = [
    # Other services, as commands and as models.
    re.compile(rf"tccli/services/(?!__init__)(?!({SERVICES})/).*"),
    re.compile(rf"tencentcloud/(?!__init__|common/)(?!({SERVICES})/).*"),
    # Commands of other services, which need more packages.
    re.compile(r"tccli/(plugins|advance)/(?!__init__|auth/).*"),
]

wheels, folder = map(pathlib.Path, sys.argv[1:])
for wheel in sorted(wheels.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        kept = [name for name in names if not any(part.fullmatch(name) for part in LEFT_OUT)]
        archive.extractall(folder, kept)
