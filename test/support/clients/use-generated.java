// Uses the client that openapi-generator has made, as test/e2e/generated-clients.test.ts says, and prints what it saw.
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.DownloadsApi;
import org.openapitools.client.api.ExportsApi;
import org.openapitools.client.api.ListsApi;
import org.openapitools.client.api.TokensApi;
import org.openapitools.client.model.Export;
import org.openapitools.client.model.FleetCapture;
import org.openapitools.client.model.NewToken;
import org.openapitools.client.model.Problem;

final class UseGenerated {
  public static void main(String[] args) throws Exception {
    String begin = System.getenv("BEGIN");
    String end = System.getenv("END");
    String login = System.getenv("GATEWAY_USER") + ":" + System.getenv("GATEWAY_PASSWORD");
    ApiClient byUser = client("Basic " + Base64.getEncoder().encodeToString(login.getBytes()));
    NewToken issued = new TokensApi(byUser).postV1Tokens(
        TokensApi.APIPostV1TokensRequest.newBuilder().scopes("device:read,capture:download").lifetime("1h").build());
    ApiClient byToken = client("Bearer " + issued.getToken());
    Map<String, Object> saw = new LinkedHashMap<>();
    List<String> scopes = new ArrayList<>();
    for (NewToken.ScopesEnum scope : issued.getScopes()) scopes.add(scope.getValue());
    saw.put("scopes", scopes);

    List<String> captures = new ArrayList<>();
    ListsApi lists = new ListsApi(byToken);
    for (FleetCapture capture : lists.getStreamList(ListsApi.APIGetStreamListRequest.newBuilder().build()).getList())
      captures.add(capture.getStreamName());
    captures.sort(null);
    saw.put("captures", captures);

    DownloadsApi downloads = new DownloadsApi(byToken);
    saw.put("packets", downloads.getV1Estimate(
        DownloadsApi.APIGetV1EstimateRequest.newBuilder().tsBegin(begin).tsEnd(end).build()).getPackets());
    save(downloads.getApiV1PcapTimerange(
        DownloadsApi.APIGetApiV1PcapTimerangeRequest.newBuilder().tsBegin(begin).tsEnd(end).build()), "download.pcap");
    try {
      downloads.getV1Estimate(DownloadsApi.APIGetV1EstimateRequest.newBuilder()
          .tsBegin(begin).tsEnd(end).filterBPF("tcp prot 80").build());
    } catch (ApiException error) {
      saw.put("problem", byToken.getObjectMapper().readValue(error.getResponseBody(), Problem.class).getCode().getValue());
    }

    ExportsApi exports = new ExportsApi(byUser);
    Export export = exports.postV1Exports(
        ExportsApi.APIPostV1ExportsRequest.newBuilder().tsBegin(begin).tsEnd(end).build());
    while (export.getEndedAt() == null) {
      Thread.sleep(100);
      export = exports.getV1ExportsId(ExportsApi.APIGetV1ExportsIdRequest.newBuilder().id(export.getId()).build());
    }
    saw.put("export", export.getState().getValue());
    save(exports.getV1ExportsIdFile(
        ExportsApi.APIGetV1ExportsIdFileRequest.newBuilder().id(export.getId()).build()), "export.pcap");
    System.out.println(byToken.getObjectMapper().writeValueAsString(saw));
  }

  private static ApiClient client(String authorization) {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("GATEWAY"));
    client.setRequestInterceptor(request -> request.header("Authorization", authorization));
    return client;
  }

  private static void save(File file, String name) throws Exception {
    Files.move(file.toPath(), Path.of(System.getenv("FOLDER"), name));
  }
}
