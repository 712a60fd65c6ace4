// Uses the client that oapi-codegen has made in ./gateway, as test/e2e/generated-clients.test.ts says, and prints what it saw.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"time"

	"capfleet/test/tools/clients/gateway"
)

type seen struct {
	Captures []string `json:"captures"`
	Packets  string   `json:"packets"`
	Export   string   `json:"export"`
	Scopes   []string `json:"scopes"`
	Problem  string   `json:"problem"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	url, folder := os.Getenv("GATEWAY"), os.Getenv("FOLDER")
	begin, end := os.Getenv("BEGIN"), os.Getenv("END")
	byUser, err := client(url, func(_ context.Context, request *http.Request) error {
		request.SetBasicAuth(os.Getenv("GATEWAY_USER"), os.Getenv("GATEWAY_PASSWORD"))
		return nil
	})
	if err != nil {
		return err
	}

	issued, err := byUser.PostV1TokensWithResponse(ctx, &gateway.PostV1TokensParams{
		Scopes: new("device:read,capture:download"), Lifetime: new("1h"),
	})
	if err != nil {
		return err
	}
	if issued.JSON201 == nil {
		return fmt.Errorf("no token: %s", issued.Body)
	}
	byToken, err := client(url, func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+issued.JSON201.Token)
		return nil
	})
	if err != nil {
		return err
	}

	saw := seen{}
	for _, scope := range issued.JSON201.Scopes {
		saw.Scopes = append(saw.Scopes, string(scope))
	}
	list, err := byToken.GetStreamListWithResponse(ctx, &gateway.GetStreamListParams{})
	if err != nil {
		return err
	}
	for _, capture := range list.JSON200.List {
		saw.Captures = append(saw.Captures, capture.StreamName)
	}
	sort.Strings(saw.Captures)

	estimate, err := byToken.GetV1EstimateWithResponse(ctx, &gateway.GetV1EstimateParams{TSBegin: &begin, TSEnd: &end})
	if err != nil {
		return err
	}
	saw.Packets = *estimate.JSON200.Packets

	download, err := byToken.GetApiV1PcapTimerange(ctx, &gateway.GetApiV1PcapTimerangeParams{TSBegin: &begin, TSEnd: &end})
	if err != nil {
		return err
	}
	if err := save(download, filepath.Join(folder, "download.pcap")); err != nil {
		return err
	}

	wrong, err := byToken.GetV1EstimateWithResponse(ctx, &gateway.GetV1EstimateParams{
		TSBegin: &begin, TSEnd: &end, FilterBPF: new("tcp prot 80"),
	})
	if err != nil {
		return err
	}
	saw.Problem = string(wrong.ApplicationproblemJSON400.Code)

	if saw.Export, err = export(ctx, byUser, begin, end, filepath.Join(folder, "export.pcap")); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(saw)
}

func client(url string, login gateway.RequestEditorFn) (*gateway.ClientWithResponses, error) {
	return gateway.NewClientWithResponses(url, gateway.WithRequestEditorFn(login))
}

func export(ctx context.Context, byUser *gateway.ClientWithResponses, begin, end, path string) (string, error) {
	ordered, err := byUser.PostV1ExportsWithResponse(ctx, &gateway.PostV1ExportsParams{TSBegin: &begin, TSEnd: &end})
	if err != nil {
		return "", err
	}
	if ordered.JSON202 == nil {
		return "", fmt.Errorf("no export: %s", ordered.Body)
	}
	export := *ordered.JSON202
	for export.EndedAt == nil {
		time.Sleep(100 * time.Millisecond)
		shown, err := byUser.GetV1ExportsIdWithResponse(ctx, export.Id, &gateway.GetV1ExportsIdParams{})
		if err != nil {
			return "", err
		}
		export = *shown.JSON200
	}
	file, err := byUser.GetV1ExportsIdFile(ctx, export.Id, &gateway.GetV1ExportsIdFileParams{})
	if err != nil {
		return "", err
	}
	return string(export.State), save(file, path)
}

func save(response *http.Response, path string) error {
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, response.Body)
	return err
}
