"""Uses the client that openapi-python-client has made, as test/e2e/generated-clients.test.ts says, and prints what it saw."""
import base64
import json
import os
import time

from capfleet_attrs import AuthenticatedClient
from capfleet_attrs.api.downloads import get_api_v1_pcap_timerange, get_v1_estimate
from capfleet_attrs.api.exports import get_v1_exports_id, get_v1_exports_id_file, post_v1_exports
from capfleet_attrs.api.lists import get_stream_list
from capfleet_attrs.api.tokens import post_v1_tokens


def client(token, prefix):
    return AuthenticatedClient(base_url=os.environ["GATEWAY"], token=token, prefix=prefix, timeout=600)


def save(file, name):
    with open(os.path.join(os.environ["FOLDER"], name), "wb") as written:
        written.write(file.payload.read())


span = {"ts_begin": os.environ["BEGIN"], "ts_end": os.environ["END"]}
login = f"{os.environ['GATEWAY_USER']}:{os.environ['GATEWAY_PASSWORD']}"
by_user = client(base64.b64encode(login.encode()).decode(), "Basic")
issued = post_v1_tokens.sync(client=by_user, scopes="device:read,capture:download", lifetime="1h")
by_token = client(issued.token, "Bearer")
saw = {"scopes": [scope.value for scope in issued.scopes]}
saw["captures"] = sorted(capture.stream_name for capture in get_stream_list.sync(client=by_token).list_)
saw["packets"] = get_v1_estimate.sync(client=by_token, **span).packets
save(get_api_v1_pcap_timerange.sync(client=by_token, **span), "download.pcap")
saw["problem"] = get_v1_estimate.sync(client=by_token, **span, filter_bpf="tcp prot 80").code.value

export = post_v1_exports.sync(client=by_user, **span)
while export.ended_at is None:
    time.sleep(0.1)
    export = get_v1_exports_id.sync(export.id, client=by_user)
saw["export"] = export.state.value
save(get_v1_exports_id_file.sync(export.id, client=by_user), "export.pcap")
print(json.dumps(saw))
