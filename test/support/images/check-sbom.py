"""Says on stdout what is wrong with a CycloneDX 1.5 document on stdin, by the schema of CycloneDX itself; nothing when it is right."""
import json
import sys
from importlib.resources import files

import jsonschema_rs

SCHEMAS = files("cyclonedx.schema._res")


def schema(address):
    return json.loads(SCHEMAS.joinpath(address.rsplit("/", 1)[-1]).read_text("utf-8"))


validator = jsonschema_rs.Draft7Validator(schema("bom-1.5.SNAPSHOT.schema.json"), retriever=schema)
for error in validator.iter_errors(json.load(sys.stdin)):
    print("/".join(map(str, error.instance_path)), error.message[:300])
