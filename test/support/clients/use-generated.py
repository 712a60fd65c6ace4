"""Uses the client that openapi-generator has made, as test/e2e/generated-clients.test.ts says, and prints what it saw."""
import json
import os
import time

import capfleet


def client(**login):
    return capfleet.ApiClient(capfleet.Configuration(host=os.environ["GATEWAY"], **login))


def save(response, name):
    with open(os.path.join(os.environ["FOLDER"], name), "wb") as file:
        assert response.status == 200, response.status
        for chunk in response.stream(65536):
            file.write(chunk)


span = {"ts_begin": os.environ["BEGIN"], "ts_end": os.environ["END"]}
by_user = client(username=os.environ["GATEWAY_USER"], password=os.environ["GATEWAY_PASSWORD"])
issued = capfleet.TokensApi(by_user).post_v1_tokens(scopes="device:read,capture:download", lifetime="1h")
by_token = client(access_token=issued.token)
downloads = capfleet.DownloadsApi(by_token)
saw = {"scopes": issued.scopes}
captures = capfleet.ListsApi(by_token).get_stream_list().list
saw["captures"] = sorted(capture.stream_name for capture in captures)
saw["packets"] = downloads.get_v1_estimate(**span).packets
save(downloads.get_api_v1_pcap_timerange_without_preload_content(**span), "download.pcap")
try:
    downloads.get_v1_estimate(**span, filter_bpf="tcp prot 80")
except capfleet.ApiException as error:
    saw["problem"] = error.data.code

exports = capfleet.ExportsApi(by_user)
export = exports.post_v1_exports(**span)
while export.ended_at is None:
    time.sleep(0.1)
    export = exports.get_v1_exports_id(export.id)
saw["export"] = export.state
save(exports.get_v1_exports_id_file_without_preload_content(export.id), "export.pcap")
print(json.dumps(saw))
